"""`stormproof compare`: what changed from one run to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Measure, Plugins
from stormproof.core.errors import InvalidOption, first_few

if TYPE_CHECKING:
    from stormproof.core.table import Table
    from stormproof.results.scores import Scores

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
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.report.comparison import compare_view
    from stormproof.report.make import write_page
    from stormproof.report.page import page

    load_plugins(plugin or ())
    a, b = (_one(source, data, interval=interval) for source in (first, second))
    view = compare_view(a, b, measure=measure)
    for line in (view.sentences[0], *view.notices):
        console.say(line)
    for table in view.tables():
        if table.id == "changes":
            console.out.print(_narrow(table).as_rich())
        elif table.id in ("class-changes", "image-changes"):
            console.out.print(table.as_rich(_LINES))
    if out is not None:
        written = write_page(out, view, page(view))
        console.say(f"{written[0]} and {written[1]}")


def _narrow(table: Table) -> Table:
    """The table without ranks, where intervals leave no room for them in a terminal."""
    count = len(table.columns) - (3 if "clear" in table.columns else 0)
    return replace(table, columns=table.columns[:count], rows=[row[:count] for row in table.rows])


def _one(source: str, data: str | None, *, interval: bool) -> Scores:
    from stormproof.report.sources import scores_of

    found = scores_of(source, data, interval=interval)
    if len(found) != 1:
        names = first_few([scores.name for scores in found])
        raise InvalidOption(f"{source} holds {len(found)} runs ({names}); name one of them.")
    if interval and found[0].record is None:
        raise InvalidOption("--interval needs two run folders: published numbers have no images to resample.")
    return found[0]
