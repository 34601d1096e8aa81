"""`stormproof quality`: how far each condition takes the images of a dataset from the clean ones."""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from stormproof.cli import app, console
from stormproof.cli.options import Conditions, Suite, chosen_conditions, complete_datasets
from stormproof.errors import InvalidOption
from stormproof.processes import worker_count

if TYPE_CHECKING:
    from stormproof.condition import Condition
    from stormproof.quality_table import Row

_COLUMNS = {"rmse": "RMSE", "snr": "SNR dB", "ssim": "SSIM", "vif": "VIF", "ifc": "IFC"}


@app.command()
def quality(
    dataset: Annotated[
        str,
        typer.Argument(help="What to open, as kind:path[,option=value…].", autocompletion=complete_datasets),
    ],
    conditions: Conditions = None,
    suite: Suite = None,
    measure: Annotated[
        str | None,
        typer.Option(help="Other measures, separated by commas: gradient_ssim,colour_wasserstein …"),
    ] = None,
    by_size: Annotated[
        bool, typer.Option("--by-size", help="Also on small, medium and large objects; with --measure.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="At most this many images, spread evenly over the dataset.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives other noise.")] = 0,
    workers: Annotated[
        int, typer.Option("--workers", "-j", help="Worker processes; 0 means one per core.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
) -> None:
    """Measure image quality under each condition: RMSE, SNR, SSIM, VIF and IFC, as means over images.

    The numbers depend on the seed and on each image's id, not on the number of workers. Images that a
    condition leaves as they are have no finite SNR or IFC and do not count in these two means.

    Examples:

        stormproof quality images:val2017 --conditions camera --limit 100

        stormproof quality coco:instances.json,images=val2017 --conditions 'gamma_damage@3' --csv

        stormproof quality coco:val.json --conditions object-centric --measure gradient_ssim --by-size --csv
    """
    if as_json and as_csv:
        raise InvalidOption("Give --json or --csv, not both.")
    for name, value, least in (("--limit", limit, 1), ("--workers", workers, 0)):
        if value is not None and value < least:
            raise InvalidOption(f"{name} {value}: it must be at least {least}.")
    if by_size and measure is None:
        raise InvalidOption("--by-size goes with --measure, as --measure gradient_ssim,colour_wasserstein.")
    chosen = chosen_conditions(conditions, suite)
    if measure is not None:
        names = [name.strip() for name in measure.split(",") if name.strip()]
        table = _sizes(dataset, chosen, names, by_size, limit, seed, workers)
        _print_sizes(table, as_json=as_json, as_csv=as_csv)
        return
    from stormproof.quality_table import over_severities

    rows = _measure(dataset, chosen, limit, seed, worker_count(workers))
    if as_json:
        print(json.dumps([row.record() for row in rows], indent=1))
    elif as_csv:
        _print_csv(rows)
    else:
        console.out.print(_table([*rows, *over_severities(rows)]))


def _measure(
    spec: str, conditions: tuple[Condition, ...], limit: int | None, seed: int, workers: int
) -> list[Row]:
    from stormproof.quality_table import average, whole

    return average(conditions, _measured(spec, conditions, limit, seed, workers, whole))


def _measured(
    spec: str, conditions: tuple[Condition, ...], limit: int | None, seed: int, workers: int, how: Any
) -> list[Any]:
    from stormproof.datasets import open_dataset
    from stormproof.datasets.survey import evenly_spread
    from stormproof.quality_table import measure

    console.announce_compiling()
    count = len(open_dataset(spec))
    indices = evenly_spread(count, count if limit is None else limit)
    workers = max(min(workers, len(indices)), 1)
    measured = []
    with console.progress("images") as bar:
        task = bar.add_task(f"measuring {len(conditions)} conditions", total=len(indices))
        for image in measure(spec, conditions, indices=indices, seed=seed, workers=workers, how=how):
            measured.append(image)
            bar.advance(task)
    return measured


def _sizes(
    spec: str, conditions: tuple[Condition, ...], names: list[str], objects: bool,
    limit: int | None, seed: int, workers: int,
) -> list[dict[str, str | int | float | None]]:  # fmt: skip
    from stormproof.quality_by_size import average, by_size

    how = by_size(names, objects=objects)
    measured = _measured(spec, conditions, limit, seed, worker_count(workers), how)
    return [
        {
            "condition": row.condition,
            "size": row.size,
            **dict(zip(names, row.means, strict=True)),
            "count": row.count,
        }
        for row in average(conditions, measured)
    ]


def _print_sizes(rows: list[dict[str, str | int | float | None]], *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    if as_csv:
        _write_csv(rows)
        return
    table = Table(box=None, pad_edge=False)
    for k, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if k < 2 else "right", overflow="fold")
    for row in rows:
        cells = (f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values())
        table.add_row(*map(Text, cells))
    console.out.print(table)


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
    _write_csv([row.record() for row in rows])


def _write_csv(records: list[dict[str, Any]]) -> None:
    writer = csv.DictWriter(sys.stdout, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
