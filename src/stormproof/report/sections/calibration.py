"""Can scores be trusted: reliability diagrams clean against corrupted, calibration errors, and the threshold
that would keep precision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stormproof.core.sample import Floats
from stormproof.core.table import Table
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import Scope, all_levels, corruption_means, level_name, section
from stormproof.report.sentences import under
from stormproof.results.interval import paired_differences
from stormproof.results.leaders import leaders
from stormproof.results.scores import Scores

PERFECT = "perfect"
_CLEAR = 0.02  # of scores: a difference from precision that is worth a word
_ENOUGH = 100  # boxes from which a sentence relies on D-ECE: with fewer, chance alone makes it 0.1 or more


class _Kind(NamedTuple):
    """What has a score that promises something, and how the section speaks of it."""

    what: str
    title: str
    text: str
    table: str
    columns: tuple[str, ...]
    right: str  # the title of the diagram's vertical axis
    start: float  # of the diagonal, in per cent
    note: str


COLUMNS = ("D-ECE", "LaECE0", "LaACE0", "precision", "safe threshold", "safe recall")
_BOXES = _Kind(
    "boxes",
    "Can scores be trusted?",
    "A score of 0.8 is a promise that four of five such boxes are right. The diagram plots the share that is "
    "right (IoU 0.5, all classes) against the score; below the diagonal a model is overconfident. D-ECE "
    "is the mean distance from the diagonal of boxes scored 0.3 or more; LaECE0 and LaACE0 also require that "
    "scores show how well boxes fit. The safe threshold is the lowest score at which precision is that of "
    "clean boxes scored 0.3 or more; a dash: no threshold reaches it.",
    "Calibration and thresholds (in %)",
    COLUMNS,
    "right at IoU 0.5 (%)",
    30.0,
    "Boxes scored 0.3 or more in bins of 0.1; a bin of few boxes is uncertain.",
)
_PIXELS = _Kind(
    "pixels",
    "Can confidence be trusted?",
    "A confidence of 0.8 is a promise that four of five such pixels are right. The diagram plots the share "
    "that is right against the confidence; below the diagonal a model is overconfident. ECE is the mean "
    "distance from the diagonal, weighted by pixels (Guo et al. 2017, 15 bins); Brier is the mean squared "
    "difference of confidence and right (1) or wrong (0).",
    "Calibration (in %)",
    ("ECE", "Brier", "pixel accuracy"),
    "right (%)",
    0.0,
    "Pixels in 15 bins of confidence; a bin of few pixels is uncertain.",
)


@section(place=50)
def calibration(scope: Scope) -> Section | None:
    """Whether scores of boxes, or of every pixel of label maps, can be trusted under every condition."""
    for kind in (_BOXES, _PIXELS):
        runs = [run for run in scope.runs if kind.columns[0] in run.per_condition]
        if not runs:
            continue
        said = [worth(run, name=run.name if len(runs) > 1 else "") for run in runs if kind is _BOXES]
        rows = [row for run in runs for row in corruption_means(run, run.name, kind.columns)]
        return Section(
            "calibration",
            kind.title,
            kind.text,
            (_diagram(runs, kind),),
            (Table("calibration", kind.table, ("run", "corruption", *kind.columns), rows),),
            short="Calibration",
            finding=" ".join(filter(None, said)),
        )
    return None


def worth(run: Scores, *, name: str = "") -> str:
    """How far scores are off on clean images and under the condition that is worst for them, and the
    threshold that this requires. Conditions with few boxes are left out."""
    errors = {
        text: run.score("D-ECE", text) for text in run.detail("reliability") if _boxes(run, text) >= _ENOUGH
    }
    clean = errors.pop("clean", math.nan)
    if not errors or math.isnan(clean):
        return ""
    whose = f"{name}: scores" if name else "Scores"
    said = f"{whose} are off by {100 * clean:.1f} points{_sure(run)} on clean images"
    more, drawn = _more_than_clean(run, errors)
    if not more:
        by = "clearly more" if drawn else "more"
        return f"{said}, and by {by} under no condition with {_ENOUGH} boxes or more."
    worst = max(more, key=lambda text: errors[text])
    first = leaders(errors, drawn, highest=True, images=run.units) if drawn else [worst]
    rank = "the worst" if first == [worst] else "among the worst"
    return (
        f"{said} and by {100 * errors[worst]:.1f} under {under(worst)}, {rank}{_leaning(run, worst)}. "
        f"{_say_needed(run, worst)}"
    ).strip()


def _sure(run: Scores) -> str:
    """The interval of D-ECE on clean images, if the run has replicates."""
    interval = run.intervals("D-ECE").get("clean")
    if interval is None or math.isnan(interval.se):
        return ""
    return f" (95 %: {interval.span()})"


def _more_than_clean(run: Scores, errors: Mapping[str, float]) -> tuple[list[str], dict[str, Floats]]:
    """The conditions whose D-ECE is above that of clean images, clearly so if the run has replicates; and
    their draws. Holm's correction is over the conditions."""
    clean, spread = run.score("D-ECE"), run.spread("D-ECE")
    rises = {text: error - clean for text, error in errors.items()}
    if not all(text in spread for text in ("clean", *errors)):
        return [text for text, rise in rises.items() if rise > 0], {}
    tested = paired_differences(
        rises, {text: spread[text] - spread["clean"] for text in errors}, images=run.units
    )
    more = [text for text, rise in rises.items() if rise > 0 and tested[text].clear]
    return more, {text: spread[text] for text in errors}


