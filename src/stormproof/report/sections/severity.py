"""Scores by severity (*michaelis* Fig. 5, 7 to 10; *kamann* Fig. 17), the severity at which half is lost, and
scores by the size of the change to the pixels (*michaelis* Fig. 6, *kamann* Fig. 20)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid
from stormproof.core.sample import Floats
from stormproof.corruptions.suites import KAMANN, MICHAELIS, ONE_DATASET_ONLY, Groups
from stormproof.metrics.grid import Grid
from stormproof.metrics.metric import measures, ratio
from stormproof.metrics.performance import mpc
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import (
    RELATIVE,
    SEVERITY,
    Scope,
    all_conditions,
    all_levels,
    group_by_severity,
    group_of,
    per_cent,
    section,
    share,
    unit,
)
from stormproof.report.sentences import spoken
from stormproof.results.breaking import Observed, breaking_point, crossing
from stormproof.results.interval import LEADING
from stormproof.results.scores import Scores

ALL = "all corruptions"
RMSE = Axis("RMSE against the clean image (grey levels)", zero=True)
SNR = Axis("signal-to-noise ratio (dB)")
# Wrapped differences are near 160 for almost every corruption, and 38 for impulse noise, whose true RMSE is
# that of Gaussian noise.
_PUBLISHED = (
    "RMSE of published grids was measured here, on 30 photographs of VOC 2012 or COCO val2017. The authors' "
    "own is of 8-bit differences that wrap around, so their horizontal axis differs."
)
_SHOWN = 3  # corruptions whose breaking points are drawn
_MOST = 7  # runs that bars beside each other can show


@section(place=20)
def by_severity(scope: Scope) -> Section | None:
    """Curves over severities, where any corruption has several."""
    m = scope.measure
    names = group_by_severity(all_conditions(scope.runs))
    if not any(len(levels) > 1 for levels in names.values()):  # a line through two points would be a guess
        return None
    rows = [
        row
        for name, levels in names.items()
        for run in scope.runs
        for row in _curve(run, m, name, [(float(c.severity or 0), str(c)) for c in levels])
    ]
    figure = Figure(
        "corruptions", f"{m} by severity, each corruption", Kind.LINES, SEVERITY, Axis(unit(m), zero=True),
        rows, series="model", panel="corruption", cite="michaelis, Fig. 7 to 10", by_run=True,
    )  # fmt: skip
    text = "Every curve starts at severity 0, the clean score."
    return Section("curves", "How scores fall with severity", text, (figure,), short="By severity")


@section(place=10, paper=True)
def by_group(scope: Scope) -> Section | None:
    """The same curves as means over the papers' groups."""
    m = scope.measure
    if not any(len(levels) > 1 for levels in group_by_severity(all_conditions(scope.runs)).values()):
        return None
    y = Axis(unit(m), zero=True)
    michaelis = [row for run in scope.runs for row in _groups(run.grid(m), run, m, MICHAELIS)]
    kamann = [row for run in scope.runs for row in _groups(run.grid(m), run, m, KAMANN)]
    figures = tuple(
        Figure(
            f"groups-{paper}", f"{m} by severity, in the groups of {paper.title()} et al.", Kind.LINES,
            SEVERITY, y, rows, series="model", panel="group", cite=cite, by_run=True,
            note="The mean over the corruptions of a group that the runs hold whole, at all severities. "
            "Corruptions with fewer severities, such as PSF blur, are left out: the curve would jump.",
        )
        for paper, rows, cite in (
            ("michaelis", michaelis, "michaelis, Fig. 5"),
            ("kamann", [] if all(row["panel"] == ALL for row in kamann) else kamann, "kamann, Fig. 17"),
        )
    )  # fmt: skip
    text = "Means over the corruptions of a group, by severity; severity 0 is the clean score."
    return Section("groups", "How groups of corruptions fall with severity", text, figures, short="Groups")


