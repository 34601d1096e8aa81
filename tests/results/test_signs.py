"""Signs, families and constants of what is printed, by hand from numbers made up for it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy.stats import t as student

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Floats
from stormproof.metrics.metric import measures
from stormproof.results import comparable, estimate
from stormproof.results.estimate import Estimate, next_share
from stormproof.results.interval import Interval, holm
from stormproof.results.requirements import parse
from stormproof.results.scores import Replicates, Scores
from stormproof.results.sets import chosen_set, sets_of
from stormproof.results.verdicts import Outcome, judge
from stormproof.results.worst import ImageErrors, worst_images

IMAGES, HALVES = 400, 60


def drawn(value: float, seed: int, spread: float = 0.002) -> Floats:
    """A score without optimism, then the score on random halves of the images."""
    return np.concatenate([[value, value], value + np.random.default_rng(seed).normal(0, spread, HALVES)])


def made(measure: str, cells: Mapping[str, float], *, shift: float = 0.0, seed: int = 0) -> Scores:
    """Scores of one measure; the halves of two runs with one seed move together."""
    moved = {text: value + shift for text, value in cells.items()}
    spread = {text: drawn(value, seed + k) for k, (text, value) in enumerate(moved.items())}
    return Scores(
        "net", "toy", IMAGES, {measure: moved}, tuple(moved), replicates=Replicates({measure: spread}, {})
    )


ERRORS = {"clean": 0.3, **{f"fog@{s}": 0.3 + 0.02 * s for s in range(1, 6)}}


def outcome(row: dict[str, object], new: Scores, old: Scores | None = None) -> tuple[Outcome, float]:
    verdict = judge([parse({"id": "R", **row}, "r")], new, old)[0]
    return verdict.outcome, verdict.interval.estimate


@pytest.mark.parametrize(("change", "expected"), [(0.05, Outcome.FAIL), (-0.05, Outcome.PASS)])
def test_an_error_that_rises_is_a_drop(change: float, expected: Outcome) -> None:
    old, new = made("E", ERRORS), made("E", ERRORS, shift=change)
    row = {"metric": "E", "condition": "fog@3", "at_most_drop": 0.01}
    assert outcome(row, new, old) == (expected, pytest.approx(change))
    score = {"clean": 0.6, "fog@3": 0.4}
    worse, better = made("AP", score, shift=-0.05), made("AP", score)
    row = {"metric": "AP", "condition": "fog@3", "at_most_drop": 0.01}
    assert outcome(row, worse, better) == (Outcome.FAIL, pytest.approx(0.05))
    assert outcome(row, better, worse) == (Outcome.PASS, pytest.approx(-0.05))


def test_the_loss_of_an_error_is_its_rise_from_clean() -> None:
    row = {"metric": "E", "condition": "fog@5", "at_most_loss": 0.05}
    assert outcome(row, made("E", ERRORS)) == (Outcome.FAIL, pytest.approx(0.1))
    assert outcome({**row, "at_most_loss": 0.15}, made("E", ERRORS)) == (Outcome.PASS, pytest.approx(0.1))
    score = {"clean": 0.6, "fog@5": 0.5}
    row = {"metric": "AP", "condition": "fog@5", "at_most_loss": 0.05}
    assert outcome(row, made("AP", score)) == (Outcome.FAIL, pytest.approx(0.1))


def test_a_high_error_on_clean_images_fails() -> None:
    row = {"metric": "clean", "of": "E", "at_most": 0.2}
    assert outcome(row, made("E", ERRORS)) == (Outcome.FAIL, pytest.approx(0.3))
    assert outcome({**row, "at_most": 0.4}, made("E", ERRORS)) == (Outcome.PASS, pytest.approx(0.3))
    row = {"metric": "clean", "of": "E", "at_most_drop": 0.01}
    assert outcome(row, made("E", ERRORS, shift=0.05), made("E", ERRORS))[0] is Outcome.FAIL


@pytest.mark.parametrize("metric", ["P", "mPC", "rPC"])
def test_a_requirement_that_names_no_measure_is_refused_where_the_run_reports_an_error(metric: str) -> None:
    """The run is reported in E, and a high error would pass."""
    with pytest.raises(InvalidOption, match=f"^R: {metric} of which measure\\? .* E, which is better when"):
        outcome({"metric": metric, "at_least": 0.1}, made("E", ERRORS))


NAMES = ("fog", "snow", "frost")
GRID = {"clean": 0.6, **{f"{n}@{s}": 0.6 - 0.05 * s for n in NAMES for s in range(1, 6)}}


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> tuple[Scores, Scores]:
    """Two runs on the same images; the second is a little better, its halves mostly go along."""
    monkeypatch.setattr(comparable, "require_same_images", lambda a, b: None)  # made by hand: no record
    first, second = made("AP", GRID), made("AP", GRID, shift=0.001)
    assert second.replicates is not None
    own = {
        text: values + np.concatenate([[0, 0], np.random.default_rng(99 + k).normal(0, 0.0005, HALVES)])
        for k, (text, values) in enumerate(second.replicates.per_condition["AP"].items())
    }
    return first, Scores(
        "other",
        "toy",
        IMAGES,
        second.per_condition,
        second.conditions,
        replicates=Replicates({"AP": own}, {}),
    )


def test_differences_are_corrected_within_their_own_family(pair: tuple[Scores, Scores]) -> None:
    """All cells together, all corruptions together; P and the mean each alone."""
    found = (pair[1] - pair[0])["AP"]
    cells = {name: d.p for name, d in found.items() if name in GRID}
    assert {name: found[name].holm for name in cells} == pytest.approx(holm(cells))
    corruptions = {f"by_corruption/{name}": found[f"by_corruption/{name}"].p for name in NAMES}
    assert {name: found[name].holm for name in corruptions} == pytest.approx(holm(corruptions))
    assert any(found[name].holm != found[name].p for name in corruptions)
    for name in ("P", "mean"):
        assert found[name].holm == found[name].p


def test_numbers_over_some_conditions_are_never_those_over_others(pair: tuple[Scores, Scores]) -> None:
    """Though each is computed once."""
    run = pair[0]
    some = chosen_set("fog@1-2", GRID)
    for _ in range(2):
        assert run.mean("AP") == pytest.approx(0.45)
        assert run.mean("AP", conditions="fog@1-2") == pytest.approx(0.525)
        assert run.spread("AP")["mean"][0] == pytest.approx(0.45)
        assert run.spread("AP", some)["mean"][0] == pytest.approx(0.525)


def test_differences_are_of_the_same_halves(pair: tuple[Scores, Scores]) -> None:
    a, b = (side.replicates for side in pair)
    assert a is not None
    assert b is not None
    difference = b.per_condition["AP"]["fog@3"][2:] - a.per_condition["AP"]["fog@3"][2:]
    reach = float(student.ppf(0.975, min(IMAGES, len(difference)) - 1)) * difference.std(ddof=1)
    found = (pair[1] - pair[0])["AP"]["fog@3"].interval
    assert (found.low, found.high) == pytest.approx((0.001 - reach, 0.001 + reach))
    alone = (b.per_condition["AP"]["fog@3"][2:].std(ddof=1), a.per_condition["AP"]["fog@3"][2:].std(ddof=1))
    assert found.se < 0.5 * math.hypot(*alone)


def test_the_interval_of_an_estimate_by_hand() -> None:
    """Its halves have seen part of the set; the curve that corrects it is off by 12 % of what it takes."""
    values = np.array([0.4, 0.41, 0.38, 0.43, 0.40])
    found = estimate._interval(values, too_high=0.05, left=0.75, seen=1000)
    se = math.sqrt(0.75 * values[1:].var(ddof=1) + (0.12 * 0.05) ** 2)
    assert found.estimate == pytest.approx(0.35)
    assert found.se == pytest.approx(se)
    assert (found.low, found.high) == pytest.approx((0.35 - 1.959964 * se, 0.35 + 1.959964 * se))


def test_the_bias_on_few_images_follows_its_formula() -> None:
    """√x · (1 − x)^1.25 for average precision, √x for the IoU of a class (docs/adr/0029)."""
    assert {measures()[name].fading for name in ("AP", "mask AP", "VOC07 AP50")} == {1.25}
    assert measures()["mIoU"].fading == 0
    parts = np.array([[0.25, 0.64, math.nan]])
    expected = (0.5 * 0.75**1.25 + 0.8 * 0.36**1.25) / 2
    assert estimate._bend(parts, 1.25)[0] == pytest.approx(expected)
    assert estimate._bend(parts, 0.0)[0] == pytest.approx((0.5 + 0.8) / 2)


def test_the_next_share_by_hand() -> None:
    """Variance falls as (1 − m/n)/m; 15 % more than that asks for, since the spread is itself uncertain."""
    interval = Interval(0.3, 0.26, 0.34, 0.02)
    found = Estimate(interval, interval, 0.6, 1000, 20.0, 0.02, {})
    wanted = 1 / ((0.01 / 0.04) ** 2 * (1 / 20 - 1 / 1000) / 1.15 + 1 / 1000)
    assert next_share(found, 0.01) == math.ceil(wanted)


def test_conditions_of_style_are_listed_and_not_averaged() -> None:
    texts = ("clean", "fog@3", "style[alpha=0.5]", "style[alpha=1]")
    (found,) = sets_of(texts)
    assert found.conditions == texts[1:]
    assert found.covered == ("fog@3",)


def test_the_worst_images_come_first_and_ties_by_the_smallest_change_of_pixels() -> None:
    errors = {
        "clean": np.array([0.1, 0.2, 0.3]),
        "fog@1": np.array([0.5, 0.6, 0.1]),  # rises of 0.4, 0.4, −0.2
        "snow@1": np.array([0.9, 0.2, 0.3]),  # 0.8, 0, 0
    }
    found = Scores(
        "net", "toy", 3, {"E": dict.fromkeys(errors, 0.5)}, tuple(errors),
        image_errors=ImageErrors(("a", "b", "c"), errors),
        details={"quality": {"fog@1": {"rmse": 9.0}, "snow@1": {"rmse": 3.0}}},
    )  # fmt: skip
    listed = [(loss.image, loss.condition) for loss in worst_images(found, 6)]
    assert listed == [
        ("a", "snow@1"),
        ("a", "fog@1"),
        ("b", "fog@1"),
        ("b", "snow@1"),
        ("c", "snow@1"),
        ("c", "fog@1"),
    ]
