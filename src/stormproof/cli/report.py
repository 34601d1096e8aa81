"""`stormproof report`: one web page about runs or published tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Measure, Plugins, Reference, Sources
from stormproof.core.errors import InvalidOption

_STEPS = 3  # after scoring each run: drawing, looking for the worst images, making them


@app.command()
def report(
    runs: Sources,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page; its numbers are written beside it as .json.")
    ] = Path("report.html"),
    measure: Measure = None,
    reference: Reference = None,
    data: Data = None,
    images: Annotated[
        int, typer.Option(help="Images in the browser, each under every condition; 0 for none.")
    ] = 4,
    budget: Annotated[
        float, typer.Option(help="The largest size of the page in MB; images beyond it are left out.")
    ] = 15.0,
    by: Annotated[
        str | None,
        typer.Option(
            help="Add scores by an attribute of images (weather, brightness, FILE.csv:COLUMN …), or how many "
            "objects are found by distance, size or occlusion, of one class with distance:person."
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Write one self-contained web page about one or more runs.

    It opens with a double click, needs no network, and shows what hurts most, the whole grid, curves,
    classes, the papers' figures that the runs allow, and the images themselves, made again from run and
    dataset. Runs that have not been scored yet are scored first. Tags ('stormproof run --tag backbone=r50')
    group models.

    Examples:

        stormproof report runs/yolox --out report.html

        stormproof report runs/* --measure AP50 --reference runs/baseline --out all.html

        stormproof report runs/street --by distance:person --out street.html

        stormproof report published:kamann/cityscapes --out kamann.html
    """
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.report.make import Options, make_report

    if images < 0:
        raise InvalidOption(f"--images {images}: it must be at least 0.")
    if budget <= 0:
        raise InvalidOption(f"--budget {budget:g}: give megabytes above 0.")
    load_plugins(plugin or ())
    options = Options(measure, reference, data, images, budget, by)
    with console.progress("report", len(runs) + _STEPS + (by is not None), "steps") as progress:

        def step(words: str) -> None:
            progress.advance()
            progress.begin(words)

        written = make_report(runs, out, options, step)
    size = written[0].stat().st_size / 1e6
    console.say(f"{written[0]} ({size:.1f} MB) and {written[1]}")
