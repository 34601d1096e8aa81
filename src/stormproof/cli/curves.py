"""`stormproof curves`: relative performance along α by object size, and how far models lie apart."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from stormproof.cli import app, console
from stormproof.cli.options import Runs
from stormproof.core.errors import InvalidOption

if TYPE_CHECKING:
    from stormproof.results.score import Scores


@app.command()
def curves(
    runs: Runs,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write curves.csv and distances.csv.")
    ] = None,
) -> None:
    """Print scores of stylized runs along α: rAP, rAPs, rAPm and rAPl by space and part of the image.

    With several runs, also the distances between their models (theodoridis 2022, Fig. 15). Masks are
    scored where the runs have them, boxes otherwise.

    Examples:

        stormproof curves runs/maskrcnn

        stormproof curves runs/a runs/b runs/c --out tables
    """
    from stormproof.metrics.sequences import distance_matrix
    from stormproof.results.score import score_run

    scored = [score_run(run) for run in runs]
    prefix = "mask " if all("mask AP" in scores.by_measure for scores in scored) else ""
    names = _distinct([scores.record.model.name for scores in scored], runs)
    rows = [row for name, scores in zip(names, scored, strict=True) for row in _rows(name, scores, prefix)]
    for name in names:
        console.out.print(_table(f"{name}: relative {prefix}AP along α (in %)", rows, name))
    distances = None
    if len(names) > 1:
        series = {name: _series(rows, name) for name in names}
        distances = distance_matrix(series)
        console.out.print(_distance_table(distances.models, distances.matrix.tolist()))
    if out is not None:
        from stormproof.core.files import make_folder

        folder = make_folder(out)
        _write(folder / "curves.csv", [("model", "measure", "space", "part", "alpha", "rP"), *rows])
        if distances is not None:
            table = [(name, *row) for name, row in zip(names, distances.matrix.tolist(), strict=True)]
            _write(folder / "distances.csv", [("model", *names), *table])
        console.say(f"{folder}: written")


Row = tuple[str, str, str, str, float, float]


def _rows(name: str, scores: Scores, prefix: str) -> list[Row]:
    from stormproof.metrics.sequences import SIZES
    from stormproof.results.tables import curves_of

    rows = [
        (name, size, space, part, alpha, value)
        for size in SIZES
        for (space, part), curve in curves_of(scores, prefix + size).items()
        for alpha, value in curve.items()
    ]
    if not rows:
        fix = "run the suite object-centric, or conditions style[alpha=…]"
        raise InvalidOption(f"{name} was not run along α; {fix}.")
    return rows


def _series(rows: list[Row], name: str) -> dict[str, dict[float, float]]:
    """One model's curves as the distance takes them: every space, part and size is a score of its own."""
    found: dict[str, dict[float, float]] = {}
    for model, size, space, part, alpha, value in rows:
        if model == name:
            found.setdefault(f"{size} {space} {part}", {})[alpha] = value
    return found


def _distinct(names: list[str], runs: list[Path]) -> list[str]:
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


def _table(title: str, rows: list[Row], name: str) -> Table:
    mine = [row for row in rows if row[0] == name]
    columns = list(dict.fromkeys((row[2], row[3], row[1]) for row in mine))
    values = {(row[2], row[3], row[1], row[4]): row[5] for row in mine}
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("space, part")
    table.add_column("size", min_width=4)
    alphas = sorted({row[4] for row in mine})
    for alpha in alphas:
        table.add_column(f"{alpha:g}", justify="right", min_width=4)
    for space, part, size in columns:
        cells = (values.get((space, part, size, alpha)) for alpha in alphas)
        table.add_row(
            f"{space} {part}", size, *("" if v is None or v != v else f"{100 * v:.0f}" for v in cells)
        )
    return table


def _distance_table(names: tuple[str, ...], matrix: list[list[float]]) -> Table:
    title = "distance between models (Euclidean over α, mean over curves)"
    table = console.table(title, ["model"], names)
    for name, row in zip(names, matrix, strict=True):
        table.add_row(name, *(f"{value:.3f}" for value in row))
    return table


def _write(path: Path, rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
