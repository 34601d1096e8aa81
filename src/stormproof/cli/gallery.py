"""`stormproof gallery`: see every corruption."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.errors import InvalidOption, OutputError


@app.command()
def gallery(
    image: Annotated[Path, typer.Argument(help="The image to corrupt.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the gallery.")] = Path(
        "gallery.png"
    ),
    suite: Annotated[str | None, typer.Option(help="Only the corruptions of a suite.")] = None,
    width: Annotated[int, typer.Option(help="Width of one tile in pixels.")] = 256,
    seed: Annotated[int, typer.Option(help="Another seed gives other noise.")] = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Render every corruption at every severity into one labelled image.

    Examples:

        stormproof gallery street.jpg

        stormproof gallery street.jpg --suite weather --out weather.png --width 400
    """
    from stormproof.corruptions import find, find_suite, registered
    from stormproof.gallery import Sheet, tiles
    from stormproof.imagefile import read_image, write_image

    if not 32 <= width <= 2048:
        raise InvalidOption(f"--width {width}: a tile is from 32 to 2048 pixels wide.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; give another name with --out, or --overwrite.")
    listed = find_suite(suite).corruptions if suite else tuple(registered())
    # What has no severities has no row of them; what needs depth cannot be made from a image alone.
    names = tuple(name for name in listed if find(name).severities and not find(name).needs)
    if not names:
        raise InvalidOption(f"--suite {suite}: nothing in it has severities that a image alone can show.")
    pixels = read_image(image)
    height = max(round(pixels.shape[0] * width / pixels.shape[1]), 1)
    sheet = Sheet(names, (height, width))
    with console.progress("tiles") as bar:
        task = bar.add_task("rendering", total=sum(1 + len(find(name).severities) for name in names))
        for row, column, tile in tiles(pixels, names, seed=seed, width=width):
            sheet.paste(row, column, tile)
            bar.advance(task)
    write_image(out, sheet.image())
    console.say(f"{out}: {len(names)} corruptions at every severity")
