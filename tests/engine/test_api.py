"""The package as a notebook uses it: the lines of the README, and what can go wrong with them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stormproof as sp
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.core.spec import local_object
from stormproof.models.python import function_model

PLACES = [(x, y) for x in range(0, 21, 4) for y in range(0, 21, 4)]


def boxes(images: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """Boxes all over where the objects are, with masks as an N×H×W array, surer where it is darker."""
    found = []
    for image in images:
        masks = np.zeros((len(PLACES), *image.shape[:2]), bool)
        for mask, (x, y) in zip(masks, PLACES, strict=True):
            mask[y : y + 20, x : x + 20] = True
        scores = [1 - image[mask].mean() / 256 for mask in masks]
        corners = [[x, y, x + 20, y + 20] for x, y in PLACES]
        labels = np.arange(len(PLACES)) % 2
        found.append({"boxes": corners, "scores": scores, "labels": labels, "masks": masks})
    return found


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("api") / "scene", images=6)


@pytest.fixture(scope="session")
def noise(scene: str, tmp_path_factory: pytest.TempPathFactory) -> sp.Run:
    """A function on four images under a suite and one condition more."""
    data = sp.open_dataset(scene, limit=4)
    out = tmp_path_factory.mktemp("runs") / "mine"
    return sp.run(boxes, data, conditions=["noise", "fog@3"], out=out, progress=False)


def test_the_python_of_the_readme_works(scene: str, noise: sp.Run, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    data = sp.open_dataset(scene, limit=4)
    sp.write_image(tmp_path / "street.png", data[0].image)
    image = sp.read_image(tmp_path / "street.png")
    foggy = sp.corrupt(image, "fog@3")
    assert (foggy == sp.corrupt(image, 3, "fog")).all()
    model = sp.open_model(f"{MODELS}:contrast_boxes")
    assert len(model([image])[0]) == 30
    run = sp.run(model, data, conditions="fog@1-2", out=tmp_path / "run", engine="local", progress=False)
    assert run.conditions == ("clean", "fog@1", "fog@2")
    scores = noise.score()
    cells = [scores["mask AP"][text] for text in noise.conditions[1:16]]
    assert scores.mpc == scores[scores.headline].mpc > 0
    assert scores.mpc == pytest.approx(np.mean(cells))
    assert scores["AP50"].rpc == pytest.approx(scores["AP50"].mpc / scores["AP50"].p)
    frame = scores.to_frame()
    assert list(frame.columns) == ["condition", "corruption", "severity", "class", "measure", "value"]
    overall = frame[frame["class"].isna() & (frame.measure == "AP50") & (frame.condition == "fog@3")]
    assert overall.value.item() == scores["AP50"]["fog@3"]
    assert {"cat", "dog"} <= {*frame["class"].dropna()}
    said = noise.predictions("fog@3")
    assert list(said) == list(data.ids)
    worst = noise.worst(20)
    assert len(worst) == 20
    assert worst == sorted(worst, key=lambda w: -w.rise)
    shown = sp.draw(noise.sample(worst[0].image, worst[0].condition), said[worst[0].image], score=0.05)
    assert shown.size == (data[0].image.shape[1], data[0].image.shape[0])
    assert (np.asarray(shown) != data[0].image).any()


def test_a_plot_of_scores_shows_every_corruption(noise: sp.Run) -> None:
    drawn = json.dumps(noise.score().plot("AP50").to_dict())
    assert all(name in drawn for name in ("gaussian_noise", "shot_noise", "impulse_noise", "fog"))


def test_a_run_is_named_by_the_user_or_after_its_function(scene: str, tmp_path: Path) -> None:
    def detect(images):  # type: ignore[no-untyped-def]
        return [{"boxes": [[2, 2, 9, 9]], "scores": [0.9], "labels": [0]} for _ in images]

    called = sp.run(detect, scene, conditions="fog@3", name="night-shift", limit=2, out=tmp_path / "a")
    plain = sp.run(detect, scene, conditions="fog@3", limit=2, out=tmp_path / "b")
    assert called.name.startswith("night-shift on ")
    assert called.score().name == "night-shift"
    assert plain.score().name == "detect"
    page = sp.report([called, plain], out=tmp_path / "page.html", images=0)
    assert "<h1>night-shift, detect on " in Path(page).read_text()


def test_reprs_are_short(scene: str, noise: sp.Run) -> None:
    data = sp.open_dataset(scene, limit=4)
    things = [data, data[0], data[0].truth.instances, sp.open_model(boxes), noise, noise.score()]
    things += [noise.predictions("clean")[data.ids[0]], noise.worst(1)[0], noise.score()["AP"]]
    assert all(len(repr(thing)) < 160 and "\n" not in repr(thing) for thing in things)
    assert repr(data) == "<dataset scene: 4 of 6 images, 2 classes>" or "4 of 6 images" in repr(data)


def test_a_sample_knows_its_class_names(scene: str) -> None:
    data = sp.open_dataset(scene)
    sample = next(s for s in data if s.truth.instances is not None and (s.truth.instances.labels == 0).any())
    changed = sp.apply(sample, f"fog@3[on={data.classes[0]}]")
    assert (changed.image != sample.image).any()
    assert data[sample.id].id == sample.id


def test_functions_and_samples_run_in_this_process_only(scene: str, tmp_path: Path) -> None:
    for engine in ("pool", "ray", "slurm"):
        with pytest.raises(sp.StormproofError, match="was made in this Python process"):
            sp.run(boxes, scene, conditions="fog@3", out=tmp_path / "no", engine=engine)
    assert not (tmp_path / "no").exists()
    samples = list(sp.open_dataset(scene, limit=3))
    run = sp.run(
        lambda images: boxes(images), samples, conditions="fog@3", out=tmp_path / "run", progress=False
    )
    assert run.score().per_condition["AP"].keys() == {"clean", "fog@3"}
    assert local_object("function") is None
    later = sp.Run(tmp_path / "run")
    with pytest.raises(sp.StormproofError, match="made in Python; give it again with data="):
        _ = later.dataset
    (notice,) = later.score().notices  # kept ones, since the samples are not here
    assert "The dataset was not found" in notice
    with pytest.raises(sp.StormproofError, match="made in Python; give it again with data="):
        later.score(classes="all")
    assert repr(sp.Run(tmp_path / "run", data=samples).score().per_condition) == repr(
        run.score().per_condition
    )
    with pytest.raises(sp.StormproofError, match="is not the dataset of this run"):
        _ = sp.Run(tmp_path / "run", data=samples[:2]).dataset


def test_any_set_of_conditions_has_a_mean_and_no_mpc(scene: str, tmp_path: Path) -> None:
    run = sp.run(boxes, scene, conditions="fog@3", out=tmp_path / "run", engine="local", progress=False)
    with pytest.raises(
        sp.StormproofError, match=r"mPC is over a whole benchmark .* take scores\['AP'\].mean"
    ):
        _ = run.score()["AP"].mpc
    assert run.score()["AP"].mean == run.score()["AP"]["fog@3"]


def test_a_function_is_identified_by_its_code() -> None:
    def made(threshold: float) -> Any:
        return lambda images: [{"boxes": [], "scores": [], "labels": []} for _ in images if threshold]

    def prints(function: Any, **options: Any) -> str:
        return function_model(function, **options).fingerprint

    assert prints(made(0.3)) == prints(made(0.3)) != prints(made(0.4))
    assert prints(boxes) != prints(made(0.3))
    assert prints(boxes, classes=["a"]) != prints(boxes)
    with pytest.raises(sp.StormproofError, match="is not a model: it is not callable"):
        sp.open_model(3)  # type: ignore[arg-type]


def test_mistakes_raise_clear_errors(scene: str, noise: sp.Run) -> None:
    for call, words in (
        (lambda: sp.open_dataset(scene, limit=0), "limit=0"),
        (lambda: sp.open_dataset([1, 2]), "not int"),
        (lambda: sp.open_dataset(3), "is not a dataset"),  # type: ignore[arg-type]
        (lambda: noise.predictions("snow@1"), "was not run under snow@1"),
        (lambda: noise.score()["APP"], "Did you mean 'AP'"),
        (lambda: sp.corrupt(np.zeros((8, 8), np.uint8), "fog"), "names 5 conditions"),
        (lambda: sp.Run(noise.folder / "no"), "is not a run folder"),
    ):
        with pytest.raises(sp.StormproofError, match=words):
            call()


def test_a_script_needs_no_guard(scene: str, tmp_path: Path) -> None:
    """Workers do not run the script again."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import stormproof as sp\nprint('started')\n"
        f"run = sp.run({f'{MODELS}:contrast_boxes'!r}, {scene!r}, conditions='contrast@1', limit=2, "
        "workers=1, out='run')\n"
        "print(run)\n"
    )
    done = subprocess.run(
        [sys.executable, script.name], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("started") == 1
    assert "2 images × 2 conditions" in done.stdout


def test_the_package_is_a_command_and_typed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stormproof", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"stormproof {sp.__version__}\n"
    assert (Path(sp.__file__).parent / "py.typed").exists()
