"""What goes wrong: error types (TIDE) by corruption and severity, and which of them a corruption adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.sample import Floats
from stormproof.core.table import Table
from stormproof.metrics.coco import MASKS
from stormproof.metrics.error_types import SPECIAL, TYPES
from stormproof.metrics.grid import Score, mean
from stormproof.metrics.lrp import PARTS
from stormproof.metrics.metric import ratio
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import Scope, all_levels, corruption_means, group_of, level_name, section
from stormproof.report.sentences import list_names, spoken, too_few
from stormproof.results.calibrated import MARK, doubt
from stormproof.results.interval import interval_around, paired_differences
from stormproof.results.leaders import leaders
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
    "if it alone were repaired. The bars show how that mixture shifts under corruption."
)


@section(place=40)
def error_types(scope: Scope) -> Section | None:
    """The mixture of errors under every condition, what it costs and how often each type occurs."""
    runs = [(run, prefix) for run in scope.runs for prefix in OF if f"{prefix}dAP Miss" in run.per_condition]
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
                run, names[run.name, prefix], [prefix + words.format(k) for k in _KINDS], scale=scale
            )
        ]
        for words, scale in (("dAP {}", 100.0), ("{} per image", 1.0))
    )
    located = [run for run in scope.runs if "oLRP" in run.per_condition]
    lrp = [row for run in located for row in corruption_means(run, run.name, _LRP)]
    columns = ("run", "corruption", *_KINDS)
    return Section(
        "error-types",
        "What goes wrong",
        _TEXT,
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
        finding=" ".join(dict.fromkeys(filter(None, said))),
    )  # fmt: skip


def leading(run: Scores, prefix: str = "", *, name: str = "") -> str:
    """Which errors cost most under three corruptions, and how that differs from clean images, in a sentence.

    The corruptions are the hardest of each group, then the hardest of the others. A type is named only if it
    costs more than every other beyond chance.
    """
    if "clean" not in run.per_condition[f"{prefix}dAP Miss"]:
        return ""
    if few := too_few(run, "which errors cost most"):
        return few
    before = _shares(run.per_condition, prefix, ["clean"])
    shares = {each: _shares(run.per_condition, prefix, texts) for each, texts in _choose(run, prefix).items()}
    known = {each: now for each, now in shares.items() if all(map(math.isfinite, now.values()))}
    if not known or not all(map(math.isfinite, before.values())):
        return ""
    under: dict[str, list[str]] = {}  # by type: the corruptions under which it costs most
    for each in known:
        under.setdefault(_costliest(run, prefix, each, known[each]), []).append(each)
    unclear = under.pop("", [])
    said = [_clause(run, prefix, kind, {each: known[each] for each in held}) for kind, held in under.items()]
    if unclear:
        said.append(f"under {list_names([*map(spoken, unclear)])}, no type of error clearly costs most")
    text = "; ".join(said)
    return f"{name}: {text}." if name else f"{text[:1].upper()}{text[1:]}."


def _choose(run: Scores, prefix: str) -> dict[str, list[str]]:
    """The corruptions that the sentence is about, with their conditions."""
    levels = all_levels(run.corrupted)
    ap = {each: mean(run.score(f"{prefix}AP50", str(c)) for c in held) for each, held in levels.items()}
    hardest = sorted((each for each in ap if math.isfinite(ap[each])), key=lambda each: ap[each])
    of_group = {group_of(each): each for each in reversed(hardest)}
    first = sorted(of_group.values(), key=hardest.index)
    return {each: [*map(str, levels[each])] for each in [*dict.fromkeys([*first, *hardest])][:_NAMED]}


def _costliest(run: Scores, prefix: str, corruption: str, now: Mapping[str, float]) -> str:
    """The type of error that costs most under a corruption; "" if that is not clear."""
    drawn = _draws_of(run, prefix, corruption)
    if drawn is None:
        return max(now, key=lambda kind: now[kind])
    first = leaders(now, drawn, highest=True, images=run.units)
    return first[0] if len(first) == 1 else ""


def _clause(run: Scores, prefix: str, kind: str, under: Mapping[str, Mapping[str, float]]) -> str:
    """'missed objects cost most under fog (74 % of the cost of all errors, 95 %: 61 to 87) and snow (…),
    against 35 % on clean images (clearly less than under fog)'."""
    before = _shares(run.per_condition, prefix, ["clean"])[kind]
    shown, shifts, halves = list[str](), dict[str, float](), dict[str, Floats]()
    for each, now in under.items():
        share = f"{100 * now[kind]:.0f} %" + ("" if shown else " of the cost of all errors")
        drawn, clean = (_draws_of(run, prefix, text) for text in (each, "clean"))
        if drawn is not None and clean is not None:
            interval = interval_around(now[kind], drawn[kind], images=run.units)
            shifts[each], halves[each] = now[kind] - before, drawn[kind] - clean[kind]
            if not math.isnan(interval.se):
                low, high = 100 * max(0.0, interval.low), 100 * min(1.0, interval.high)
                mark = f" {MARK}" if doubt(run, f"{prefix}dAP {kind}") else ""
                share += f", 95 %{mark}: {low:.0f} to {high:.0f}"
        shown.append(f"{spoken(each)} ({share})")
    tested = paired_differences(shifts, halves, images=run.units)
    clear = {word: [spoken(each) for each, shift in tested.items() if shift.clear and sign * shifts[each] > 0]
             for word, sign in (("less", 1), ("more", -1))}  # fmt: skip
    parts = [f"clearly {word} than under {list_names(names)}" for word, names in clear.items() if names]
    sure = f" ({', '.join(parts) or 'no clear difference'})" if tested else ""
    most = f"{WORDS[kind]} cost most under {list_names(shown)}"
    return f"{most}, against {100 * before:.0f} % on clean images{sure}"


