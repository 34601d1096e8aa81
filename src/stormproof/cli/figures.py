"""`stormproof figures`: the report's figures for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Measure, Reference, Subjects
from stormproof.core.errors import UnknownName, counted
from stormproof.core.loading import framework

_FORMATS = ("pdf", "svg", "png", "eps")


@app.command()
def figures(
    runs: Subjects,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("figures"),
    style: Annotated[str, typer.Option(help="paper or slides.")] = "paper",
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="pdf, svg, png or eps; repeatable.")
    ] = None,
    measure: Measure = None,
    reference: Reference = None,
    group_by: Annotated[str | None, typer.Option(help="Average runs that share this tag.")] = None,
    data: Data = None,
) -> None:
    """Write every figure of the report with matplotlib, and every table as CSV, LaTeX and Markdown.

    Examples:

        stormproof figures runs/yolox runs/ssd --style paper --out figures

        stormproof figures runs/* --group-by backbone --format svg
    """
    framework("matplotlib", extra="figures")
    from dataclasses import replace

    from stormproof.report.figures import write_figures
    from stormproof.report.grouping import only_grouped
    from stormproof.report.sources import scores_of
    from stormproof.report.view import make_view

    for name in formats or ():
        if name not in _FORMATS:
            raise UnknownName("format", name, _FORMATS, f"There are {', '.join(_FORMATS)}.")
    subjects = [subject for source in runs for subject in scores_of(source, data)]
    view = make_view(subjects, measure=measure, reference=reference)
    if group_by is not None:
        if group_by not in view.tags:
            raise UnknownName(
                "tag", group_by, view.tags, f"Tags that tell these runs apart: {', '.join(view.tags)}."
            )
        view = replace(view, sections=tuple(only_grouped(section, group_by) for section in view.sections))
    written = write_figures(view, out, style=style, formats=formats or ["pdf", "png"])
    console.say(f"{counted(len(written), 'file')} in {out}")
