"""`stormproof world`: scenes of the built-in street, written as a dataset."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import MAKE_DATA, app, console
from stormproof.cli.options import ImageFormat, Images, Workers
from stormproof.core.errors import counted


class WorldFormat(StrEnum):
    coco = "coco"
    voc = "voc"
    cityscapes = "cityscapes"
    yolo = "yolo"
    kitti = "kitti"
    camvid = "camvid"
    panoptic = "panoptic"


@app.command(rich_help_panel=MAKE_DATA)
def world(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder for the dataset.")],
    layout: Annotated[
        WorldFormat, typer.Option(help="The dataset's files and folders: one of the public formats.")
    ] = WorldFormat.coco,
    split: Annotated[str, typer.Option(help="train (unbounded), val (200 scenes) or test (500).")] = "val",
    count: Annotated[int, typer.Option(help="Number of scenes, from the first of the split on.")] = 50,
    size: Annotated[str, typer.Option(help="Width x height in pixels.")] = "512x320",
    seed: Annotated[int, typer.Option(help="Another seed gives another world.")] = 0,
    stereo: Annotated[bool, typer.Option(help="Add right-hand images (cityscapes, kitti).")] = False,
    image_format: ImageFormat = Images.png,
    workers: Workers = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace a folder that is not empty.")] = False,
) -> None:
    """Write scenes of the built-in street, with exact truth, in the format of a public dataset.

    The files depend on the seed, the split, the size and the format, not on the number of workers or the
    machine. DIR appears when it is complete.

    Examples:

        stormproof world --split val --count 50 --layout coco --out streets

        stormproof world --split train --count 2000 --size 1024x512 --layout cityscapes --out city

        stormproof world --layout kitti --stereo --count 200 --out kitti-like --workers 8
    """
    from stormproof.world.dataset import parse_size
    from stormproof.world.formats import SceneOrder, check_destination, export

    width, height = parse_size(size)
    order = SceneOrder(
        split, count, layout.value, width, height, seed, stereo, suffix=f".{image_format.value}"
    )
    order.check()
    check_destination(out, overwrite=overwrite)
    with console.progress("rendering", count, "scenes") as progress:
        export(order, out, workers=workers, overwrite=overwrite, advance=progress.advance)
    console.say(f"{counted(count, 'scene')} in {out}")
