"""`stormproof figures`: the report's figures for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Measure, Reference, Sources
from stormproof.core.errors import counted


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
    from stormproof.report.sources import scores_of
    from stormproof.report.view import make_view, only_grouped

    found = [scores for source in runs for scores in scores_of(source, data, interval=True)]
    view = make_view(found, measure=measure, reference=reference)
    if group_by is not None:
        view = only_grouped(view, group_by)
    written = write_figures(view, out, style=style, formats=formats or ["pdf", "png"])
    console.say(f"{counted(len(written), 'file')} in {out}")
