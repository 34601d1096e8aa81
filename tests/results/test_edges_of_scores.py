"""Runs at the edges: PASCAL's headline has all that AP has; a clean score of 0; nothing found at all."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import yaml

from helpers import typed
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.datasets import read_dataset
from stormproof.engine.config import make_config
from stormproof.engine.run import execute, executor_for, run_to_precision
from stormproof.engine.run import run as run_it
from stormproof.report.comparison import compare_view
from stormproof.report.sources import scores_of
from stormproof.report.tables import plus_minus
from stormproof.report.view import make_view
from stormproof.results.estimate import estimate_run
from stormproof.results.interval import unseen_share
from stormproof.results.run import Run

VOC07 = "VOC07 AP50"

say = partial(typed.say, code=(0, 1, 3))  # whatever a gate says


def write_pascal(folder: Path, images: int) -> Path:
    """The scene of other tests in the layout of VOC 2007."""
    data = read_dataset(write_scene(folder / "scene", images=images))
    root = folder / "VOC2007"
    for name in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / name).mkdir(parents=True)
    names = []
    for i in range(images):
        sample = data[i]
        name = f"{i:06d}"
        names.append(name)
        PIL.Image.fromarray(sample.image).save(root / "JPEGImages" / f"{name}.jpg", quality=95)
        assert sample.truth.instances is not None
        things = "".join(
            f"<object><name>{data.classes[label]}</name><difficult>0</difficult><bndbox>"
            f"<xmin>{x1 + 1:g}</xmin><ymin>{y1 + 1:g}</ymin><xmax>{x2:g}</xmax><ymax>{y2:g}</ymax>"
            "</bndbox></object>"
            for (x1, y1, x2, y2), label in zip(
                sample.truth.instances.boxes.tolist(), sample.truth.instances.labels.tolist(), strict=True
            )
        )
        height, width = sample.image.shape[:2]
        size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
        text = f"<annotation><filename>{name}.jpg</filename>{size}{things}</annotation>"
        (root / "Annotations" / f"{name}.xml").write_text(text)
    (root / "ImageSets" / "Main" / "test.txt").write_text("\n".join(names) + "\n")
    return root


@pytest.fixture(scope="module")
def pascal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pascal(tmp_path_factory.mktemp("pascal"), images=20)


def settings(root: Path, out: Path, **more: Any) -> dict[str, Any]:
    return {"model": f"{MODELS}:named_boxes", "benchmark": "pascal-c", "root": str(root), "out": str(out),
            "conditions": ["fog,contrast"], "engine": "local", **more}  # fmt: skip


def test_pascal_c_has_intervals_and_a_gate(pascal: Path, tmp_path: Path) -> None:
    run_it(make_config(settings(pascal, tmp_path / "run")))
    scores = Run(tmp_path / "run").score(interval=True)
    assert scores.headline == VOC07
    for name in ("mean", "P", "fog@3", "by_corruption/fog"):
        interval = scores.interval(name)
        assert interval.low < interval.estimate < interval.high, name
        assert not math.isnan(interval.se)
    assert scores.replicates is not None
    assert {"cat", "dog"} <= {*scores.replicates.per_class[VOC07]["clean"]}
    clean = plus_minus(scores.interval("P"))
    assert clean in say("score", tmp_path / "run", "--interval", "--all")
    rows = [
        {"id": "R1", "metric": "mPC", "at_least": 0.9},
        {"id": "R2", "metric": VOC07, "condition": "fog@5", "at_least": 0.0001},
    ]
    path = tmp_path / "requirements.yaml"
    path.write_text(yaml.safe_dump({"requirements": rows}))
    verdicts = json.loads(say("check", tmp_path / "run", "--require", path, "--json"))
    assert [row["verdict"] for row in verdicts] == ["inconclusive"] * 2  # the interval is not calibrated
    assert "not calibrated" in verdicts[0]["doubt"]
    assert [row["estimate"] for row in verdicts] == [scores.mean(VOC07), scores.per_condition[VOC07]["fog@5"]]
    assert (scores - scores)[VOC07]["mean"].interval.estimate == 0


def test_pascal_c_is_estimated(pascal: Path, tmp_path: Path) -> None:
    config = make_config(settings(pascal, tmp_path / "run", precision=25.0))
    _, found = run_to_precision(config, lambda p: execute(p, executor_for(p.config, len(p.chunks))))
    assert found is not None
    assert found.shares < 20
    assert "ESTIMATE" in say("score", tmp_path / "run")
    run_it(make_config(settings(pascal, tmp_path / "run")))
    scores = Run(tmp_path / "run").score()
    assert found.mpc.estimate == pytest.approx(scores.mean(VOC07), abs=5 * found.mpc.se)
    assert found.clean == pytest.approx(scores.p)
    assert estimate_run(Run(tmp_path / "run")).mpc.estimate == pytest.approx(scores.mean(VOC07), abs=1e-12)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs on the same scene by model: two that score 0 on clean images, and another one."""
    folder = tmp_path_factory.mktemp("zero")
    usual = {"data": write_scene(folder / "scene", 6), "conditions": ["noise,fog@3"], "engine": "local"}
    made = {name: folder / name for name in ("nothing", "wrong_place", "contrast_boxes")}
    for name, out in made.items():
        run_it(make_config({**usual, "model": f"{MODELS}:{name}", "out": str(out)}))
    return made