def _draws_of(run: Scores, prefix: str, corruption: str) -> dict[str, Floats] | None:
    """The draws of each type's share under a corruption, or on clean images."""
    if run.replicates is None or f"{prefix}dAP Miss" not in run.replicates.per_condition:
        return None
    clean = corruption == "clean"
    texts = ["clean"] if clean else [str(c) for c in all_levels(run.corrupted)[corruption]]
    return _shares(run.replicates.per_condition, prefix, texts)


def _shares(cells: Mapping[str, Mapping[str, Score]], prefix: str, texts: Sequence[str]) -> dict[str, Any]:
    """Each type's share of what all types cost, over some conditions together."""
    costs = {kind: sum(cells[f"{prefix}dAP {kind}"][text] for text in texts) for kind in TYPES}
    whole = sum(costs.values())
    return {kind: ratio(cost, whole) for kind, cost in costs.items()}


def _mixture(runs: Sequence[tuple[Scores, str]], names: Mapping[tuple[str, str], str]) -> Figure:
    rows: list[Datum] = []
    hidden = False
    every = [levels for run, _ in runs for levels in all_levels(run.corrupted).values()]
    places = _bar_each if all(len(levels) == 1 for levels in every) else _panel_each
    for run, prefix in runs:
        for text, place in places(all_levels(run.corrupted)):
            if run.score(f"{prefix}AP50", text) < _LEAST:
                hidden = True
                continue
            rows += [
                {**place, "y": 100 * run.score(f"{prefix}{kind} share", text), "series": kind, "order": i}
                | ({"pick": (names[run.name, prefix],)} if len(runs) > 1 else {})
                for i, kind in enumerate(TYPES)
            ]
    return Figure(
        "error-types", "The mixture of errors", Kind.STACK,
        Axis("corruption" if places is _bar_each else "severity", names=True),
        Axis("share of what errors cost (%)", end=100.0), rows, series="error", panel="corruption",
        pick=("Run",) if len(runs) > 1 else (), note=_HIDDEN if hidden else "",
    )  # fmt: skip


Places = list[tuple[str, Datum]]  # conditions, and where their bars go


def _bar_each(levels: Mapping[str, Sequence[Condition]]) -> Places:
    """One severity of each corruption: all bars below each other."""
    return [("clean", {"x": "clean"}), *((str(held[0]), {"x": name}) for name, held in levels.items())]


def _panel_each(levels: Mapping[str, Sequence[Condition]]) -> Places:
    return [
        (text, {"x": x, "panel": name})
        for name, held in levels.items()
        for text, x in (("clean", "clean"), *((str(c), level_name(c)) for c in held))
    ]
