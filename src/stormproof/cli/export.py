"""`stormproof export`: a run's predictions in other formats."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console


class ExportFormat(StrEnum):
    coco = "coco"
    png = "png"


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that 'stormproof run' made.")],
    file_format: Annotated[
        ExportFormat, typer.Option("--format", help="COCO results, or label maps as PNG.")
    ] = ExportFormat.coco,
    out: Annotated[Path | None, typer.Option(help="Where to; RUN/export-FORMAT when not given.")] = None,
    data: Annotated[str | None, typer.Option(help="The dataset, if it has moved since the run.")] = None,
) -> None:
    """Write a run's predictions, one file or folder per condition, for other tools.

    COCO results use the dataset's own image and category ids; classes it does not have are left out.

    Examples:

        stormproof export runs/yolox --format coco --out results
    """
    from stormproof.datasets import open_dataset
    from stormproof.models.classes import match_classes
    from stormproof.store.export import FORMATS
    from stormproof.store.record import read_record

    record = read_record(run)
    numbers: list[int] = []
    if file_format is ExportFormat.coco:
        dataset = open_dataset(data or record.dataset.spec)
        # The numbers by which the dataset's own files know its classes; 0, 1, 2 … if it does not say.
        known = getattr(dataset, "category_ids", ()) or range(len(dataset.classes))
        match = match_classes(record.model.classes, dataset.classes)
        numbers = [known[label] if label >= 0 else -1 for label in match.labels]
    written = FORMATS[file_format](run, record, out or run / f"export-{file_format}", numbers)
    place = out or run / f"export-{file_format}"
    console.out.print(f"{place}: {len(written)} files", markup=False, soft_wrap=True)
