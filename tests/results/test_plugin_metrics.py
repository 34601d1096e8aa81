"""Metrics of others, weighted and not: scored, with an interval, a gate, a difference and an estimate.

The code is that of docs/adding/metric.md.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from helpers.crowds import crowded_set
from helpers.forked import outcome
from helpers.one_number import agree
from helpers.plugins import AREA, F1, MEDIAN
from helpers.scenes import write_scene, write_street
from helpers.scored_models import MODELS
from helpers.typed import say
from stormproof.core.errors import InvalidOption
from stormproof.corruptions.plugins import load_plugins
from stormproof.engine.config import make_config
from stormproof.engine.run import execute, executor_for, run_to_precision
from stormproof.engine.run import run as run_it
from stormproof.metrics.coco import box_numbers
from stormproof.metrics.inputs import Objects
from stormproof.metrics.matching import FALSE, TRUE, judge_voc
from stormproof.metrics.metric import METRICS, Measure, Scored, metric
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.results.estimate import estimate_run
from stormproof.results.run import Run


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(F1 + "\n\n" + MEDIAN)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = {"model": f"{MODELS}:sure_boxes", "data": write_scene(tmp_path / "scene", images=8),
                "conditions": ["fog,contrast@1-2"], "engine": "local"}  # fmt: skip
    run_it(make_config({**settings, "out": str(tmp_path / "run")}))
    return tmp_path / "run"


def test_a_metric_of_a_file_is_scored_with_intervals_and_differences(folder: Path, plugin: Path) -> None:
    assert "F1" not in Run(folder).score().per_condition
    printed = json.loads(say("score", folder, "--plugin", plugin, "--measure", "F1", "--interval", "--json"))
    scores = Run(folder).score(interval=True)
    assert printed["headline"] == "F1"
    for name in ("F1", "median error"):
        assert printed["scores"][name] == scores.per_condition[name]
        mean = scores.interval("mean", name)
        assert mean.low < mean.estimate == scores.aggregates[name]["mean"] < mean.high
        assert (scores - scores)[name]["mean"].interval.estimate == 0
    assert "CE" in scores.aggregates["median error"]  # an error: less is better
    by_hand = _f1_by_hand(Run(folder))
    assert scores.per_condition["F1"]["fog@3"] == pytest.approx(by_hand)
    agree(folder, folder.parent, "F1")


def _f1_by_hand(run: Run) -> float:
    said = run.predictions("fog@3")
    truth = DetectionTruth.of(
        ((name, run.dataset.truth(i).instances) for i, name in enumerate(run.dataset.ids)),
        run.dataset.classes,
    )
    found = Detections.of(said, truth)
    verdicts = judge_voc(truth, found, iou=0.5)[found.scores >= 0.5]
    hits, errors = (verdicts == TRUE).sum(), (verdicts == FALSE).sum()
    return float(2 * hits / (hits + errors + len(truth)))


def test_a_metric_of_a_file_can_be_required(folder: Path, plugin: Path, tmp_path: Path) -> None:
    load_plugins([str(plugin)])
    scores = Run(folder).score(interval=True)
    rows = [
        {"id": "R1", "metric": "F1", "condition": "fog@3", "at_least": 0.001},
        {"id": "R2", "metric": "mPC", "of": "F1", "at_least": 0.001},
        {"id": "R3", "metric": "median error", "condition": "clean", "at_most": 0.999},
        {"id": "R4", "metric": "F1", "condition": "fog@5", "at_most_loss": 0.99},
    ]
    path = tmp_path / "requirements.yaml"
    path.write_text(yaml.safe_dump({"requirements": rows}))
    verdicts = json.loads(say("check", folder, "--require", path, "--plugin", plugin, "--json", code=3))
    assert [row["verdict"] for row in verdicts] == ["inconclusive"] * 4  # it declares nothing about intervals
    assert verdicts[0]["doubt"] == "the interval of F1 is not calibrated"
    assert verdicts[0]["estimate"] == scores.per_condition["F1"]["fog@3"]
    assert verdicts[1]["estimate"] == scores.mean("F1")
    say(
        "evidence", folder, "--require", path, "--plugin", plugin, "--out", tmp_path / "e.json", "--pixels", 0
    )
    for words in (("show", folder), ("compare", folder, folder)):
        assert "F1" in say(*words, "--measure", "F1", "--plugin", plugin)
    page = tmp_path / "page.html"
    say("report", folder, "--measure", "F1", "--plugin", plugin, "--out", page, "--images", 0)
    assert "F1" in page.with_suffix(".json").read_text()


@pytest.mark.parametrize("measure", ["F1", "median error"])
def test_a_run_continues_until_a_plugins_measure_is_precise(
    tmp_path: Path, plugin: Path, measure: str
) -> None:
    settings = {"model": f"{MODELS}:sure_boxes", "data": write_scene(tmp_path / "scene", images=30),
                "conditions": ["fog@1,contrast@2"], "engine": "local", "out": str(tmp_path / "run"),
                "plugin": [str(plugin)], "measure": measure, "precision": 12.0}  # fmt: skip
    _, found = run_to_precision(
        make_config(settings), lambda p: execute(p, executor_for(p.config, len(p.chunks)))
    )
    assert found is not None
    assert 100 * found.mpc.half_width <= 12
    assert Run(tmp_path / "run").record.metric == measure
    assert f"{100 * found.mpc.estimate:.2f}" in say("score", tmp_path / "run", "--plugin", plugin)
    run_it(make_config(settings | {"precision": 0.0}))
    scores = Run(tmp_path / "run").score()
    assert scores.headline == measure
    assert found.mpc.estimate == pytest.approx(scores.mean(measure), abs=5 * found.mpc.se)
    assert estimate_run(Run(tmp_path / "run")).mpc.estimate == pytest.approx(scores.mean(measure), abs=1e-12)


def test_scores_follow_the_code_of_a_metric(folder: Path, plugin: Path) -> None:
    """The function, a constant that it uses, and what it reads: scores stored before are not believed."""
    load_plugins([str(plugin)])
    found = [Run(folder).score().per_condition["F1"]["clean"]]
    for k, change in enumerate(
        (("MIN_SCORE = 0.5", "MIN_SCORE = 0.8"), ("2 * hits, hits", "3 * hits, hits"))
    ):
        plugin.write_text(plugin.read_text().replace(*change))
        os.utime(plugin, (k + 1, k + 1))  # another time, so that the file is run again
        load_plugins([str(plugin)])
        found.append(Run(folder).score().per_condition["F1"]["clean"])
    assert len({*found}) == 3
    assert found[2] == pytest.approx(1.5 * found[1])
    plugin.write_text(
        plugin.read_text().replace('@metric("boxes", Measure("F1"', '@metric("masks", Measure("F1"')
    )
    os.utime(plugin, (9, 9))
    load_plugins([str(plugin)])
    assert "F1" not in Run(folder).score().per_condition  # there are no masks


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_metric_without_weights_is_computed_on_repeated_images(seed: int, tied: bool) -> None:
    """COCO's AP declared a second time, without weights: the same score, and the same replicates.

    Where scores tie, the score itself is the same: images stand in the order of their numbers. In replicates
    the detections of two copies come in turns, which a weight cannot say.
    """
    rng = np.random.default_rng(seed)
    truth, found = crowded_set(9, rng)
    truth = replace(truth, ids=tuple(str(n) for n in rng.permutation(np.arange(5, 14))))
    if tied:
        found = replace(found, scores=found.scores.round(1))

    @metric("boxes", Measure("AP again", "AP, without weights", section="boxes"), weighted=False)
    def again(objects: Objects) -> dict[str, float]:
        return {"AP again": box_numbers(objects.truth, objects.found)["AP"]}

    weights = np.concatenate([np.ones((1, 9)), rng.poisson(1, (5, 9))]).astype(np.uint8)
    numbers = Objects(truth, found).scored(weights).numbers
    last = 1 if tied else None
    assert numbers["AP again"][:last] == pytest.approx(numbers["AP"][:last], abs=1e-12)


def test_refuses_a_metric_that_does_not_return_a_declared_number(folder: Path) -> None:
    @metric("boxes", Measure("one", "given", section="boxes"), Measure("two", "not", section="boxes"))
    def forgetful(objects: Objects, weights: np.ndarray) -> Scored:
        return Scored({"one": np.ones(len(weights))})

    with pytest.raises(InvalidOption, match=r"The metric 'forgetful' declares 'two' but did not return it"):
        Run(folder).score()


def test_a_file_that_declares_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    with pytest.raises(InvalidOption, match="declares neither a corruption nor a metric"):
        load_plugins([str(tmp_path / "empty.py")])


def test_a_package_offers_metrics_by_entry_point(folder: Path, plugin: Path, tmp_path: Path) -> None:
    """Installed, so nothing is to be named; in a process of its own, which knows no plugin from before."""
    place = tmp_path / "installed"
    about = place / "medians-1.0.dist-info"
    about.mkdir(parents=True)
    (place / "medians.py").write_text(plugin.read_text())
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: medians\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[stormproof.metrics]\nmedians = medians\n")
    code, said = outcome(["score", str(folder), "--json"], tmp_path, path=str(place))
    assert code == 0, said
    found = json.loads(said)["scores"]
    load_plugins([str(plugin)])
    scores = Run(folder).score()
    assert {name: found[name] for name in ("F1", "median error")} == {
        name: scores.per_condition[name] for name in ("F1", "median error")
    }


HEIGHTS = '''
import numpy as np

from stormproof.metrics.metric import detail, ratio, weighted_sums


@detail("heights", "boxes")
def heights(objects, weights):
    """The share of flat boxes, by label, and the names of the labels."""
    boxes, images = objects.truth.sides, len(objects.truth.ids)
    flat = np.bincount(objects.truth.image[boxes[:, 1] <= boxes[:, 0]], minlength=images).astype(float)
    every = np.bincount(objects.truth.image, minlength=images).astype(float)
    sums = weighted_sums(weights, np.stack([flat, every], axis=1))
    return {"names": list(objects.truth.classes), "flat": ratio(sums[:, :1], sums[:, 1:]), "tallest": np.inf}
'''


def test_details_of_a_plugin_are_stored_with_their_intervals(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "heights.py").write_text(HEIGHTS)
    load_plugins([str(tmp_path / "heights.py")])
    made = Run(folder).score(interval=True).detail("heights")
    assert {*made} == {*Run(folder).conditions}
    assert made["clean"] == {
        "names": ["cat", "dog"],
        "flat": [1.0],
        "low": [1.0],
        "high": [1.0],
        "tallest": math.inf,
    }
    assert repr(Run(folder).score(interval=True).detail("heights")) == repr(made)


def test_a_metric_of_label_maps_is_scored_by_class(tmp_path: Path) -> None:
    """Its classes are those of the maps, though it is not what a task shows by class."""
    (tmp_path / "area.py").write_text(AREA)
    settings = {"model": f"{MODELS}:thresholds", "data": write_street(tmp_path / "street"),
                "conditions": ["contrast@3"], "engine": "local"}  # fmt: skip
    run_it(make_config({**settings, "out": str(tmp_path / "run")}))
    load_plugins([str(tmp_path / "area.py")])
    try:
        run = Run(tmp_path / "run")
        scores = run.score(interval=True)
    finally:
        for name in [each for each in METRICS.declared if each.endswith("area_error")]:
            METRICS.remove(name)
    truth, said = np.zeros(3), np.zeros(3)
    for name, answer in run.predictions("contrast@3").items():
        labels = run.sample(name, "contrast@3").truth.semantic.labels
        truth += np.bincount(labels.ravel(), minlength=3)[:3]
        said += np.bincount(answer.semantic[labels < 3], minlength=3)[:3]
    by_class = scores.per_class["area error"]["contrast@3"]
    assert by_class == pytest.approx(
        dict(zip(run.dataset.semantic_classes, abs(said - truth) / truth, strict=True))
    )
    assert scores.per_condition["area error"]["contrast@3"] == pytest.approx(
        abs(said - truth).sum() / truth.sum()
    )
    for name, one in scores.replicates.per_class["area error"]["contrast@3"].items():
        assert one.low <= one.estimate == by_class[name] <= one.high  # an error may exceed 1
