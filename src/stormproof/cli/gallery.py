"""`stormproof gallery`: see every corruption."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Conditions, Suite, chosen_conditions
from stormproof.errors import InvalidOption, OutputError


@app.command()
def gallery(
    image: Annotated[Path, typer.Argument(help="The image to corrupt.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the gallery.")] = Path(
        "gallery.png"
    ),
    conditions: Conditions = None,
    suite: Suite = None,
    width: Annotated[int, typer.Option(help="Width of one tile in pixels.")] = 256,
    seed: Annotated[int, typer.Option(help="Another seed gives other noise.")] = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Render conditions side by side into one labelled image: every corruption, unless some are named.

    Examples:

        stormproof gallery street.jpg

        stormproof gallery street.jpg --conditions weather --out weather.png --width 400
    """
    from stormproof.corruptions import find, registered
    from stormproof.corruptions.registry import every_severity
    from stormproof.gallery import Sheet, rows_of, tiles
    from stormproof.imagefile import read_image, write_image

    if not 32 <= width <= 2048:
        raise InvalidOption(f"--width {width}: a tile is from 32 to 2048 pixels wide.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; give another name with --out, or --overwrite.")
    if conditions or suite:
        chosen = chosen_conditions(conditions, suite)
    else:
        graded = [name for name, found in registered().items() if found.severities]
        chosen = tuple(condition for name in graded for condition in every_severity(name))
    # What needs depth cannot be made from an image alone.
    rows = rows_of(c for c in chosen if c.corruption and not find(c.corruption).needs)
    if not rows:
        raise InvalidOption("None of these conditions can be made from an image alone; they need depth.")
    console.announce_compiling()
    pixels = read_image(image)
    height = max(round(pixels.shape[0] * width / pixels.shape[1]), 1)
    sheet = Sheet(rows, (height, width))
    with console.progress("tiles") as bar:
        task = bar.add_task("rendering", total=sum(1 + len(row) for row in rows.values()))
        for row, column, condition, tile in tiles(pixels, rows, seed=seed, width=width):
            sheet.paste(row, column, condition, tile)
            bar.advance(task)
    write_image(out, sheet.image())
    console.say(f"{out}: {len(rows)} corruptions, {sum(map(len, rows.values()))} conditions")
