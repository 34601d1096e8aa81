"""`stormproof gallery`: every corruption in one image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import chosen_conditions, is_dataset
from stormproof.cli.settings import Conditions, Seed
from stormproof.core.errors import InvalidOption, OutputError, counted

if TYPE_CHECKING:
    from stormproof.core.condition import Condition
    from stormproof.core.sample import Image
    from stormproof.tools.gallery import Depth


@app.command()
def gallery(
    image: Annotated[
        str, typer.Argument(help="The image to corrupt, or a dataset as kind:path[,option=value…].")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the gallery.")] = Path(
        "gallery.png"
    ),
    conditions: Conditions = None,
    width: Annotated[int, typer.Option(help="Width of one tile in pixels.")] = 256,
    seed: Seed = 0,
    index: Annotated[int, typer.Option(help="The index of the image in a dataset.")] = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Render conditions side by side into one labelled image: every corruption, unless some are named.

    Haze and defocus need depth: they are shown for a dataset that has it.

    Examples:

        stormproof gallery street.jpg

        stormproof gallery street.jpg --conditions weather --out weather.png --width 400

        stormproof gallery images:left,depth=depth --conditions contextual --out haze.png
    """
    from stormproof.core.imagefile import write_image
    from stormproof.corruptions.chain import needs
    from stormproof.tools.gallery import Sheet, rows_of, tiles

    if not 32 <= width <= 2048:
        raise InvalidOption(f"--width {width}: a tile is from 32 to 2048 pixels wide.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; give another name with --out, or --overwrite.")
    chosen = chosen_conditions(conditions) if conditions else _every_graded_condition()
    pixels, depth = _scene(image, index)
    every = rows_of(chosen)
    if not every:
        raise InvalidOption("clean: it is shown beside every corruption; name at least one, such as fog.")
    # Corruptions that need depth cannot be made from an image alone.
    rows = every if depth is not None else rows_of(c for c in chosen if not needs(c))
    left_out = ", ".join(name for name in every if name not in rows)
    if not rows:
        raise InvalidOption(
            f"{left_out} cannot be made from an image alone, without depth; give a dataset that has it."
        )
    height = max(round(pixels.shape[0] * width / pixels.shape[1]), 1)
    sheet = Sheet(rows, (height, width))
    made = tiles(pixels, rows, seed=seed, width=width, depth=depth)
    with console.progress("rendering", sum(1 + len(row) for row in rows.values()), "tiles") as progress:
        for row, column, condition, tile in progress.track(made):
            sheet.paste(row, column, condition, tile)
    write_image(out, sheet.image())
    shown = sum(map(len, rows.values()))
    console.say(f"{out}: {counted(len(rows), 'corruption')}, {counted(shown, 'condition')}")
    if left_out:
        console.note(f"left out, for want of depth: {left_out}; give a dataset that has it")


def _every_graded_condition() -> tuple[Condition, ...]:
    """Every corruption that has severities, at each of them."""
    from stormproof.corruptions import CORRUPTIONS
    from stormproof.corruptions.corruption import every_severity

    graded = [name for name, corruption in CORRUPTIONS.items() if corruption.severities]
    return tuple(condition for name in graded for condition in every_severity(name))


def _scene(image: str, index: int) -> tuple[Image, Depth | None]:
    """The pixels of an image file, or of an image of a dataset, with its depth."""
    from stormproof.core.imagefile import read_image
    from stormproof.datasets import read_dataset

    if not is_dataset(image):
        return read_image(image), None
    dataset = read_dataset(image)
    if not 0 <= index < len(dataset):
        raise InvalidOption(f"--index {index}: {image} has images 0 to {len(dataset) - 1}.")
    sample = dataset[index]
    return sample.image, sample.context.depth
