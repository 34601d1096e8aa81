"""A grid names its missing cells and is never averaged over the rest."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormproof.core.condition import Condition, Suite, grid
from stormproof.core.errors import IncompleteGrid, InvalidCondition
from stormproof.corruptions.suites import KAMANN
from stormproof.metrics.aggregate import aggregate as declare
from stormproof.metrics.corruption_error import ce, cross_scenario, enhancement_change, mce, mce_change
from stormproof.metrics.degradation import Degradation, degradation, rcd
from stormproof.metrics.grid import Grid
from stormproof.metrics.performance import (
    mpc,
    mpc_by_corruption,
    mpc_by_group,
    mpc_by_severity,
    p,
    rpc,
    rpc_by_group,
    rpc_by_severity,
)
from stormproof.results.aggregates import aggregates
from stormproof.results.sets import ConditionSet, sets_of

FULL = {
    "clean": 0.5,
    **{f"fog@{s}": 0.5 - s / 20 for s in range(1, 6)},
    **{f"snow@{s}": 0.1 for s in range(1, 6)},
}


def test_p_mpc_and_rpc_by_hand():
    grid = Grid.of(FULL)
    assert p(grid) == 0.5
    assert mpc(grid) == pytest.approx((0.35 + 0.1) / 2)
    assert rpc(grid) == pytest.approx(0.45)
    assert mpc_by_corruption(grid) == pytest.approx({"fog": 0.35, "snow": 0.1})
    assert mpc_by_severity(grid)[5] == pytest.approx((0.25 + 0.1) / 2)
    assert rpc_by_severity(grid)[5] == pytest.approx(0.35)
    assert mpc_by_group(grid, {"weather": ("fog", "snow"), "white": ("snow",)})["white"] == pytest.approx(0.1)
    assert rpc_by_group(grid, {"white": ("snow",)}) == {"white": pytest.approx(0.2)}


@given(st.sets(st.sampled_from([key for key in FULL if key != "clean"]), min_size=1, max_size=9))
def test_every_missing_cell_is_named_and_nothing_else(holes):
    conditions = [Condition.parse(key) for key in FULL]
    short = Grid.of({key: score for key, score in FULL.items() if key not in holes}, conditions=conditions)
    for aggregate in (mpc, rpc, ce, mce, degradation, mpc_by_severity):
        with pytest.raises(IncompleteGrid) as caught:
            aggregate(short)
        assert set(caught.value.missing) == holes
    assert str(len(holes)) in str(caught.value)


@pytest.mark.parametrize("hole", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_missing(hole):
    grid = Grid.of({**FULL, "fog@3": hole})
    assert grid.missing == ("fog@3",)
    with pytest.raises(IncompleteGrid, match="1 of 10 conditions have no score: fog@3"):
        mpc(grid)


def test_zero_is_a_score():
    assert mpc(Grid.of({f"fog@{s}": 0.0 for s in range(1, 6)})) == 0
    assert math.isnan(rpc(Grid.of({"clean": 0.0, **{f"fog@{s}": 0.0 for s in range(1, 6)}})))


def test_the_clean_score_is_required_only_where_it_is_used():
    grid = Grid.of({key: score for key, score in FULL.items() if key != "clean"})
    assert mpc(grid) > 0
    with pytest.raises(IncompleteGrid, match="clean"):
        rpc(grid)


def test_an_empty_grid_has_no_mean():
    with pytest.raises(IncompleteGrid, match="every corrupted condition"):
        mpc(Grid.of({"clean": 0.5}))


def test_a_suite_decides_which_conditions_are_expected():
    suite = Suite("short", "two severities", grid(["fog"], (1, 2)))
    assert mpc(Grid.of(FULL, conditions=suite)) == pytest.approx((0.45 + 0.4) / 2)


def test_free_parameters_count_as_given():
    blurred = Grid.of({"gaussian_blur[sigma=0.5]": 0.4, "gaussian_blur[sigma=1.0]": 0.2})
    assert mpc(blurred) == pytest.approx(0.3)
    with pytest.raises(InvalidCondition, match="two scores"):
        Grid.of({"gaussian_blur[sigma=1]": 0.4, "gaussian_blur[sigma=1.0]": 0.2})


def test_rows_may_repeat_clean_only_if_it_agrees():
    rows = [
        ("fog", 0, 0.5),
        *[("fog", s, 0.4) for s in range(1, 6)],
        ("snow", 0, 0.5),
        *[("snow", s, 0.2) for s in range(1, 6)],
    ]
    assert rpc(Grid.from_rows(rows)) == pytest.approx(0.6)
    with pytest.raises(InvalidCondition, match=r"clean has two scores: 0.5 and 0.6"):
        Grid.from_rows([*rows, ("rain", 0, 0.6)])


def test_a_grid_over_some_corruptions_expects_only_those():
    grid = Grid.of(FULL)
    assert grid.over(["snow"]).corruptions == ("snow",)
    assert grid.over(["snow", "rain"]).missing == tuple(f"rain@{s}" for s in range(1, 6))


def errors(clean, corrupted):
    return Grid.of(
        {
            "clean": clean,
            **{f"{name}@{s}": value + s for name, value in corrupted.items() for s in range(1, 6)},
        }
    )


def test_corruption_error_by_hand():
    grid = errors(40, {"fog": 50, "snow": 60})
    assert ce(grid) == {"fog": 53, "snow": 63}
    assert mce(grid) == 58
    assert mce_change(grid) == 18


def test_cross_scenario_requires_every_pair():
    small, large = errors(40, {"fog": 42}), errors(40, {"fog": 50})
    table = {("coco", "coco"): small, ("coco", "bdd"): large, ("bdd", "coco"): large, ("bdd", "bdd"): small}
    assert cross_scenario(table)["coco", "bdd"] == 13
    del table["bdd", "coco"]
    with pytest.raises(IncompleteGrid, match="trained for bdd, tested on coco"):
        cross_scenario(table)


def test_enhancement_change_is_enhanced_minus_plain():
    plain, enhanced = errors(40, {"fog": 50, "snow": 50}), errors(40, {"fog": 45, "snow": 52})
    assert enhancement_change(plain, enhanced) == {"fog": -5, "snow": 2}
    with pytest.raises(IncompleteGrid, match="snow enhanced"):
        enhancement_change(plain, errors(40, {"fog": 45}))


def test_a_corruption_with_three_severities_is_complete_with_three() -> None:
    scores = {Condition(): 0.5} | {Condition.of("psf_blur", s): 0.4 for s in (1, 2, 3)}
    assert Grid.of(scores).levels("psf_blur") == (0.4, 0.4, 0.4)


def test_variants_of_a_corruption_are_not_its_severities() -> None:
    """Beside fog@1 … 5, `fog@3[on=person]` is a separate row, and so is a parameter without a severity."""
    plain = {"clean": 0.9, **{f"fog@{s}": 0.5 for s in range(1, 6)}}
    grid = Grid.of(
        {**plain, "fog@3[on=objects]": 0.8, "fog@4[on=objects]": 0.6, "fog[amount=2,decay=2]": 0.1}
    )
    assert mpc_by_corruption(grid) == pytest.approx(
        {"fog": 0.5, "fog[on=objects]": 0.7, "fog[amount=2,decay=2]": 0.1}
    )
    assert mpc(grid.over(["fog"])) == 0.5
    swept = Grid.of({"clean": 0.9, "haze[beta=0.01]": 0.6, "haze[beta=0.02]": 0.4})
    assert mpc_by_corruption(swept) == {"haze": 0.5}


def test_a_reference_that_gains_has_no_relative_degradation() -> None:
    model, reference = Degradation(0.2, {"a": 0.25, "b": 0.4}), Degradation(0.3, {"a": 0.28, "b": 0.5})
    found = rcd(model, reference)
    assert math.isnan(found["a"])
    assert found["b"] == pytest.approx(1)


def test_groups_average_as_the_paper_does() -> None:
    """kamann's noise counts up to severity 3, and psf_blur exists on one dataset only."""
    names = [name for members in KAMANN.values() for name in members if name != "psf_blur"]
    noise = {f"{n}@{s}": 0.6 if s <= 3 else 0.0 for n in names if n in KAMANN["noise"] for s in range(1, 6)}
    rest = {f"{n}@{s}": 0.3 for n in names if n not in KAMANN["noise"] for s in range(1, 6)}
    cells = {"clean": 0.6, **noise, **rest}
    found = aggregates("mIoU", cells, sets_of(tuple(cells), "voc2012-seg-c")[0])["by_group_kamann"]
    assert found == pytest.approx(
        {"blur": 0.3, "noise": 0.6, "digital": 0.3, "weather": 0.3, "geometric": 0.3}
    )


