"""`stormproof score`: the numbers that follow from a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.errors import InvalidOption, OutputError


@app.command()
def score(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that 'stormproof run' made.")],
    data: Annotated[str | None, typer.Option(help="The dataset, if it has moved since the run.")] = None,
    reference: Annotated[Path | None, typer.Option(help="A run to compare with: CD, rCD and gains.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Score the cells there; no aggregates.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: measure, condition, value.")] = False,
    track: Annotated[list[str] | None, typer.Option(help="mlflow, wandb or tensorboard; repeatable.")] = None,
) -> None:
    """Score a run with every measure that fits its task, and keep the scores in its folder.

    P is the clean score, mPC its mean under corruption, rPC their ratio. A grid with holes is refused
    and the holes are named; --partial shows the cells there are.

    Examples:

        stormproof score runs/yolox

        stormproof score runs/deeplab --reference runs/icnet --json
    """
    from stormproof.scoring import tables
    from stormproof.scoring.score import score_run
    from stormproof.trackers import open_tracker

    if as_json and as_csv:
        raise InvalidOption("Give --json or --csv, not both; both are kept in the run folder anyway.")
    trackers = [open_tracker(name) for name in track or []]
    scores = score_run(run, data=data, partial=partial, reference=reference)
    try:
        tables.save(run, scores)
    except OutputError as error:  # someone else's run: its scores can be read all the same
        console.note(f"Not kept: {error}")
    for tracker in trackers:
        tracker.scored(scores.record, tables.flat_numbers(scores))
    if as_json or as_csv:
        typer.echo(tables.as_json(scores) if as_json else tables.as_csv(scores), nl=False)
        return
    if scores.missing:
        some = ", ".join(scores.missing[:5]) + (" …" if len(scores.missing) > 5 else "")
        console.note(f"Incomplete, so without aggregates: {some}")
    else:
        console.out.print(tables.summary_table(scores))
    console.out.print(tables.grid_table(scores))
