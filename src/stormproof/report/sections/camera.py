"""Object errors (*liu*): mAP against mCE (Fig. 8), flaws (Fig. 9), scenarios, enhancements (Tables 4, 5)."""

from __future__ import annotations

import math

from stormproof.core.errors import IncompleteGrid
from stormproof.core.table import Table
from stormproof.metrics.corruption_error import cross_scenario, enhancement_change
from stormproof.metrics.object_error import FLAWS
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import Scope, all_levels, section
from stormproof.results.scores import Scores

TRAINED, DETECTOR = "trained", "detector"  # tags that cross-scenario tables go by


@section(place=40, paper=True)
def object_errors(scope: Scope) -> Section | None:
    """Everything that follows from the error of each object."""
    runs = [run for run in scope.runs if math.isfinite(run.mean("E") or math.nan)]
    if not runs:
        return None
    tables = (_ce(runs), *_enhancements(runs), *_scenarios(runs))
    return Section(
        "errors",
        "How objects go wrong",
        "CE is the mean error of objects, 1 − IoU with the best box, over the severities of a corruption; "
        "lower is better. Flaws: CBWO good box, wrong class; WBCO right class, bad box; WBWO both wrong; "
        "PMD object missed, others found; MD all objects of an image missed. Only boxes scored 0.4 or more "
        "count. Of the types under \u201cWhat goes wrong\u201d, CBWO corresponds to Cls, WBCO to Loc, WBWO "
        "to Both, PMD and MD to Miss; Dupe and Bkg are boxes without an object, which flaws leave out.",
        (_map_against_mce(runs), _flaws(runs)),
        tables,
        short="Object errors",
    )


def _mean_name(runs: list[Scores]) -> str:
    """mCE where the runs' conditions are a benchmark or suite, else what it is a mean of."""
    names = {run.mean_name("E").replace("mean ", "mean E ") for run in runs}
    return names.pop() if len(names) == 1 else "mean E over each run's conditions"


def _map_against_mce(runs: list[Scores]) -> Figure:
    rows: list[Datum] = [
        {"x": 100 * run.score("AP"), "y": 100 * run.mean("E"), "series": run.name} for run in runs
    ]
    return Figure(
        "map-mce", f"Clean mAP against {_mean_name(runs)}", Kind.POINTS, Axis("clean mAP (%)"),
        Axis(f"{_mean_name(runs)} (%)"), rows if len(rows) > 1 else (), series="model", cite="liu, Fig. 8",
        by_run=True, trend=True,
        note="The dashed line is a linear fit over all models." if len(rows) > 2 else "",
    )  # fmt: skip


def _flaws(runs: list[Scores]) -> Figure:
    rows: list[Datum] = []
    for run in runs:
        levels = {name: [str(c) for c in held] for name, held in all_levels(run.corrupted).items()}
        every = {
            "all corruptions": [t for texts in levels.values() for t in texts],
            "clean": ["clean"],
            **levels,
        }
        for name, texts in every.items():
            counts = {f.value: sum(run.score(f"flaws {f.value}", text) for text in texts) for f in FLAWS}
            total = sum(counts.values())
            rows += [
                {"x": run.name, "y": 100 * n / total, "series": flaw, "pick": (name,), "order": i}
                for i, (flaw, n) in enumerate(counts.items())
                if total > 0
            ]
    return Figure(
        "flaws", "Distribution of flaws", Kind.STACK, Axis("model", names=True),
        Axis("share of flawed objects (%)", end=100.0), rows, series="flaw", pick=("Corruption",),
        cite="liu, Fig. 9",
    )  # fmt: skip


def _ce(runs: list[Scores]) -> Table:
    names = list(dict.fromkeys(name for run in runs for name in run.by_corruption("E")))
    rows = [
        (
            run.name,
            100 * run.score("E"),
            *(100 * run.by_corruption("E").get(name, math.nan) for name in names),
            100 * run.mean("E"),
        )
        for run in runs
    ]
    return Table("ce", "Corruption error (%)", ("model", "clean", *names, _mean_name(runs)), rows)


def _enhancements(runs: list[Scores]) -> list[Table]:
    """Runs with an enhancement beside the run of the same model without."""
    lines = []
    for enhanced in runs:
        for plain in runs:
            ours, theirs = enhanced.record, plain.record
            if not (ours and theirs and ours.model.enhance and not theirs.model.enhance):
                continue
            name = "+".join((theirs.model.name, *ours.model.enhance))  # as an enhanced model is called
            if (ours.model.spec, ours.model.name) != (theirs.model.spec, name):
                continue
            try:
                change = enhancement_change(plain.grid("E"), enhanced.grid("E"))
            except IncompleteGrid:
                continue
            how = ", ".join(ours.model.enhance)
            lines += [(enhanced.name, how, name, 100 * value) for name, value in change.items()]
    columns = ("model", "enhancement", "corruption", "ΔCE")
    title = "Change of CE with an enhancement, in points"
    note = "Positive is worse. Liu et al., Table 5."
    return [Table("enhancements", title, columns, lines, note=note)] if lines else []


def _scenarios(runs: list[Scores]) -> list[Table]:
    """Change of mCE by the scenario a model was trained for (a tag) and the dataset it was tested on."""
    by_detector: dict[str, dict[tuple[str, str], Scores]] = {}
    for run in runs:
        if TRAINED in run.tags:
            detector = run.tags.get(DETECTOR, run.model)
            by_detector.setdefault(detector, {})[run.tags[TRAINED], run.dataset] = run
    lines = []
    for detector, pairs in by_detector.items():
        if len(pairs) < 2:
            continue
        try:
            changes = cross_scenario({pair: run.grid("E") for pair, run in pairs.items()})
        except IncompleteGrid:
            continue
        lines += [(detector, trained, tested, 100 * v) for (trained, tested), v in changes.items()]
    columns = ("detector", "trained for", "tested on", "mCE − clean")
    title = "Change of mCE across scenarios, in points"
    return [Table("scenarios", title, columns, lines, note="Liu et al., Table 4.")] if lines else []