def _curve(run: Scores, measure: str, panel: str, levels: list[tuple[float, str]]) -> list[Datum]:
    return [
        {"x": x, "y": per_cent(measure, run.score(measure, text)), "series": run.name, "panel": panel}
        for x, text in ((0.0, "clean"), *levels)
    ]


def _groups(grid: Grid, run: Scores, measure: str, groups: Groups) -> list[Datum]:
    """Group means at each severity, of groups that the run holds whole."""
    if not run.complete(measure):
        return []
    whole = [name for name in grid.corruptions if len(grid.over((name,)).expected) == len(grid.severities)]
    needed = {name: [c for c in members if c not in ONE_DATASET_ONLY] for name, members in groups.items()}
    panels: dict[str, Sequence[str]] = {ALL: whole}
    panels |= {name: members for name, members in needed.items() if {*members} <= {*whole}}
    rows: list[Datum] = []
    for panel, members in panels.items():
        means = {0: grid.clean} | {s: _mean(grid.over(members).at_severity(s)) for s in grid.severities}
        rows += [
            {"x": float(s), "y": per_cent(measure, mean), "series": run.name, "panel": panel}
            for s, mean in means.items()
        ]
    return rows


def _mean(grid: Grid) -> float:
    try:
        return float(mpc(grid))
    except IncompleteGrid:
        return math.nan


def breaking_points(runs: Sequence[Scores], measure: str) -> Figure:
    """The severity at which each run has lost half of its clean score, for the three corruptions where that
    comes first; straight lines between the severities that were run."""
    levels = group_by_severity(all_conditions(runs))
    rows = {
        name: [row for run in runs if (row := _crossing_row(run, measure, name, held)) is not None]
        for name, held in levels.items()
    }
    beyond = {name: 1.0 + max(c.severity or 0 for c in held) for name, held in levels.items()}
    early = {
        name: sum(row["y"] for row in held) + (len(runs) - len(held)) * beyond[name]
        for name, held in rows.items()
        if held
    }
    chosen = sorted(early, key=lambda name: early[name])[:_SHOWN]
    shown: list[Datum] = [row for name in chosen for row in rows[name]] if len(runs) <= _MOST else []
    end = max((beyond[name] - 1 for name in chosen), default=None)
    lacking = any(len(rows[name]) < len(runs) for name in chosen)
    note = "Further right is better. Straight lines between the severities that were run."
    note += f" The {len(chosen)} earliest on these images." if len(levels) > len(chosen) > 1 else ""
    first = any((held[0].severity or 0) > 1 for held in levels.values())
    before = ", or less already at the first that was run" if first else ""
    note += f" No bar: more than half is left at every severity{before}." if lacking else ""
    return Figure(
        "breaking", f"Where half of the clean {measure} is lost", Kind.BARS,
        Axis("corruption", names=True), replace(SEVERITY, end=end), shown,
        series="model", note=note,
    )  # fmt: skip


def _crossing_row(run: Scores, measure: str, name: str, levels: Sequence[Condition]) -> Datum | None:
    """The crossing of a run under a corruption with its interval; nothing where it keeps more than half, or
    less than half already at the lowest severity that was run."""
    clean = run.score(measure)
    texts = {0.0: "clean", **{float(c.severity or 0): str(c) for c in levels}}
    scores = {strength: run.score(measure, text) for strength, text in texts.items()}
    if not (measures()[measure].higher and clean > 0 and np.isfinite([*scores.values()]).all()):
        return None
    strengths, last = np.array([*scores]), max(scores)
    at = crossing(strengths, np.minimum([*scores.values()], clean), clean / 2)
    lowest = min(float(c.severity or 0) for c in levels)
    if not math.isfinite(at) or at < lowest > 1 or len(levels) < 2:  # from clean to 3, a line is a guess
        return None
    row: Datum = {"x": spoken(name), "y": at, "series": run.name}
    spread = run.spread(measure)
    if not all(text in spread for text in texts.values()):
        return row
    seen = {
        strength: _share_left(scores[strength] / clean, spread[text], spread["clean"])
        for strength, text in texts.items()
    }
    point = breaking_point(seen[0.0], seen, 0.5)
    return {**row, "low": max(0.0, min(point.low, at)), "high": min(last, max(point.high, at))}