def _boxes(run: Scores, text: str) -> float:
    return float(np.nansum(run.detail("reliability")[text]["detections"]))


def _leaning(run: Scores, text: str) -> str:
    """Whether scores promise too much or too little."""
    count, score, right = (
        np.nan_to_num(np.array(run.detail("reliability")[text][key], float))
        for key in ("detections", "score", "precision")
    )
    gap = float((count * (score - right)).sum() / count.sum())
    return f", where they promise too {'much' if gap > 0 else 'little'}" if abs(gap) >= _CLEAR else ""


def _say_needed(run: Scores, text: str) -> str:
    now, before = run.score("safe threshold", text), run.score("safe threshold")
    precision, level = run.score("precision", text), run.score("precision")
    if not math.isfinite(level) or not math.isfinite(before) or precision >= level:
        return ""
    if not math.isfinite(now):
        return f"Under {under(text)} no threshold keeps the clean precision of {100 * level:.0f} %."
    recall = f"{100 * run.score('safe recall'):.0f} % to {100 * run.score('safe recall', text):.0f} %"
    return (
        f"To keep the clean precision of {100 * level:.0f} % under {under(text)}, boxes must score "
        f"{now:.2f} or more, and the share of objects found falls from {recall}."
    )


def _diagram(runs: Sequence[Scores], kind: _Kind) -> Figure:
    rows: list[Datum] = []
    for run in runs:
        pick = {"pick": (run.name,)} if len(runs) > 1 else {}
        for corruption, levels in all_levels(run.corrupted).items():
            rows += [
                {"x": x, "y": x, "series": PERFECT, "panel": corruption, **pick} for x in (kind.start, 100.0)
            ]
            chosen = levels if len(levels) < 3 else (levels[0], levels[len(levels) // 2], levels[-1])
            for text, name in (("clean", "clean"), *((str(c), level_name(c)) for c in chosen)):
                bins = run.detail("reliability").get(text, {})
                rows += [
                    {"x": 100 * x, "y": 100 * y, "series": name, "panel": corruption, **pick}
                    for x, y in zip(bins.get("score", ()), bins.get("precision", ()), strict=True)
                ]
    return Figure(
        "reliability", f"Share of {kind.what} that are right against their score", Kind.LINES,
        Axis("score (%)"), Axis(kind.right, end=100.0), rows, series="severity", panel="corruption",
        pick=("Run",) if len(runs) > 1 else (), note=kind.note,
    )  # fmt: skip
