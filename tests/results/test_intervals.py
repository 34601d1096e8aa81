"""Replicates of runs: weights of ones are Scores in every measure and every aggregate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from metrics.crowds import crowded_set, repeated
from engine.scenes import write_scene, write_street
from results.conftest import MODELS
from stormproof.cli import app
from stormproof.core.errors import InvalidOption
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.metrics.records import Detections
from stormproof.metrics.roc import detection_rates, fix_sensitivities
from stormproof.results import resample as room
from stormproof.results.grids import aggregated, flat
from stormproof.results.intervals import differences, intervals
from stormproof.results.measures import people
from stormproof.results.rates import average_rates, fix_thresholds, judge
from stormproof.results.resample import resample
from stormproof.results.run import Run
from stormproof.results.truths import only
from stormproof.results.weights import poisson_weights


def ones(ids, *, replicates, seed):
    return np.ones((2, len(ids)), np.uint8)


@pytest.mark.parametrize(("model", "on"), [("contrast_masks", "scene"), ("other_names", "street")])
def test_weights_of_one_give_the_scores_of_a_run(make, monkeypatch, model, on):
    run = make(model, on)
    scores = Run(run).score()
    monkeypatch.setattr(room, "poisson_weights", ones)
    found = resample(run)
    assert {"scene": {"AP", "APs", "E", "mask AP"}, "street": {"mIoU"}}[on] <= {*found.cells}
    for measure, cells in found.cells.items():
        expected = scores.cells[measure]
        assert {text: v[0] for text, v in cells.items()} == pytest.approx(expected, abs=1e-12, nan_ok=True)
        totals = flat(scores.aggregates[measure])
        spread = {name: v[0] for name, v in aggregated(measure, cells).items()}
        assert {name: spread[name] for name in totals} == pytest.approx(totals, abs=1e-12, nan_ok=True)
    for measure, cells in found.per_class.items():
        for text, values in cells.items():
            expected = [scores.per_class[measure][text].get(name, np.nan) for name in found.classes[measure]]
            assert values[0] == pytest.approx(expected, abs=1e-12, nan_ok=True), (measure, text)


def test_intervals_stand_around_the_scores(make):
    run = make("contrast_boxes")
    scores, found = Run(run).score(), resample(run)
    said = intervals(scores, found)
    mean = said.aggregates["AP"]["mean"]
    assert mean.low < scores.aggregates["AP"]["mean"] == mean.estimate < mean.high
    assert set(said.aggregates["AP"]) == set(flat(scores.aggregates["AP"]))
    assert "CE/fog" in said.aggregates["E"]
    assert said.warning is not None
    assert "8 images" in said.warning
    assert said.as_dict()["aggregates"]["AP"]["mean"]["estimate"] == mean.estimate


def test_intervals_are_of_the_suite_that_the_scores_are_of(make):
    run = make("contrast_boxes", name="noise-and-fog", conditions=["noise,fog@3"])
    scores = Run(run).score()
    mpc = intervals(scores, resample(run)).aggregates["AP"]["mPC"]
    assert mpc.low < scores.aggregates["AP"]["mPC"] == mpc.estimate < mpc.high


def test_cd_and_rcd_beside_a_reference(make, monkeypatch):
    run, other = (
        make(model, "street", name=f"{model}-noise", conditions=["noise"])
        for model in ("thresholds", "other_names")
    )
    scores = Run(run).score(reference=other)
    monkeypatch.setattr(room, "poisson_weights", ones)
    said = intervals(scores, resample(run), (Run(other).score(), resample(other)))
    found = said.aggregates["mIoU"]
    assert {"CD/shot_noise", "mCD", "rCD/gaussian_noise", "mrCD", "delta_P", "delta_mPC"} <= {*found}
    assert all(abs(interval.bias) < 1e-12 for interval in found.values() if not np.isnan(interval.bias))


def test_a_run_does_not_differ_from_itself_and_pairs_keep_their_correlation(make):
    run = make("contrast_boxes")
    known = Run(run).score(), resample(run)
    found = differences(known, known)["AP"]
    assert found["mPC"].interval.se == 0
    assert found["mPC"].holm == 1
    assert {"P", "rPC", "by_corruption/fog", "fog@3"} <= {*found}


def test_pairs_need_the_same_images(make):
    boxes, maps = make("contrast_boxes"), make("other_names", "street")
    with pytest.raises(InvalidOption, match="same images"):
        differences((Run(boxes).score(), resample(boxes)), (Run(maps).score(), resample(maps)))


@pytest.mark.parametrize("seed", range(3))
def test_detection_rates_of_copies(seed):
    rng = np.random.default_rng(seed)
    truth, clean = crowded_set(14, rng)
    weaker = np.round(clean.scores * rng.random(len(clean)), 2)
    worse = Detections(clean.image, clean.boxes, weaker, clean.labels)
    times = rng.poisson(1.5, 14)
    weights = times[None].astype(np.uint8)
    shown = only(truth, 0)
    thresholds = fix_thresholds(judge(shown, people(clean, 0)), weights)
    adr = average_rates(shown, judge(shown, people(worse, 0)), weights, thresholds)
    wide, wide_clean = repeated(truth, clean, times)
    _, wide_worse = repeated(truth, worse, times)
    fixed = fix_sensitivities(only(wide, 0), people(wide_clean, 0))
    assert adr[0] == pytest.approx(
        detection_rates(only(wide, 0), people(wide_worse, 0), fixed).adr, abs=1e-12
    )


def test_weights_belong_to_images():
    many = poisson_weights([f"{i}" for i in range(300)], replicates=100, seed=3)
    few = poisson_weights(["7", "299"], replicates=40, seed=3)
    assert (few == many[:40, [7, 299]]).all()
    assert many.mean() == pytest.approx(1, abs=0.02)
    assert many.var() == pytest.approx(1, abs=0.05)
    assert (poisson_weights(["7"], replicates=40, seed=4) != few[:, :1]).any()


@pytest.fixture(scope="module")
def with_holes(tmp_path_factory):
    """Runs of which one image could not be read, on boxes with masks and on label maps."""
    made = {}
    for model, write in (("contrast_masks", write_scene), ("thresholds", write_street)):
        folder = tmp_path_factory.mktemp(model)
        data = write(folder / "data", images=8)
        (folder / "data" / "images" / "003.png").write_bytes(b"no image")
        settings = {"model": f"{MODELS}:{model}", "data": data, "out": str(folder / "run"),
                    "conditions": ["fog,gaussian_noise"], "engine": "local"}  # fmt: skip
        run_it(make_config(settings))
        made[model] = folder / "run"
    return made


@pytest.mark.parametrize("model", ["contrast_masks", "thresholds"])
def test_an_image_that_could_not_be_read_counts_nowhere(with_holes, monkeypatch, model):
    run = with_holes[model]
    scores = Run(run).score()
    spread = intervals(scores, resample(run))
    assert (spread.images, len(spread.left_out)) == (7, 1)
    assert spread.as_dict()["left_out"] == list(spread.left_out)
    monkeypatch.setattr(room, "poisson_weights", ones)
    for measure, cells in resample(run).cells.items():
        expected = scores.cells[measure]
        assert {text: v[0] for text, v in cells.items()} == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_the_weight_of_an_image_that_could_not_be_read_changes_nothing(with_holes, monkeypatch):
    found = []
    for heavy in (1, 100):
        weights = np.random.default_rng(0).poisson(1, (20, 8)).astype(np.uint8)
        weights[:, 3] = heavy
        monkeypatch.setattr(
            room, "poisson_weights", lambda ids, *, replicates, seed, weights=weights: weights
        )
        found.append(resample(with_holes["contrast_masks"]).cells)
    for measure, cells in found[0].items():
        for text, values in cells.items():
            assert np.array_equal(values, found[1][measure][text], equal_nan=True), (measure, text)


def test_pairs_leave_the_same_images_out(with_holes):
    run = with_holes["contrast_masks"]
    scores, holes = Run(run).score(), resample(run)
    assert differences((scores, holes), (scores, holes))["AP"]["mPC"].interval.se == 0
    whole = replace(holes, left_out=())
    with pytest.raises(InvalidOption, match=r"1 image could be read in one run and not in the other \(4\)"):
        differences((scores, holes), (scores, whole))


def test_left_out_images_are_said(with_holes):
    shown = CliRunner().invoke(app, ["score", str(with_holes["contrast_masks"]), "--interval"])
    assert shown.exit_code == 0, shown.output
    assert "7 images, 1 unreadable left out" in " ".join(shown.stdout.split())
    assert "1 image could not be read and is left out" in shown.stderr