def _share_left(left: float, drawn: Floats, clean: Floats) -> Observed:
    """A share of the clean score, with draws that relate every half of the images to its own clean score."""
    shares = ratio(drawn, clean)
    shares[0] = max(shares[:LEADING], key=lambda share: abs(share - left))  # as intervals of rPC choose
    return Observed(left, shares)


@section(place=20, paper=True)
def against_size(scope: Scope) -> Section | None:
    """Relative performance against RMSE and SNR, where the runs measured them."""
    m = scope.measure
    measured = [run for run in scope.runs if run.detail("quality") and run.score(m) > 0]
    if not measured:
        return None
    arrows = len(measured) == 2 and measured[0].dataset == measured[1].dataset
    rows = [row for run in (measured[:1] if arrows else measured) for row in _by_corruption(run, m)]
    note = ""
    if arrows:
        after = {row["label"]: row for row in _by_corruption(measured[1], m)}
        rows = [_arrow(row, after) for row in rows]
        note = f"Dots: {measured[0].name}. Arrows end at {measured[1].name}. "
    note += _PUBLISHED if any(run.origin.citation and not run.folder for run in measured) else ""
    by_rmse = Figure(
        "rmse", "Share of the clean score against RMSE, mean of each corruption", Kind.POINTS, RMSE, RELATIVE,
        rows, series="group", panel="" if arrows or len(measured) == 1 else "model", note=note,
        cite="michaelis, Fig. 6",
    )  # fmt: skip
    # Two are overlaid, such as a network trained on clean images and one trained on corrupted ones.
    beside = "dash" if arrows else "panel" if len(measured) > 1 else ""
    by_snr = Figure(
        "snr", f"{m} against SNR, each condition", Kind.LINES, SNR, Axis(unit(m), zero=True),
        [row for run in measured for row in _by_snr(run, m, beside)],
        series="corruption", pick=("Group",), panel="model" if beside == "panel" else "",
        dash="model" if arrows else "", cite="kamann, Fig. 20",
        note="Groups are those of Kamann et al., where brightness is a digital corruption."
        + (" Panels share their axes." if beside == "panel" else ""),
    )  # fmt: skip
    return Section(
        "size",
        "Does the size of the change explain the loss?",
        "Of two that change pixels equally, the higher one does less harm than its size suggests.",
        (by_rmse, by_snr),
        short="Size of change",
    )


def _by_corruption(run: Scores, measure: str) -> list[Datum]:
    return [
        {
            "x": fmean(run.detail("quality").get(str(c), {}).get("rmse", math.nan) for c in levels),
            "y": share(fmean(run.score(measure, str(c)) for c in levels), run.score(measure)),
            "label": name,
            "series": group_of(name),
            "panel": run.name,
        }
        for name, levels in all_levels(run.corrupted).items()
    ]


def _arrow(row: Datum, after: dict[str, Datum]) -> Datum:
    end = after.get(row["label"])
    if end is None or not math.isfinite(end["x"] + end["y"]):
        return row
    return {**row, "x2": end["x"], "y2": end["y"]}


def _kamann_group(corruption: str) -> str:
    return next((name for name, members in KAMANN.items() if corruption in members), group_of(corruption))


def _by_snr(run: Scores, measure: str, beside: str) -> list[Datum]:
    """A mark for each condition whose SNR is known; `beside` is the key that tells runs apart, if any."""
    return [
        {
            "x": snr,
            "y": per_cent(measure, run.score(measure, str(c))),
            "series": name,
            **({beside: run.name} if beside else {}),
            "pick": (_kamann_group(name),),
        }
        for name, levels in group_by_severity(run.corrupted).items()
        if len(levels) > 1
        for c in levels
        if (snr := run.detail("quality").get(str(c), {}).get("snr")) is not None
    ]
