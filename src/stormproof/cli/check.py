"""`stormproof check`: requirements against a run, as a gate."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from stormproof.cli import app, console

_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "yellow"}


@app.command()
def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that 'stormproof run' made.")],
    require: Annotated[Path, typer.Option(help="A requirements.yaml.")],
    against: Annotated[Path | None, typer.Option(help="A baseline run, for at_most_drop.")] = None,
    data: Annotated[str | None, typer.Option(help="The dataset, if it has moved since the run.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Append a Markdown table here. Default: $GITHUB_STEP_SUMMARY.")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Bootstrap replicates.", min=2)] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check requirements against a run: pass, fail, or inconclusive where the interval holds the threshold.

    Exit code 0 when all pass, 1 when one fails, 3 when the worst is inconclusive, 2 for an error: a
    requirement that cannot be judged is never a pass.

    Examples:

        stormproof check runs/yolox --require requirements.yaml

        stormproof check runs/new --require requirements.yaml --against runs/old --junit verdicts.xml
    """
    from stormproof.confidence.documents import junit as as_junit
    from stormproof.confidence.documents import markdown
    from stormproof.confidence.intervals import few_images
    from stormproof.confidence.requirements import read_requirements
    from stormproof.confidence.verdicts import check_run, exit_code
    from stormproof.files import whole_file
    from stormproof.store.completeness import readable_images
    from stormproof.store.record import read_record

    asked = read_requirements(require)
    record = read_record(run)
    verdicts = check_run(run, asked, against=against, data=data, replicates=replicates)
    name = f"{record.model.name} on {record.dataset.name}"
    if junit is not None:
        with whole_file(junit) as file:
            file.write(as_junit(name, verdicts).encode())
    page = summary or os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        with Path(page).open("a", encoding="utf-8") as log:
            log.write(markdown(name, verdicts))
    images = len(readable_images(run, record))
    if images < record.images:
        console.note(f"{record.images - images} images could not be read and are left out.")
    warning = few_images(images)
    if warning:
        console.note(warning)
    if as_json:
        typer.echo(json.dumps([verdict.as_dict() for verdict in verdicts], indent=1))
    else:
        table = Table(title=Text(f"{name}, {images} images (in %)"), title_justify="left")
        for title in ("id", "requirement", "verdict", "estimate", "95 % interval", "margin"):
            table.add_column(title, overflow="fold")
        for v in verdicts:
            i = v.interval
            span = f"{100 * i.low:.1f} … {100 * i.high:.1f}"
            numbers = (f"{100 * i.estimate:.1f}", span, f"{100 * v.margin:+.1f}")
            outcome = Text(str(v.outcome), style=_STYLES[v.outcome])
            table.add_row(v.requirement.id, Text(v.requirement.text), outcome, *numbers)
        console.out.print(table)
    raise typer.Exit(exit_code(verdicts))
