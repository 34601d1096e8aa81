"""`stormproof report`, `figures`, `show`: runs or published tables as a page, as files, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Measure, Plugins, Reference, Sources
from stormproof.core.errors import InvalidOption, counted

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
    ] = 3.0,
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
    classes, the papers' figures that the runs allow, and the images themselves, recreated from the run and
    its dataset. Runs that have not been scored yet are scored first. Tags
    ('stormproof run --tag backbone=r50') group models.

    Examples:

        stormproof report runs/yolox --out report.html

        stormproof report runs/* --measure AP50 --reference runs/baseline --out all.html

        stormproof report runs/street --by distance:person --out street.html

        stormproof report published:kamann/cityscapes --out kamann.html
    """
    from stormproof.report.make import Options, make_report

    if images < 0:
        raise InvalidOption(f"--images {images}: it must be at least 0.")
    if budget <= 0:
        raise InvalidOption(f"--budget {budget:g}: give megabytes above 0.")
    options = Options(measure, reference, data, images, budget, by)
    with console.progress("report", len(runs) + _STEPS + (by is not None), "steps") as progress:

        def step(words: str) -> None:
            progress.advance()
            progress.begin(words)

        written = make_report(runs, out, options, step)
    size = written[0].stat().st_size / 1e6
    console.say(f"{written[0]} ({size:.1f} MB) and {written[1]}")


@app.command()
def figures(
    runs: Sources,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path("figures"),
    style: Annotated[str, typer.Option(help="paper or slides.")] = "paper",
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="pdf, svg or png; repeatable.")
    ] = None,
    measure: Measure = None,
    reference: Reference = None,
    group_by: Annotated[str | None, typer.Option(help="Average runs that share this tag.")] = None,
    data: Data = None,
) -> None:
    """Write every figure of the report as a file, and every table as CSV, LaTeX and Markdown.

    Examples:

        stormproof figures runs/yolox runs/ssd --style paper --out figures

        stormproof figures runs/* --group-by backbone --format svg
    """
    from stormproof.report.figures import write_figures
    from stormproof.report.people_figures import with_distributions, write_lost_people
    from stormproof.report.sources import scores_of
    from stormproof.report.view import make_view, only_grouped
    from stormproof.results.run import Run

    scored = [scores for source in runs for scores in scores_of(source, data, interval=True)]
    folders = [Run(scores.folder, data=data) for scores in scored if scores.folder is not None]
    view = with_distributions(make_view(scored, measure=measure, reference=reference), folders)
    if group_by is not None:
        view = only_grouped(view, group_by)
    written = write_figures(view, out, style=style, formats=formats or ["pdf", "png"])
    written += write_lost_people(folders, out)
    console.say(f"{counted(len(written), 'file')} in {out}")


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, a submission or published:….")],
    measure: Annotated[str | None, typer.Option(help="What to show. Default: the run's headline.")] = None,
    data: Data = None,
    plugin: Plugins = None,
) -> None:
    """Show a run: what hurts most first, with a bar for what is left of the clean score.

    Examples:

        stormproof show runs/yolox

        stormproof show runs/yolox --measure AP50
    """
    from stormproof.report.decision import decision
    from stormproof.report.sources import scores_of
    from stormproof.report.tables import bar_table
    from stormproof.report.view import make_view

    for scores in scores_of(run, data):
        view = make_view([scores], measure=measure)
        console.say(view.sentences[0])
        for notice in view.notices:
            console.out.print(notice, style="yellow", soft_wrap=True)
        shown = measure or scores.headline
        bars = bar_table(scores, shown)
        # a run on clean images alone has one number and nothing to draw
        console.print_table(bars if bars.rows else decision([scores], shown))
