"""`stormproof export`: a run's predictions in other formats."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console

if TYPE_CHECKING:
    from stormproof.store.record import RunRecord


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
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out conditions that lack images.")
    ] = False,
) -> None:
    """Write a run's predictions, one file or folder per condition, for other tools.

    COCO results use the dataset's own image and category ids; classes it does not have are left out.
    Label maps keep the model's own numbers, named in classes.txt. Either is a model again: results:FOLDER.

    Examples:

        stormproof export runs/yolox --format coco --out results

        stormproof export runs/deeplab --format png --out maps
    """
    from stormproof.spec import Spec
    from stormproof.store.completeness import IncompleteRun, in_words, missing_images
    from stormproof.store.export import CLASSES, export_coco, export_png
    from stormproof.store.record import read_record

    record = read_record(run)
    lacking = missing_images(run, record)
    conditions = [text for text in record.conditions if text not in lacking]
    if lacking and not (partial and conditions):
        raise IncompleteRun(run, record, lacking, "export")
    place = out or run / f"export-{file_format}"
    options = {}
    if file_format is ExportFormat.coco:
        written = export_coco(run, conditions, place, _category_ids(record, data))
    else:
        classes = record.model.semantic_classes
        written = export_png(run, conditions, place, classes)
        options = {"classes": str(place / CLASSES)} if classes else {}
    if lacking:
        console.note(f"Left out: {', '.join(in_words(record, lacking))}")
    model = Spec("results", str(place), options)
    console.say(f"{place}: {len(written)} files; as a model: {model}")


def _category_ids(record: RunRecord, data: str | None) -> list[int] | None:
    """The numbers by which the dataset's own files know the model's classes, −1 for those it lacks.

    They count from 0 if the dataset does not say. Where it has no classes, labels stay the model's own.
    """
    from stormproof.models.classes import match_classes
    from stormproof.store.reopen import dataset_of

    dataset = dataset_of(record, data)
    if not dataset.classes:
        return None
    known = getattr(dataset, "category_ids", ()) or range(len(dataset.classes))
    match = match_classes(record.model.classes, dataset.classes)
    return [known[label] if label >= 0 else -1 for label in match.labels]
