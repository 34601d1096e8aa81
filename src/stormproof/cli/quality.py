"""`stormproof quality`: how far each condition takes the images of a dataset from the clean ones."""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from stormproof.cli import app, console
from stormproof.errors import InvalidOption
from stormproof.processes import worker_count

if TYPE_CHECKING:
    from stormproof.condition import Condition
    from stormproof.quality_table import Row

_COLUMNS = {"rmse": "RMSE", "snr": "SNR dB", "ssim": "SSIM", "vif": "VIF", "ifc": "IFC"}


@app.command()
def quality(
    dataset: Annotated[str, typer.Argument(help="What to open, as kind:path[,option=value…].")],
    suite: Annotated[str | None, typer.Option(help="Every condition of a suite.")] = None,
    condition: Annotated[
        list[str] | None, typer.Option(help="A condition such as 'gamma_damage@3'; repeatable.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="At most this many images, spread evenly over the dataset.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives other noise.")] = 0,
    workers: Annotated[int, typer.Option("--workers", "-j", help="Processes; 0 is one per core.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
) -> None:
    """Measure image quality under each condition: RMSE, SNR, SSIM, VIF and IFC, as means over images.

    The numbers depend on the seed and on each image's id, not on the number of workers. Images that a
    condition leaves as they are have no finite SNR or IFC and do not count in these two means.

    Examples:

        stormproof quality images:val2017 --suite camera --limit 100

        stormproof quality coco:instances.json,images=val2017 --condition 'gamma_damage@3' --csv
    """
    if as_json and as_csv:
        raise InvalidOption("Give --json or --csv, not both.")
    for name, value, least in (("--limit", limit, 1), ("--workers", workers, 0)):
        if value is not None and value < least:
            raise InvalidOption(f"{name} {value}: it must be at least {least}.")
    rows = _measure(dataset, _conditions(suite, condition or []), limit, seed, worker_count(workers))
    if as_json:
        print(json.dumps([row.record() for row in rows], indent=1))
    elif as_csv:
        _print_csv(rows)
    else:
        console.out.print(_table(rows))


def _conditions(suite: str | None, texts: list[str]) -> tuple[Condition, ...]:
    from stormproof.condition import Condition
    from stormproof.corruptions import find_suite

    if (suite is None) == (not texts):
        raise InvalidOption("Say what to measure with either --suite or --condition.")
    if suite is not None:
        return find_suite(suite).conditions
    return tuple(dict.fromkeys(map(Condition.parse, texts)))


def _measure(
    spec: str, conditions: tuple[Condition, ...], limit: int | None, seed: int, workers: int
) -> list[Row]:
    from stormproof.datasets import open_dataset
    from stormproof.datasets.survey import evenly_spread
    from stormproof.quality_table import average, measure

    count = len(open_dataset(spec))
    indices = evenly_spread(count, count if limit is None else limit)
    workers = max(min(workers, len(indices)), 1)
    measured = []
    with console.progress("images") as bar:
        task = bar.add_task(f"measuring {len(conditions)} conditions", total=len(indices))
        for image in measure(spec, conditions, indices=indices, seed=seed, workers=workers):
            measured.append(image)
            bar.advance(task)
    return average(conditions, measured)


def _table(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("condition", overflow="fold")
    for name in (*_COLUMNS.values(), "images"):
        table.add_column(name, justify="right")
    for row in rows:
        means = ("–" if value is None else f"{value:.{_digits(name)}f}" for name, value in _cells(row))
        table.add_row(Text(row.condition), *means, str(row.images))
    return table


def _cells(row: Row) -> list[tuple[str, float | None]]:
    return list(zip(_COLUMNS, row.means, strict=True))


def _digits(name: str) -> int:
    return 3 if name in ("ssim", "vif") else 2


def _print_csv(rows: list[Row]) -> None:
    records = [row.record() for row in rows]
    writer = csv.DictWriter(sys.stdout, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
