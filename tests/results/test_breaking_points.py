"""Breaking points that say what they do not know: dips that a fit would pool away, and ranges that end."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stormproof.results import breaking
from stormproof.results.breaking import (
    Answer,
    Breaking,
    BreakingPoint,
    Observed,
    StrengthAxis,
    breaking_point,
    find_breaking_point,
    parse_axis,
    search,
)

RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 0.01, 400)


def seen(score: float, *, optimism: float = 0.0) -> Observed:
    return Observed(score, np.concatenate([[score - optimism] * 2, score + NOISE]))


def at_severities(*scores: float, threshold: float, optimism: float = 0.0) -> BreakingPoint:
    found = {k + 1.0: seen(score, optimism=optimism) for k, score in enumerate(scores)}
    return breaking_point(seen(0.3), found, threshold)


def test_a_failure_that_was_seen_is_not_pooled_away() -> None:
    """15.6 at severity 2 is below 16.5, though the fit of 15.6 and 17.6 is above it until 3.03."""
    found = at_severities(0.223, 0.156, 0.176, 0.129, 0.128, threshold=0.165)
    assert found.strength == pytest.approx(3.03, abs=0.01)
    assert found.answer is Answer.NOT_MONOTONE
    assert found.first_below == 2
    assert not found.confirmed
    shown = Breaking(StrengthAxis("fog"), "AP50", found)
    assert shown.words == "not monotone; first seen below at severity 2"
    assert shown.row["answer"] == "not monotone"
    assert shown.row["first_below"] == "fog@2"
    assert shown.row["confirmed"] is False


def test_reports_a_dip_within_a_range_without_a_crossing() -> None:
    found = at_severities(0.25, 0.16, 0.2, 0.2, threshold=0.165)
    assert found.answer is Answer.NOT_MONOTONE
    assert found.strength is None
    assert found.first_below == 2
    assert "first seen below at severity 2" in Breaking(StrengthAxis("fog"), "AP50", found).words


def test_scores_that_only_waver_at_the_crossing_are_monotone_enough() -> None:
    """A search looks at strengths a tolerance apart, where noise decides which is above."""
    found = breaking_point(
        seen(0.3),
        {1.0: seen(0.25), 2.0: seen(0.166), 2.05: seen(0.1645), 2.1: seen(0.1655), 3.0: seen(0.1)},
        0.165,
    )
    assert found.answer is Answer.BREAKS
    assert found.first_below is None


def test_an_answer_of_never_says_how_many_halves_break() -> None:
    close = at_severities(0.25, 0.2, 0.17, threshold=0.165)
    assert close.answer is Answer.NEVER
    assert 0.2 < close.breaks < 0.4  # half a standard deviation away
    far = at_severities(0.25, 0.24, 0.23, threshold=0.165)
    assert far.breaks == 0
    words = Breaking(StrengthAxis("fog"), "AP50", close).words
    assert words.startswith("never in this range; on ")
    assert words.endswith(" % of random halves of the images it does")
    assert Breaking(StrengthAxis("fog"), "AP50", close).row["breaks"] == close.breaks


def test_optimism_moves_only_the_weaker_end() -> None:
    """A score that is too high breaks too late: its true crossing may be at a weaker strength."""
    scores = (0.26, 0.22, 0.18, 0.14, 0.10)
    plain = at_severities(*scores, threshold=0.2)
    high = at_severities(*scores, threshold=0.2, optimism=0.02)
    assert high.strength == plain.strength == pytest.approx(2.5)
    assert plain.low - high.low == pytest.approx(0.5, abs=0.05)
    assert high.high == plain.high


def test_halves_that_score_higher_do_not_move_the_interval() -> None:
    """Average precision on half of the images is too high; only the spread of halves counts."""
    scores = (0.26, 0.22, 0.18, 0.14, 0.10)
    raised = {
        k + 1.0: Observed(score, np.concatenate([[score] * 2, score + 0.05 + NOISE]))
        for k, score in enumerate(scores)
    }
    clean = Observed(0.3, np.concatenate([[0.3] * 2, 0.35 + NOISE]))
    found, plain = breaking_point(clean, raised, 0.2), at_severities(*scores, threshold=0.2)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_a_search_never_confirms_what_is_not_monotone() -> None:
    def look(strengths: object) -> dict[float, Observed]:
        values = np.interp(list(strengths), [1, 2, 3, 4, 5], [0.223, 0.156, 0.176, 0.129, 0.128])  # type: ignore[call-overload]
        return {s: seen(float(v)) for s, v in zip(strengths, values, strict=True)}  # type: ignore[call-overload]

    found = search(look, seen(0.3), [1.0, 2.0, 3.0, 4.0, 5.0], 0.165, tolerance=0.1)
    assert found.answer is Answer.NOT_MONOTONE
    assert not found.confirmed
    assert found.first_below is not None
    assert found.first_below <= 2


def test_an_error_is_confirmed_as_a_score_is() -> None:
    """Errors are searched with their sign turned."""
    found = search(
        lambda strengths: {s: seen(-0.1 * s) for s in strengths},
        seen(-0.05), [1.0, 2.0, 3.0, 4.0, 5.0], -0.25, tolerance=0.1,
    )  # fmt: skip
    assert found.strength == pytest.approx(2.5, abs=0.01)
    assert found.confirmed


def row_of(axis: StrengthAxis, **changes: Any) -> dict[str, Any]:
    """The row of a breaking point at 2.4, from 2.2 to 2.9."""
    usual = BreakingPoint(
        Answer.BREAKS, 0.4, 2.4, 2.2, 2.9, 0.6, {2.0: 0.5, 3.0: 0.3}, 1.0, None, confirmed=True
    )
    return Breaking(axis, "AP50", replace(usual, **changes)).row


def test_a_breaking_point_is_reported_in_metres_and_in_decibels() -> None:
    """Haze of severity 2.4 has β = 0.012^0.6 · 0.04^0.4 per metre, noise a σ of 0.6 · 0.12 + 0.4 · 0.18."""
    haze = row_of(StrengthAxis("haze"))
    assert haze["strength"] == {"at": 2.4, "low": 2.2, "high": 2.9}
    beta = {k: 0.012 * (0.04 / 0.012) ** (s - 2) for k, s in haze["strength"].items()}
    for edge, one in beta.items():
        assert haze["physical"][edge][0] == f"visibility {-math.log(0.02) / one:.4g} m"
    noise = row_of(StrengthAxis("gaussian_noise"))
    for edge, sigma in {"at": 0.144, "low": 0.132, "high": 0.174}.items():
        assert noise["physical"][edge] == [
            f"noise σ {255 * sigma:.4g} grey levels",
            f"SNR at white {-20 * math.log10(sigma):.4g} dB",
        ]


def test_a_breaking_point_over_a_parameter_is_reported_in_its_values() -> None:
    """From 500 m to 20 m in equal factors: 2.4 on the scale of 1 to 5 is 35 % of the way."""
    row = row_of(parse_axis("haze", "visibility=500..20"))
    metres = {
        edge: 500 * (20 / 500) ** ((s - 1) / 4) for edge, s in (("at", 2.4), ("low", 2.2), ("high", 2.9))
    }
    assert row["strength"] == {edge: float(f"{value:.4g}") for edge, value in metres.items()}
    assert {edge: told[0] for edge, told in row["physical"].items()} == {
        edge: f"visibility {value:.4g} m" for edge, value in metres.items()
    }
    assert row["scores"] == {"haze[visibility=223.6]": 0.5, "haze[visibility=100]": 0.3}


def test_an_end_beyond_the_range_has_no_strength_and_no_metres() -> None:
    row = row_of(StrengthAxis("haze"), high=math.inf)
    assert row["strength"]["high"] is None
    assert row["physical"]["high"] == []


def test_the_share_of_halves_that_break_is_printed() -> None:
    words = row_of(StrengthAxis("fog"), answer=Answer.NEVER, strength=None, breaks=0.31)["words"]
    assert words == "never in this range; on 31 % of random halves of the images it does"


@pytest.mark.parametrize(("measure", "threshold"), [("AP50", 0.5), ("E", 0.5)])
def test_a_search_over_runs_finds_where_the_score_crosses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, measure: str, threshold: float
) -> None:
    """AP50 falls by 0.1 a severity from 0.75, E rises as much from 0.25: both cross one half at 2.5."""
    ran: list[str] = []

    class Scored:
        per_condition = (measure,)

        def score(self, name: str, text: str) -> float:
            severity = 0.0 if text == "clean" else float(text.partition("@")[2])
            return 0.75 - 0.1 * severity if measure == "AP50" else 0.25 + 0.1 * severity

        def spread(self, name: str) -> dict[str, np.ndarray]:
            texts = ("clean", *ran)
            return {text: self.score(name, text) + np.concatenate([[0.0, 0.0], NOISE]) for text in texts}

    class Opened:
        def __init__(self, folder: Path) -> None: ...

        def score(self, **_: object) -> Scored:
            return Scored()

    monkeypatch.setattr(breaking, "Run", Opened)
    made = find_breaking_point(
        StrengthAxis("fog"), measure, threshold, out=tmp_path, run=lambda some: ran.extend(map(str, some))
    )
    assert made.point.answer is Answer.BREAKS
    assert made.point.strength == pytest.approx(2.5, abs=0.01)
    assert made.point.threshold == threshold
    assert made.row["scores"]["fog@3"] == pytest.approx(0.45 if measure == "AP50" else 0.55)
    assert made.point.clean == pytest.approx(0.75 if measure == "AP50" else 0.25)