@pytest.mark.parametrize("model", ["nothing", "wrong_place"])
def test_a_clean_score_of_zero_is_shown_everywhere(runs: dict[str, Path], tmp_path: Path, model: str) -> None:
    """No traceback, no division by zero, and no sentence that is not true."""
    nothing, other = runs[model], runs["contrast_boxes"]
    scores = Run(nothing).score(interval=True)
    assert (scores.p, scores.mpc) == (0, 0)
    assert math.isnan(scores.rpc)
    printed = say("score", nothing, "--interval")
    assert "nan" not in printed
    assert "inf" not in printed.lower()
    assert json.loads(say("score", nothing, "--json"))["aggregates"]["AP"]["rPC"] is None
    for words in (("show", nothing), ("compare", nothing, other), ("compare", other, nothing, "--interval")):
        shown = say(*words)
        assert "nan" not in shown.split()
        assert "inf" not in shown
    for first, second in ((nothing, other), (other, nothing), (nothing, nothing)):
        view = compare_view(*(scores_of(str(each), interval=True)[0] for each in (first, second)))
        whole = make_view([scores_of(str(each))[0] for each in (first, second)])
        for line in (*view.sentences, *whole.sentences, *view.notices):
            assert "nan" not in line.split()
            assert "inf" not in line
    alone = make_view(scores_of(str(nothing)))
    assert "clean images only" not in " ".join(alone.sentences)  # corrupted ones were scored, too
    say("report", nothing, other, "--out", tmp_path / "page.html", "--images", "0")
    say("submit", nothing, "--out", tmp_path / "entry.json")
    assert json.loads((tmp_path / "entry.json").read_text())["rPC"] is None
    path = tmp_path / "requirements.yaml"
    rows = [{"id": f"R{least}", "metric": "mPC", "at_least": least} for least in (0.3, 0.9)]
    path.write_text(yaml.safe_dump({"requirements": rows}))
    verdicts = json.loads(say("check", nothing, "--require", path, "--json"))
    assert [each["estimate"] for each in verdicts] == [0, 0]
    # Six images on which nothing is found prove that less than 46 % would be found, and no more.
    assert [each["verdict"] for each in verdicts] == ["inconclusive", "fail"]
    assert scores.interval("mPC").high == pytest.approx(unseen_share(6))


def test_a_clean_score_of_zero_can_be_a_reference(runs: dict[str, Path]) -> None:
    nothing, other = runs["nothing"], runs["contrast_boxes"]
    scores = Run(other).score(reference=nothing, interval=True)
    found = scores.aggregates["AP"]
    assert found["mCD"] == pytest.approx(np.mean([found["CD"][name] for name in found["CD"]]))
    assert math.isnan(found["mrCD"])  # what loses nothing is no measure of loss
    assert "nan" not in say("score", other, "--reference", nothing)


def test_a_share_of_a_zero_score_is_estimated(runs: dict[str, Path]) -> None:
    found = estimate_run(Run(runs["nothing"]))
    assert (found.mpc.estimate, found.clean) == (0, 0)
    assert math.isnan(found.rpc.estimate)
