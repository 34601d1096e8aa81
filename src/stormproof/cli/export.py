"""`stormproof export`: write a run's predictions in other formats."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Plugins, Runs
from stormproof.core.errors import InvalidOption, counted

if TYPE_CHECKING:
    from stormproof.results.run import Run


class ExportFormat(StrEnum):
    coco = "coco"
    png = "png"
    panoptic = "panoptic"


@app.command()
def export(
    runs: Runs,
    file_format: Annotated[
        ExportFormat, typer.Option("--format", help="COCO results, label maps as PNG, or COCO panoptic.")
    ] = ExportFormat.coco,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write to. Default: RUN/export-FORMAT.")
    ] = None,
    data: Data = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out conditions that lack images.")
    ] = False,
    truth: Annotated[
        bool,
        typer.Option("--truth", help="Write the truth of the images that were run: COCO, or COCO panoptic."),
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Write a run's predictions, one file or folder per condition, for other tools.

    COCO results and panoptic maps (a JSON file and a folder of PNGs) use the dataset's own image and category
    ids; classes that the dataset lacks are left out. Label maps keep the model's own numbers, named in
    classes.txt. All can be opened as a model: results:FOLDER.

    Examples:

        stormproof export runs/yolox --format coco --out results

        stormproof export runs/deeplab --format png --out maps

        stormproof export runs/zoo --out results

        stormproof export runs/yolox --truth --out truth
    """
    from stormproof.core.files import refuse_link
    from stormproof.results.run import runs_in

    if truth and file_format is ExportFormat.png:
        raise InvalidOption("--truth is written as COCO or COCO panoptic; leave out --format png.")
    folders = runs_in(runs)
    several = len(folders) > 1
    for name, run in folders.items():
        place = (out / name if several else out) if out is not None else None
        if truth:
            _export_truth(run, file_format, place or refuse_link(run / "export-truth"), data)
        else:
            own = place or refuse_link(run / f"export-{file_format}")
            _export(run, file_format, own, data, partial)


def _export(run: Path, file_format: ExportFormat, place: Path, data: str | None, partial: bool) -> None:
    from stormproof.core.spec import Spec
    from stormproof.corruptions.plugins import declare
    from stormproof.results.run import IncompleteRun, Run, missing_words
    from stormproof.results.store.export import CLASSES, export_coco, export_panoptic, export_png
    from stormproof.results.store.integrity import check_parts

    opened = Run(run, data=data)
    record = opened.record
    declare(record.declared)
    check_parts(opened)
    conditions = [text for text in record.conditions if text not in opened.missing]
    if opened.missing and not (partial and conditions):
        raise IncompleteRun(opened, "export")
    options = {}
    if file_format is ExportFormat.coco:
        written = export_coco(opened, conditions, place, _category_ids(opened))
    elif file_format is ExportFormat.panoptic:
        written = export_panoptic(opened, conditions, place)
    else:
        classes = record.model.semantic_classes
        written = export_png(opened, conditions, place, classes)
        options = {"classes": str(place / CLASSES)} if classes else {}
    if opened.missing:
        console.note(f"Left out: {', '.join(missing_words(opened))}")
    model = Spec("results", str(place), options)
    console.say(f"{place}: {counted(len(written), 'file')}; as a model: {model}")


def _category_ids(run: Run) -> list[int] | None:
    """The dataset's category id for each class of the model, −1 for classes that the dataset lacks.

    A dataset without classes leaves the labels as the model gave them.
    """
    from stormproof.datasets.coco import category_ids
    from stormproof.models.classes import match_classes

    dataset = run.dataset
    if not dataset.classes:
        return None
    known = category_ids(dataset)
    match = match_classes(run.record.model.classes, dataset.classes)
    return [known[label] if label >= 0 else -1 for label in match.labels]


def _export_truth(run: Path, file_format: ExportFormat, place: Path, data: str | None) -> None:
    """Write the truth of the images that were run, again for each condition that moves it."""
    from stormproof.corruptions.plugins import declare
    from stormproof.results.run import Run
    from stormproof.results.store.export import export_panoptic_truth, export_truth

    opened = Run(run, data=data)
    declare(opened.record.declared)
    write = export_panoptic_truth if file_format is ExportFormat.panoptic else export_truth
    for condition, path in write(opened, place).items():
        console.say(f"{path}: the truth of {counted(len(opened.readable), 'image')} under {condition}")
