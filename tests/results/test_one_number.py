"""One number, wherever it is printed: a run of kamann's benchmark, and runs thrown together at random."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.one_number import agree, agree_with_options, say
from helpers.scenes import write_scene, write_street
from helpers.scored_models import MODELS
from stormproof.corruptions.suites import KAMANN
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.metrics.metric import mean_of_known
from stormproof.results.estimate import estimate_run
from stormproof.results.run import Run

NOISE = {f"{name}@{s}" for name in KAMANN["noise"] for s in (4, 5)}


def ran(out: Path, model: str, **settings: Any) -> Path:
    run_it(make_config({"model": f"{MODELS}:{model}", "engine": "local", "out": str(out), **settings}))
    return out


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kamann") / "street"
    write_street(folder, images=3)
    return folder


@pytest.fixture(scope="module")
def benchmark(street: Path) -> Path:
    return ran(street.parent / "benchmark", "thresholds", benchmark="camvid-seg-c", root=str(street))


@pytest.fixture(scope="module")
def suite(street: Path) -> Path:
    return ran(street.parent / "suite", "other_names", data=f"camvid:{street}", conditions=["kamann"])


@pytest.mark.parametrize("which", ["benchmark", "suite"])
def test_strong_noise_is_left_out_of_every_mean_of_kamann(
    request: pytest.FixtureRequest, which: str, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(which)
    scores = agree(folder, tmp_path)
    assert scores.headline == "mIoU"
    cells = scores.per_condition["mIoU"]
    assert len(cells) == 94  # strong noise is run and shown, and counts in no mean
    names = {text.partition("@")[0] for text in cells} - {"clean"}
    by_name = {
        name: np.mean([v for t, v in cells.items() if t.partition("@")[0] == name and t not in NOISE])
        for name in names
    }
    assert scores.mpc == pytest.approx(np.mean(list(by_name.values())))
    assert scores.by_corruption("mIoU") == pytest.approx(by_name)
    assert scores.mpc != pytest.approx(np.mean([v for t, v in cells.items() if t != "clean"]))
    found = estimate_run(Run(folder))
    assert found.mpc.estimate == pytest.approx(scores.mpc, abs=1e-12)
    assert found.mpc.half_width == 0
    assert found.rpc.estimate == pytest.approx(scores.rpc, abs=1e-12)
    assert {n: i.estimate for n, i in found.by_corruption.items()} == pytest.approx(by_name)


def test_replicates_of_mean_cd_leave_psf_blur_out_too(benchmark: Path, suite: Path) -> None:
    """mCD is the mean of CD over the other 18 in the score, and in every replicate."""
    scores = Run(benchmark).score(replicates=50, reference=suite)
    values, spread = scores.values("mIoU"), scores.spread("mIoU")
    for name in ("CD", "rCD"):
        members = [key for key in spread if key.startswith(f"{name}/") and key != f"{name}/psf_blur"]
        assert len(members) == 18
        known = [values[key] for key in members if np.isfinite(values[key])]
        assert values[f"m{name}"] == pytest.approx(np.mean(known))
        drawn = np.array([spread[key] for key in members])
        assert spread[f"m{name}"] == pytest.approx(mean_of_known(drawn, axis=0), nan_ok=True)
    interval = scores.interval("mCD")
    assert interval.low <= values["mCD"] == interval.estimate <= interval.high


def test_part_of_kamanns_benchmark_is_averaged_without_strong_noise(street: Path, tmp_path: Path) -> None:
    folder = ran(
        tmp_path / "part", "thresholds", benchmark="camvid-seg-c", root=str(street),
        conditions=["gaussian_noise,fog"],
    )  # fmt: skip
    scores = agree(folder, tmp_path)
    assert scores.over.mean_name == "mean over 8 conditions"  # of ten that were run
    cells = scores.per_condition["mIoU"]
    counted = [v for text, v in cells.items() if text != "clean" and text not in NOISE]
    assert len(counted) == 8
    assert scores.mean("mIoU") == pytest.approx(np.mean(counted))
    assert estimate_run(Run(folder)).mpc.estimate == pytest.approx(np.mean(counted), abs=1e-12)
    assert "mean over 8 conditions" in " ".join(say("score", folder, "--all").replace("┃", " ").split())


POOL = (
    "noise", "blur@1-2", "fog", "snow@2", "gaussian_noise@3", "gaussian_noise[sigma=0.1]", "contrast@1-4",
    "speckle_noise", "elastic_transform@3[labels=moved]", "brightness@5", "psf_blur",
    "jpeg_compression[quality=30]", "fog@2.5",
)  # fmt: skip
OWN = {
    "street": ("gaussian_noise", "fog@1-3", "psf_blur,shot_noise@3-5"),
    "scene": ("noise", "fog", "frost@2"),
}


def thrown(dice: random.Random, folder: Path) -> Path:
    """A run of anything on anything."""
    model = dice.choice(["contrast_boxes", "contrast_masks", "some_masks", "cat_boxes", "thresholds"])
    images, data = dice.randint(3, 7), folder / "data"
    settings: dict[str, Any] = {"seed": dice.randint(0, 9), "chunk": dice.randint(1, 4)}
    kind = "street" if model == "thresholds" else "scene"
    spec = write_street(data, images=images) if kind == "street" else write_scene(data, images=images)
    if kind == "scene" and model != "cat_boxes" and dice.random() < 0.5:
        file = data / "instances.json"
        file.write_text(file.read_text().replace('"cat"', '"person"'))
    if dice.random() < 0.3:
        (data / "images" / "002.png").write_bytes(b"no image")
    if dice.random() < 0.4:  # part of a benchmark, on its dataset's layout
        if kind == "scene":
            (data / "images").rename(data / "val2017")
            (data / "instances.json").rename(data / "instances_val2017.json")
        own = {"street": ["camvid-seg-c"], "scene": ["coco-c"]}[kind]
        settings |= {"benchmark": dice.choice(own), "root": str(data), "conditions": [dice.choice(OWN[kind])]}
    else:
        settings |= {"data": spec, "conditions": [",".join(dice.sample(POOL, dice.randint(1, 3)))]}
    if dice.random() < 0.3:
        settings["limit"] = images - 1
    return ran(folder / "run", model, **settings)


# Between them: every model of the list, suites and benchmarks, limits, broken images, options.
@pytest.mark.parametrize("seed", [0, 2, 5, 6, 7, 8, 10, 25])
def test_random_runs_show_one_number_everywhere(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    folder = thrown(dice, tmp_path)
    if dice.random() < 0.5:  # the options of other scores must not show
        agree_with_options(folder, dice)
        Run(folder).score(conditions=Run(folder).conditions[:2])
    scores = agree(folder, tmp_path)
    others = [m for m in ("AP50", "E", "ADR", "VOC07 AP50", "mask AP") if scores.score(m) > 0]
    if others:
        agree(folder, tmp_path, dice.choice(others))
    whole = estimate_run(Run(folder)).mpc
    if np.isfinite(whole.estimate):
        assert whole.estimate == pytest.approx(scores.mean(scores.headline), abs=1e-12)
        assert whole.half_width == 0
