"""`stormproof quality`: how far each condition moves the images of a dataset from the clean ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stormproof.cli import app, console
from stormproof.cli.options import AsJson, Opened, Workers, chosen_conditions
from stormproof.cli.settings import Conditions, Limit, Seed
from stormproof.core.errors import InvalidOption, counted
from stormproof.core.processes import worker_count
from stormproof.core.table import Table

if TYPE_CHECKING:
    from stormproof.core.condition import Condition
    from stormproof.tools.quality_table import QualityRow

# In the order of `Quality`: titles, and digits after the point.
_COLUMNS = (("RMSE", 2), ("SNR dB", 2), ("SSIM", 3), ("VIF", 3), ("IFC", 2))


@app.command()
def quality(
    dataset: Opened,
    conditions: Conditions = None,
    measure: Annotated[
        str | None,
        typer.Option(help="Other measures, separated by commas: gradient_ssim,colour_wasserstein …"),
    ] = None,
    by_size: Annotated[
        bool,
        typer.Option("--by-size", help="Also measure small, medium and large objects; requires --measure."),
    ] = False,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 0,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
) -> None:
    """Measure image quality under each condition: RMSE, SNR, SSIM, VIF and IFC, as means over images.

    The numbers depend on the seed and on each image's id, not on the number of workers. An image that a
    condition leaves unchanged has no finite SNR or IFC and is left out of these two means.

    Examples:

        stormproof quality images:val2017 --conditions camera --limit 100

        stormproof quality coco:instances.json,images=val2017 --conditions 'gamma_damage@3' --csv

        stormproof quality coco:val.json --conditions object-centric --measure gradient_ssim --by-size --csv
    """
    if as_json and as_csv:
        raise InvalidOption("Give --json or --csv, not both.")
    if limit is not None and limit < 1:
        raise InvalidOption(f"--limit {limit}: it must be at least 1.")
    if by_size and measure is None:
        raise InvalidOption(
            "--by-size requires --measure, such as --measure gradient_ssim,colour_wasserstein."
        )
    from stormproof.tools import quality_table

    chosen = chosen_conditions(conditions)
    names = None if measure is None else [name.strip() for name in measure.split(",") if name.strip()]
    how = quality_table.whole_images if names is None else quality_table.by_size(names, objects=by_size)
    measured = _measure(dataset, chosen, limit, seed, worker_count(workers), how)
    if names is None:
        rows = quality_table.average(chosen, measured)
        records = [row.record() for row in rows]
        table = _table([*rows, *quality_table.over_severities(rows)])
    else:
        records = [row.record() for row in quality_table.average_by_size(names, chosen, measured)]
        values = [list(record.values()) for record in records]
        table = Table("quality", "", tuple(records[0]), values, digits=3)
    if as_json:
        console.print_json(records)
    elif as_csv:
        console.print_csv(records)
    else:
        console.print_table(table, framed=False)


def _measure(
    spec: str, conditions: tuple[Condition, ...], limit: int | None, seed: int, workers: int, how: Any
) -> list[Any]:
    """The measures that `how` computes for each image."""
    from stormproof.datasets import read_dataset
    from stormproof.tools.quality_table import measure

    count = len(read_dataset(spec))
    indices = range(count if limit is None else min(limit, count))
    workers = max(min(workers, len(indices)), 1)
    images = measure(spec, conditions, indices=indices, seed=seed, workers=workers, how=how)
    with console.progress(f"measuring {counted(len(conditions), 'condition')}", len(indices)) as progress:
        return list(progress.track(images))


def _table(rows: list[QualityRow]) -> Table:
    lines = [
        [
            row.condition,
            *(
                None if v is None else f"{v:.{digits}f}"
                for (_, digits), v in zip(_COLUMNS, row.means, strict=True)
            ),
            row.images,
        ]
        for row in rows
    ]
    return Table("quality", "", ("condition", *(title for title, _ in _COLUMNS), "images"), lines)
