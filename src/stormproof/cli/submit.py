"""`stormproof submit`: a run as an entry of the leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Run
from stormproof.core.errors import OutputError, first_few


@app.command()
def submit(
    run: Run,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file. Default: RUN's name with .submission.json.")
    ] = None,
    measure: Annotated[str | None, typer.Option(help="What to submit. Default: the run's headline.")] = None,
    note: Annotated[str, typer.Option(help="A line for readers.")] = "",
    data: Data = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a run's grid as one JSON file for a leaderboard: numbers, provenance, a hash of the predictions.

    The file does not name any folder or machine. A run that lacks images becomes an entry marked incomplete.

    Example:

        stormproof submit runs/yolox --out entries/yolox.json
    """
    from stormproof.core.files import make_folder, write_text
    from stormproof.report.leaderboard.submission import as_json, submission_of
    from stormproof.results.run import Run as OpenRun

    path = out or Path(f"{run.resolve().name}.submission.json")
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists; give another --out, or --overwrite.")
    submission = submission_of(OpenRun(run, data=data), measure=measure, note=note)
    make_folder(path.parent)
    write_text(path, as_json(submission))
    if submission.missing:
        console.note(f"Incomplete, so without a mean: {first_few(submission.missing)}")
    console.say(f"{path}")
