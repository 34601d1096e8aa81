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
    from stormproof.corruptions.plugins import declare
    from stormproof.results.run import Run, runs_in

    if truth and file_format is ExportFormat.png:
        raise InvalidOption("--truth is written as COCO or COCO panoptic; leave out --format png.")
    folders = runs_in(runs)
    several = len(folders) > 1
    for name, folder in folders.items():
        run = Run(folder, data=data)
        declare(run.record.declared)
        if out is None:
            place = refuse_link(folder / f"export-{'truth' if truth else file_format}")
        else:
            place = out / name if several else out
        if truth:
            _export_truth(run, file_format, place)
        else:
            _export(run, file_format, place, partial)


def _export(run: Run, file_format: ExportFormat, place: Path, partial: bool) -> None:
    from stormproof.core.spec import Spec
    from stormproof.results.run import IncompleteRun, missing_words
    from stormproof.results.store import export as write
    from stormproof.results.store.integrity import check_parts

    check_parts(run)
    conditions = [text for text in run.conditions if text not in run.missing]
    if run.missing and not (partial and conditions):
        raise IncompleteRun(run, "export")
    ways = {"coco": write.export_coco, "png": write.export_png, "panoptic": write.export_panoptic}
    written = ways[file_format](run, conditions, place)
    if run.missing:
        console.note(f"Left out: {', '.join(missing_words(run))}")
    named = file_format is ExportFormat.png and run.record.model.semantic_classes
    model = Spec("results", str(place), {"classes": str(place / write.CLASSES)} if named else {})
    console.say(f"{place}: {counted(len(written), 'file')}; as a model: {model}")


def _export_truth(run: Run, file_format: ExportFormat, place: Path) -> None:
    """Write the truth of the images that were run, again for each condition that moves it."""
    from stormproof.results.store.export import export_panoptic_truth, export_truth

    write = export_panoptic_truth if file_format is ExportFormat.panoptic else export_truth
    for condition, path in write(run, place).items():
        console.say(f"{path}: the truth of {counted(len(run.readable), 'image')} under {condition}")
