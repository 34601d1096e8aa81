"""What goes wrong: error types (TIDE) by corruption and severity, and which of them a corruption adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from stormproof.core.table import Table
from stormproof.metrics.coco import MASKS
from stormproof.metrics.error_types import SPECIAL, TYPES
from stormproof.metrics.grid import Score, mean
from stormproof.metrics.lrp import PARTS
from stormproof.metrics.metric import ratio
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Scope, all_levels, corruption_means, group_of, level_name
from stormproof.report.sentences import spoken
from stormproof.results.calibrated import MARK, doubt
from stormproof.results.interval import around, paired
from stormproof.results.scores import Scores

OF = {"": "boxes", MASKS: "masks"}
WORDS = {
    "Cls": "wrong classes", "Loc": "badly placed detections", "Dupe": "duplicate detections",
    "Both": "detections wrong in class and place", "Bkg": "detections of nothing", "Miss": "missed objects",
}  # fmt: skip
_KINDS = (*TYPES, *SPECIAL)
_LRP = [f"{which}{part}" for which in ("oLRP", "LRP") for part in PARTS]
_NAMED = 3  # corruptions that the text is about
_LEAST = 0.01  # of AP50, below which shares are those of noise
_HIDDEN = "No bar: AP50 is below 1 %, where no repair gains anything and the mixture means nothing."
_TEXT = (
    "Every wrong detection has one type (TIDE, Bolya et al. 2020), and what a type costs is the AP50 gained "
    "if it alone were repaired. The bars show how that mixture shifts with severity. "
    "liu's flaws, under \u201cHow objects go wrong\u201d, classify objects instead, and count only boxes "
    "scored 0.4 or more: CBWO corresponds to Cls, WBCO to Loc, WBWO to Both, PMD and MD to Miss. An object "
    "whose box has a low score is missed there and may be Cls or Loc here; Dupe and Bkg are boxes without an "
    "object, which flaws leave out."
)


def error_types(scope: Scope) -> Section | None:
    """The mixture of errors under every condition, what it costs and how often each type occurs."""
    runs = [(run, prefix) for run in scope.runs for prefix in OF if f"{prefix}dAP Miss" in run.cells]
    if not runs:
        return None
    several = len(runs) > 1
    own = MASKS if scope.measure.startswith(MASKS) else ""
    whose = {run.name: run.name if len(scope.runs) > 1 else "" for run in scope.runs}
    said = [leading(run, prefix, name=whose[run.name]) for run, prefix in runs if prefix == own]
    names = {(run.name, prefix): f"{run.name}, {OF[prefix]}" if several else run.name for run, prefix in runs}
    costs, counts = (
        [
            row
            for run, prefix in runs
            for row in corruption_means(
                run, names[run.name, prefix], {prefix + words.format(k): unit for k in _KINDS}
            )
        ]
        for words, unit in (("dAP {}", 100.0), ("{} per image", 1.0))
    )
    lrp = [
        row
        for run in scope.runs
        if "oLRP" in run.cells
        for row in corruption_means(run, run.name, dict.fromkeys(_LRP, 100.0))
    ]
    columns = ("run", "corruption", *_KINDS)
    return Section(
        "error-types",
        "What goes wrong",
        " ".join(filter(None, (*said, _TEXT))),
        (_mixture(runs, names),),
        (
            Table(
                "error-costs", "What each type of error costs (points of AP50)", columns, costs,
                note="Repaired one at a time, so costs do not add up to what is missing from 100. FP: all "
                "false positives. FN: all objects not found.",
            ),
            Table("error-counts", "Errors per image", columns, counts, digits=2),
            Table(
                "lrp", "Localisation-recall-precision error (%)", ("run", "corruption", *_LRP), lrp,
                note="oLRP: at the best score threshold of each class and condition. LRP: at the thresholds "
                "that are best on clean images. Loc: 1 − IoU of what was found; FP: 1 − precision; FN: 1 − "
                "recall.",
            ),
        ),
        short="What goes wrong",
    )  # fmt: skip


def leading(run: Scores, prefix: str = "", *, name: str = "") -> str:
    """Which errors cost most under three corruptions, and how that differs from clean images: the hardest
    corruption of each group first, then the hardest of the others."""
    levels = all_levels(run.corrupted)
    ap = {each: mean(run.score(f"{prefix}AP50", str(c)) for c in held) for each, held in levels.items()}
    hardest = sorted((each for each in ap if math.isfinite(ap[each])), key=lambda each: ap[each])
    of_group = {group_of(each): each for each in reversed(hardest)}
    chosen = sorted(of_group.values(), key=hardest.index)
    chosen = list(dict.fromkeys([*chosen, *hardest]))[:_NAMED]
    whom = f"{name} under" if name else "Under"
    said = ((each, _words(run, prefix, each)) for each in chosen)
    return " ".join(f"{whom} {spoken(each)}, {words}." for each, words in said if words)


def _words(run: Scores, prefix: str, corruption: str) -> str:
    """'missed objects cost most: 74 % (95 %: 61 to 87) of the cost of all errors, up from 35 % …'."""
    held = [str(condition) for condition in all_levels(run.corrupted)[corruption]]
    if "clean" not in run.cells[f"{prefix}dAP Miss"]:
        return ""
    now, before = (_shares(run.cells, prefix, texts) for texts in (held, ["clean"]))
    kind = max(now, key=lambda each: now[each] if math.isfinite(now[each]) else -1.0)
    if not math.isfinite(now[kind]) or not math.isfinite(before[kind]):
        return ""
    sure, clear = "", True
    if run.replicates is not None and f"{prefix}dAP {kind}" in run.replicates.cells:
        drawn, clean = (_shares(run.replicates.cells, prefix, texts)[kind] for texts in (held, ["clean"]))
        found = around(now[kind], drawn, images=run.units)
        low, high = max(0.0, found.low), min(1.0, found.high)
        mark = f" {MARK}" if doubt(run, f"{prefix}dAP {kind}") else ""
        sure = f" (95 %{mark}: {100 * low:.0f} to {100 * high:.0f})" if not math.isnan(found.se) else ""
        shift = paired({"": now[kind] - before[kind]}, {"": drawn - clean}, images=run.units)[""]
        clear = shift.clear
    said = f"{WORDS[kind]} cost most: {100 * now[kind]:.0f} %{sure} of the cost of all errors"
    if round(100 * now[kind]) == round(100 * before[kind]):
        return f"{said}, as on clean images"
    moved = "up from" if now[kind] > before[kind] else "down from"
    chance = "" if clear else ", which may be chance"
    return f"{said}, {moved} {100 * before[kind]:.0f} % on clean images{chance}"


def _shares(cells: Mapping[str, Mapping[str, Score]], prefix: str, texts: Sequence[str]) -> dict[str, Any]:
    """Each type's share of what all types cost, over some conditions together."""
    costs = {kind: sum(cells[f"{prefix}dAP {kind}"][text] for text in texts) for kind in TYPES}
    whole = sum(costs.values())
    return {kind: ratio(cost, whole) for kind, cost in costs.items()}


def _mixture(runs: Sequence[tuple[Scores, str]], names: Mapping[tuple[str, str], str]) -> Figure:
    rows: list[Row] = []
    hidden = False
    for run, prefix in runs:
        for corruption, levels in all_levels(run.corrupted).items():
            for text, x in (("clean", "clean"), *((str(c), level_name(c)) for c in levels)):
                if run.score(f"{prefix}AP50", text) < _LEAST:
                    hidden = True
                    continue
                rows += [
                    {
                        "x": x, "y": 100 * run.score(f"{prefix}{kind} share", text), "series": kind,
                        "panel": corruption, "order": i,
                    }
                    | ({"pick": (names[run.name, prefix],)} if len(runs) > 1 else {})
                    for i, kind in enumerate(TYPES)
                ]  # fmt: skip
    return Figure(
        "error-types", "The mixture of errors by severity", Kind.STACK, Axis("severity", names=True),
        Axis("share of what errors cost (%)", end=100.0), rows, series="error", panel="corruption",
        pick=("Run",) if len(runs) > 1 else (), note=_HIDDEN if hidden else "",
    )  # fmt: skip
