"""`stormproof check`: requirements against a run, as a gate."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from stormproof.cli import app, console
from stormproof.cli.options import Against, AsJson, Data, Replicates, Requirements, Run
from stormproof.cli.outcome import say_scored_on

_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "yellow"}


@app.command()
def check(
    run: Run,
    require: Requirements,
    against: Against = None,
    data: Data = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Append a Markdown table here. Default: $GITHUB_STEP_SUMMARY.")
    ] = None,
    replicates: Replicates = 200,
    as_json: AsJson = False,
) -> None:
    """Check requirements against a run: pass, fail, or inconclusive where the interval holds the threshold.

    Exit code 0 when all pass, 1 when one fails, 3 when the worst is inconclusive, 2 for an error: a
    requirement that cannot be judged is never a pass.

    Examples:

        stormproof check runs/yolox --require requirements.yaml

        stormproof check runs/new --require requirements.yaml --against runs/old --junit verdicts.xml
    """
    from stormproof.core.files import write_text
    from stormproof.results.documents import junit as as_junit
    from stormproof.results.documents import markdown
    from stormproof.results.requirements import read_requirements
    from stormproof.results.store.record import read_record
    from stormproof.results.verdicts import check_run, exit_code

    asked = read_requirements(require)
    record = read_record(run)
    verdicts = check_run(run, asked, against=against, data=data, replicates=replicates)
    name = f"{record.model.name} on {record.dataset.name}"
    if junit is not None:
        write_text(junit, as_junit(name, verdicts))
    page = summary or os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        with Path(page).open("a", encoding="utf-8") as log:
            log.write(markdown(name, verdicts))
    images = say_scored_on(run, record)
    if as_json:
        typer.echo(json.dumps([verdict.as_dict() for verdict in verdicts], indent=1))
    else:
        columns = ("id", "requirement", "verdict", "estimate", "95 % interval", "margin")
        table = console.table(f"{name}, {images} images (in %)", columns)
        for v in verdicts:
            i = v.interval
            span = f"{100 * i.low:.1f} … {100 * i.high:.1f}"
            numbers = (f"{100 * i.estimate:.1f}", span, f"{100 * v.margin:+.1f}")
            outcome = Text(str(v.outcome), style=_STYLES[v.outcome])
            table.add_row(v.requirement.id, Text(v.requirement.text), outcome, *numbers)
        console.out.print(table)
    raise typer.Exit(exit_code(verdicts))
