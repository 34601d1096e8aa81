"""What the terminal says about the scores of a run, line by line and table by table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from stormproof.core.errors import counted, first_few
from stormproof.core.table import Table
from stormproof.metrics.metric import measures
from stormproof.report import tables
from stormproof.report.decision import decision
from stormproof.report.sentences import sentence
from stormproof.report.sources import disambiguate_names
from stormproof.results.calibrated import footnote, mark
from stormproof.results.documents import curves_of, few_images, images_scored
from stormproof.results.interaction import interaction_table, interactions, worse_together
from stormproof.results.scores import Scores

_NEAR_ZERO = 0.01
_LARGEST = 10  # interactions shown

Said = tuple[Literal["warn", "say", "note", "table"], str | Table]  # how, and what


def tell_notices(name: str, scores: Scores) -> Iterator[Said]:
    """What a reader must know before any number: images left out, doubts, too few images."""
    if scores.left_out:
        yield "warn", f"{name}: scored on {images_scored(scores)}."
    for line in (*scores.notices, *tables.expectations(scores)):
        yield "note", f"{name}: {line}"
    if scores.replicates is not None and (warning := few_images(scores.images, scores.clips)):
        yield "note", warning


def tell_scores(every: Mapping[str, Scores], *, every_measure: bool) -> Iterator[Said]:
    """The scores of one run: a sentence, the table to decide by or that of all measures, and the grid."""
    (scores,) = every.values()
    clean = scores.score(scores.headline)
    if clean < _NEAR_ZERO and measures()[scores.headline].higher:
        likely = "most likely the network's input or output is misinterpreted; 'stormproof inspect MODEL "
        likely += "--data DATA' shows how it is read."
        yield "warn", f"the clean {scores.headline} is {clean:.2%}: {likely}"
    yield "say", sentence(scores, scores.headline)
    if scores.missing:
        yield "note", f"Incomplete, so without aggregates: {first_few(scores.missing)}"
    elif every_measure:
        yield "table", tables.summary_table(scores)
    else:
        made = decision([scores], scores.headline)
        unit = " in %" if measures()[scores.headline].fraction else ""
        title = tables.title_of(scores, mark(scores, scores.headline) + unit)
        yield "table", replace(made, title=title, note=footnote(scores, [scores.headline]))
        if len(scores.per_condition) > 1:
            others = counted(len(scores.per_condition) - 1, "other measure")
            yield "note", f"{others}: --all. What each means: stormproof explain NAME"
    for line in tables.scope_lines(scores):
        yield "say", line
    grid = tables.grid_table(scores)
    if {row[0] for row in grid.rows} - {"clean"}:  # a clean score alone stands above
        yield "table", grid
    if curves_of(scores, scores.headline):
        yield "table", tables.curve_table(scores)
    for table in tables.group_tables(scores):
        yield "table", table
    if (faults := tables.fault_table(scores)) is not None:
        yield "table", faults
    if words := worse_together(scores, scores.headline):
        if interactions(scores, scores.headline):
            yield "table", interaction_table(scores, scores.headline, most=_LARGEST)
        yield "say", words


def tell_several(every: Mapping[str, Scores], *, every_measure: bool) -> Iterator[Said]:
    """The scores of several runs: a table to decide by for each headline measure, a line for each run."""
    named = disambiguate_names([*every.values()])
    for measure in dict.fromkeys(scores.headline for scores in named):
        yield "table", decision([scores for scores in named if scores.headline == measure], measure)
    if every_measure:
        yield "table", tables.models_table(every)
