"""`stormproof compare`: what changed between two runs; `agree`: whether two sets of runs rank alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Measure, Plugins, Replicates
from stormproof.core.errors import InvalidOption

if TYPE_CHECKING:
    from stormproof.core.table import Table

_LINES = 10  # of classes and images in the terminal; the page has all


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A run folder, a submission or published:….")],
    second: Annotated[str, typer.Argument(metavar="B", help="The run to compare with it.")],
    out: Annotated[
        Path | None, typer.Option(help="Write a page as well, with its numbers beside it.")
    ] = None,
    measure: Measure = None,
    data: Data = None,
    interval: Annotated[bool, typer.Option("--interval", help="Add 95 % intervals of the changes.")] = False,
    plugin: Plugins = None,
) -> None:
    """Compare two runs: what got better or worse, by corruption, class and image; which ranks changed.

    Examples:

        stormproof compare runs/before runs/after

        stormproof compare runs/before runs/after --measure AP50 --interval --out compare.html
    """
    from stormproof.report.comparison import compare_view
    from stormproof.report.make import write_page
    from stormproof.report.page import page
    from stormproof.report.sources import one_run

    a, b = (one_run(source, data, interval=interval) for source in (first, second))
    if interval and (a.record is None or b.record is None):
        raise InvalidOption("--interval needs two run folders: published numbers have no images to resample.")
    view = compare_view(a, b, measure=measure)
    for line in (view.sentences[0], *view.notices):
        console.say(line)
    for table in view.tables():
        if table.id == "changes":
            console.print_table(_narrow(table))
        elif table.id in ("class-changes", "image-changes"):
            console.print_table(table, most=_LINES)
    if out is not None:
        written = write_page(out, view, page(view))
        console.say(f"{written[0]} and {written[1]}")


def _narrow(table: Table) -> Table:
    """The table without ranks, where intervals leave no room for them in a terminal."""
    from stormproof.report.comparison import RANK_NOTE, RANKS

    if "clear" not in table.columns:
        return table
    kept = [i for i, name in enumerate(table.columns) if name not in RANKS]
    rows = [tuple(row[i] for i in kept) for row in table.rows]
    columns = tuple(table.columns[i] for i in kept)
    return replace(table, columns=columns, rows=rows, note=table.note.replace(RANK_NOTE, ""))


@app.command()
def agree(
    synthetic: Annotated[
        Path, typer.Argument(help="A run under corruption, or a folder of runs of several models.")
    ],
    real: Annotated[Path, typer.Argument(help="The same models on the real set, e.g. on ACDC.")],
    by: Annotated[
        str | None,
        typer.Option(help="The attribute by which to split the real set: condition, fog, domain, weather."),
    ] = None,
    measure: Measure = None,
    replicates: Replicates = 200,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Correlate synthetic corruption with real weather: do they rank models, or classes, alike?

    Spearman's rank correlation of the scores under each corruption with those on the real set, over models
    if there are three or more on both sides, else over the classes of the one model. The correlation of the
    clean score is the one to beat. Intervals are for new images.

    Examples:

        stormproof agree runs/cityscapes-c runs/acdc --by condition

        stormproof agree runs/coco-c runs/coco-o --by domain --measure AP
    """
    from stormproof.results.agreement import agree as correlate
    from stormproof.results.run import Run, runs_in

    sides = [[Run(folder) for folder in runs_in([side]).values()] for side in (synthetic, real)]
    table = correlate(*sides, by=by, measure=measure, replicates=replicates).table()
    if as_csv:
        typer.echo(table.as_csv(), nl=False)
        return
    console.print_table(table)