def test_mpc_is_the_mean_of_corruptions_however_many_severities_each_has() -> None:
    grid = Grid.of(
        {"clean": 0.9, **{f"psf_blur@{s}": 0.8 for s in (1, 2, 3)}, **{f"fog@{s}": 0.4 for s in range(1, 6)}}
    )
    assert mpc(grid) == pytest.approx(0.6)  # over all eight cells it would be 0.55
    assert mce(grid) == pytest.approx(0.6)
    assert rpc(grid) == pytest.approx(0.6 / 0.9)


def mpc_of_another_module(grid: Grid) -> float:
    return 0.0


def test_measures_have_the_aggregates_declared_for_scores_or_errors() -> None:
    texts = tuple(FULL)
    whole = ConditionSet("coco-c", texts[1:], len(texts) - 1, texts[1:])  # as if it were a benchmark
    assert {"P", "mPC", "rPC", "by_corruption"} <= {*aggregates("AP", FULL, whole)}
    assert list(aggregates("E", FULL, whole)) == ["P", "CE", "mCE", "change"]
    assert list(aggregates("FPPI", FULL, whole)) == ["P"]  # a mean over conditions says nothing
    assert list(aggregates("AP", {**FULL, "fog@3": math.nan}, whole)) == ["P"]
    with pytest.raises(ValueError, match="two aggregates are named 'mPC'"):
        declare("scores", "mPC")(mpc_of_another_module)
