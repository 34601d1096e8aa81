"""Degradation against a reference, α sequences, prediction and correlation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption
from stormproof.metrics.correlation import correlate, correlation_table
from stormproof.metrics.degradation import Degradation, by_category, cd, degradation, mean_over, rcd
from stormproof.metrics.grid import Grid
from stormproof.metrics.performance import delta_mpc, delta_p
from stormproof.metrics.prediction import normalise, predict, r_squared
from stormproof.metrics.sequences import curve_of, distance_matrix, relative_performance


def scores(clean, **corruptions):
    return Grid.of(
        {
            "clean": clean,
            **{
                f"{name}@{s}": value
                for name, values in corruptions.items()
                for s, value in enumerate(values, 1)
            },
        }
    )


def test_noise_is_averaged_over_three_severities():
    d = degradation(scores(0.8, gaussian_noise=(0.6, 0.5, 0.4, 0.0, 0.0), fog=(0.7, 0.6, 0.5, 0.4, 0.3)))
    assert d.clean == pytest.approx(0.2)
    assert d.corrupted == pytest.approx({"gaussian_noise": 0.5, "fog": 0.5})


def test_noise_needs_no_more_than_three_severities_and_fog_all_five():
    short = degradation(scores(0.8, shot_noise=(0.6, 0.5, 0.4)))
    assert short.corrupted == pytest.approx({"shot_noise": 0.5})
    with pytest.raises(IncompleteGrid) as caught:
        degradation(scores(0.8, shot_noise=(0.6, 0.5), fog=(0.7, 0.6, 0.5)))
    assert caught.value.missing == ("shot_noise@3", "fog@4", "fog@5")


def test_cd_and_rcd_by_hand():
    model = Degradation(0.2, {"fog": 0.5, "snow": 0.9})
    reference = Degradation(0.3, {"fog": 0.4, "snow": 0.9})
    assert cd(model, reference) == pytest.approx({"fog": 1.25, "snow": 1.0})
    assert rcd(model, reference) == pytest.approx({"fog": 3.0, "snow": 0.7 / 0.6})


def test_a_reference_that_hardly_loses_gives_no_rcd():
    model = Degradation(0.2, {"psf_blur": 0.25, "fog": 0.4})
    reference = Degradation(0.3, {"psf_blur": 0.305, "fog": 0.4})
    relative = rcd(model, reference)
    assert math.isnan(relative["psf_blur"])
    assert mean_over(relative) == pytest.approx(2)
    assert by_category(relative)["blur"].count == 0
    assert math.isnan(by_category(relative)["blur"].mean)
    assert rcd(model, reference, least=0.001)["psf_blur"] == pytest.approx(10)


def test_categories_carry_a_standard_deviation():
    spread = by_category({"snow": 1.0, "fog": 2.0, "frost": 6.0, "geometric_distortion": 0.5})
    assert spread["weather"].mean == 3
    assert spread["weather"].std == pytest.approx(np.std([1, 2, 6]))
    assert spread["weather"].count == 3
    assert spread["geometric"].std == 0


def test_models_must_be_compared_on_the_same_corruptions():
    with pytest.raises(IncompleteGrid, match="snow of the reference"):
        cd(Degradation(0.2, {"fog": 0.5, "snow": 0.5}), Degradation(0.2, {"fog": 0.5}))


CLEAN = {"AP": 0.4, "APs": 0.2, "APm": 0.4, "APl": 0.5}


def test_relative_performance_by_size_by_hand():
    relative = relative_performance({1.0: dict.fromkeys(CLEAN, 0.1), 0.0: CLEAN}, CLEAN)
    assert relative["APs"] == {0.0: 1.0, 1.0: pytest.approx(0.5)}
    assert list(relative["AP"]) == [0.0, 1.0]
    with pytest.raises(IncompleteGrid, match=r"APs at α 0\.5"):
        relative_performance({0.5: {"AP": 1, "APm": 1, "APl": 1}}, CLEAN)
    assert math.isnan(relative_performance({0.5: CLEAN}, {**CLEAN, "APs": 0.0})["APs"][0.5])


def test_distances_average_over_scores():
    a = {"AP": {0.0: 1.0, 1.0: 1.0}, "APs": {0.0: 0.0, 1.0: 0.0}}
    b = {"AP": {1.0: 1.0, 0.0: 1.0}, "APs": {0.0: 3.0, 1.0: 4.0}}
    distances = distance_matrix({"a": a, "b": b})
    assert distances.models == ("a", "b")
    assert distances.matrix.tolist() == [[0, 2.5], [2.5, 0]]
    with pytest.raises(IncompleteGrid, match=r"c: APs at α 1\.0"):
        distance_matrix({"a": a, "c": {"AP": a["AP"], "APs": {0.0: 1.0}}})


def test_prediction_recovers_a_non_negative_linear_model():
    rng = np.random.default_rng(0)
    systems = {}
    for i in range(8):
        x = rng.random(3) + 0.1
        systems[f"s{i}"] = {"a": x[0], "b": x[1], "c": x[2], "haze": 0.7 * x[0] + 0.2 * x[2]}
    told = predict(systems, ["a", "b", "c"], ["haze"])
    assert told.overall[0] == pytest.approx([0.7, 0, 0.2], abs=1e-9)
    assert told.weights.shape == (8, 1, 3)
    assert told.r2 == pytest.approx(1)
    assert (told.weights >= 0).all()


def test_the_system_left_out_does_not_influence_its_prediction():
    systems = {name: {"a": value, "haze": value} for name, value in {"x": 0.5, "y": 0.7, "z": 0.9}.items()}
    systems["odd"] = {"a": 0.8, "haze": 0.1}
    told = predict(systems, ["a"], ["haze"])
    assert told.predicted[3, 0] == pytest.approx(0.8)  # what the other three would say
    assert math.isnan(told.r2_by_system["odd"])  # one configuration does not vary


def test_prediction_refuses_missing_scores_and_a_single_system():
    with pytest.raises(IncompleteGrid, match="y: haze"):
        predict({"x": {"a": 1, "haze": 1}, "y": {"a": 1}}, ["a"], ["haze"])
    with pytest.raises(InvalidOption, match="given 1, 1 and 1"):
        predict({"x": {"a": 1, "haze": 1}}, ["a"], ["haze"])
    with pytest.raises(IncompleteGrid, match="x: a clean score above 0"):
        normalise({"x": {"clean": 0.0, "a": 1.0}})


def test_r_squared_by_hand():
    seen = np.array([1.0, 2.0, 3.0])
    assert r_squared(seen, seen) == 1
    assert r_squared(seen, np.full(3, 2.0)) == 0
    assert r_squared(seen, -seen) < 0


def test_gains_over_a_baseline_are_differences():
    base, deep = scores(0.4, fog=(0.2,) * 5), scores(0.5, fog=(0.28,) * 5)
    assert delta_p(deep, base) == pytest.approx(0.1)
    assert delta_mpc(deep, base) == pytest.approx(0.08)


def test_correlations_by_hand():
    columns = {
        "p": {"a": 1, "b": 2, "c": 3, "d": 4},
        "q": {"a": 8, "b": 4, "c": 2, "d": 1},
        "flat": dict.fromkeys("abcd", 5),
    }
    pairs = correlation_table(columns)
    assert pairs["p", "q"].spearman == pytest.approx(-1)
    assert pairs["p", "q"].pearson == pytest.approx(np.corrcoef([1, 2, 3, 4], [8, 4, 2, 1])[0, 1])
    assert math.isnan(pairs["p", "flat"].pearson)
    with pytest.raises(IncompleteGrid, match="d in the second column"):
        correlate(columns["p"], {"a": 1, "b": 2, "c": 3})
    with pytest.raises(InvalidOption, match="2 rows"):
        correlate({"a": 1, "b": 2}, {"a": 1, "b": 2})


@pytest.mark.parametrize("text", ["style@3", "style[space=pixel]", "style[alpha=strong]"])
def test_a_submitted_style_without_a_strength_is_on_no_curve(text: str) -> None:
    assert curve_of(Condition.parse(text)) is None
