"""Replicates of runs: weights of ones are Scores in every measure and every aggregate."""

from __future__ import annotations

import numpy as np
import pytest

from confidence.crowds import crowded_set, repeated
from stormproof.confidence import resample as room
from stormproof.confidence.grids import aggregated, flat
from stormproof.confidence.intervals import differences, intervals
from stormproof.confidence.rates import average_rates, fix_thresholds, judge
from stormproof.confidence.resample import resample
from stormproof.confidence.weights import poisson_weights
from stormproof.errors import InvalidOption
from stormproof.metrics.records import Detections
from stormproof.metrics.roc import detection_rates, fix_sensitivities
from stormproof.scoring.measures import people
from stormproof.scoring.score import score_run
from stormproof.scoring.truths import only


def ones(ids, *, replicates, seed):
    return np.ones((2, len(ids)), np.uint8)


@pytest.mark.parametrize(("model", "on"), [("contrast_masks", "scene"), ("other_names", "street")])
def test_weights_of_one_give_the_scores_of_a_run(make, monkeypatch, model, on):
    run = make(model, on)
    scores = score_run(run)
    monkeypatch.setattr(room, "poisson_weights", ones)
    found = resample(run)
    assert {"scene": {"AP", "APs", "E", "mask AP"}, "street": {"mIoU"}}[on] <= {*found.by_measure}
    for measure, cells in found.by_measure.items():
        expected = scores.by_measure[measure]
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
    scores, found = score_run(run), resample(run)
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
    scores = score_run(run)
    mpc = intervals(scores, resample(run)).aggregates["AP"]["mPC"]
    assert mpc.low < scores.aggregates["AP"]["mPC"] == mpc.estimate < mpc.high


def test_cd_and_rcd_beside_a_reference(make, monkeypatch):
    run, other = (
        make(model, "street", name=f"{model}-noise", conditions=["noise"])
        for model in ("thresholds", "other_names")
    )
    scores = score_run(run, reference=other)
    monkeypatch.setattr(room, "poisson_weights", ones)
    said = intervals(scores, resample(run), (score_run(other), resample(other)))
    found = said.aggregates["mIoU"]
    assert {"CD/shot_noise", "mCD", "rCD/gaussian_noise", "mrCD", "delta_P", "delta_mPC"} <= {*found}
    assert all(abs(interval.bias) < 1e-12 for interval in found.values() if not np.isnan(interval.bias))


def test_a_run_does_not_differ_from_itself_and_pairs_keep_their_correlation(make):
    run = make("contrast_boxes")
    known = score_run(run), resample(run)
    found = differences(known, known)["AP"]
    assert found["mPC"].interval.se == 0
    assert found["mPC"].holm == 1
    assert {"P", "rPC", "by_corruption/fog", "fog@3"} <= {*found}


def test_pairs_need_the_same_images(make):
    boxes, maps = make("contrast_boxes"), make("other_names", "street")
    with pytest.raises(InvalidOption, match="same images"):
        differences((score_run(boxes), resample(boxes)), (score_run(maps), resample(maps)))


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


def test_intervals_of_a_run_that_leaves_images_out_are_refused(make, monkeypatch):
    run = make("contrast_boxes")
    monkeypatch.setattr(room, "unreadable_images", lambda run, record: {3: "3.png"})
    with pytest.raises(InvalidOption, match=r"1 images could not be read \(3\.png\)"):
        resample(run)
