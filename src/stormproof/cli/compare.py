"""`stormproof compare`: what changed from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import table as rich_table
from rich.text import Text

from stormproof.cli import app, console
from stormproof.cli.options import Data, Measure
from stormproof.core.errors import InvalidOption, StormproofError

if TYPE_CHECKING:
    from stormproof.report.elements import Table
    from stormproof.report.subject import Subject
    from stormproof.results.images import ImageErrors
    from stormproof.results.interval import Difference

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
) -> None:
    """Compare two runs: what got better or worse, by corruption, class and image; which ranks changed.

    Examples:

        stormproof compare runs/before runs/after

        stormproof compare runs/before runs/after --measure AP50 --interval --out compare.html
    """
    from stormproof.report.comparison import compare_view
    from stormproof.report.make import write_page
    from stormproof.report.page import page

    a, b = _one(first, data), _one(second, data)
    view = compare_view(
        a, b, measure=measure, errors=_errors(a, b), sure=_sure(a, b, measure, data, interval)
    )
    for line in (view.sentences[0], *view.notices):
        console.say(line)
    for section in view.sections:
        if section.id in ("changes", "class-changes", "image-changes"):
            for table in section.tables:
                console.out.print(_shown(table, None if section.id == "changes" else _LINES))
    if out is not None:
        written = write_page(out, view, page(view))
        console.say(f"{written[0]} and {written[1]}")


def _one(source: str, data: str | None) -> Subject:
    from stormproof.report.sources import subjects_of

    found = subjects_of(source, data)
    if len(found) != 1:
        raise InvalidOption(f"{source} names {len(found)} networks; compare one with one.")
    return found[0]


def _sure(
    a: Subject, b: Subject, measure: str | None, data: str | None, asked: bool
) -> dict[str, Difference] | None:
    """Differences with their intervals, second minus first; where they are asked for."""
    from stormproof.results.intervals import differences
    from stormproof.results.resample import resample
    from stormproof.results.score import score_run

    if not asked:
        return None
    if a.folder is None or b.folder is None:
        raise InvalidOption("--interval needs two run folders: published numbers have no images to resample.")
    before, after = ((score_run(f, data=data), resample(f, data=data)) for f in (a.folder, b.folder))
    return differences(after, before).get(measure or a.headline)


def _errors(a: Subject, b: Subject) -> tuple[ImageErrors, ImageErrors] | None:
    """Errors by image, where both runs are at hand and on the same images."""
    from stormproof.results.images import read_images

    if a.folder is None or b.folder is None:
        return None
    try:
        return read_images(a.folder), read_images(b.folder)
    except StormproofError:
        return None


def _shown(table: Table, most: int | None) -> rich_table.Table:
    from stormproof.report.text import shown

    rows = list(table.rows)
    if most is not None and len(rows) > 2 * most:
        rows = [*rows[:most], ["…"] + [""] * (len(table.columns) - 1), *rows[-most:]]
    found = rich_table.Table(title=Text(table.title), title_justify="left")
    for i, column in enumerate(table.columns):
        number = any(isinstance(row[i], float | int) for row in rows)
        found.add_column(Text(column), justify="right" if number else "left", overflow="fold")
    for row in rows:
        found.add_row(
            *(_cell(value, table.columns[i], shown(value, table.digits)) for i, value in enumerate(row))
        )
    return found


def _cell(value: object, column: str, words: str) -> Text:
    """Changes in colour and with a sign: green is better, of errors too."""
    if "change" not in column or not isinstance(value, float):
        return Text(words)
    better = value < 0 if "error" in column else value > 0
    return Text(f"{value:+.1f}", style="green" if better else "red" if value else "")
