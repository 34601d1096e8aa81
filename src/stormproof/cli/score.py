"""`stormproof score`: the numbers that follow from a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import AsJson, Data, Replicates, Runs, complete_measures
from stormproof.cli.outcome import left_out
from stormproof.core.errors import InvalidOption, OutputError, StormproofError, UnknownName, some
from stormproof.core.processes import keep_memory

if TYPE_CHECKING:
    from stormproof.results.intervals import Intervals
    from stormproof.results.score import Scores

_NEAR_ZERO = 0.01


@app.command()
def score(
    runs: Runs,
    data: Data = None,
    reference: Annotated[Path | None, typer.Option(help="A run to compare with: CD, rCD and gains.")] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            help="The measure to show by condition, e.g. 'mask AP'.", autocompletion=complete_measures
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="Classes to score, e.g. person,car, or all. Default: those the model knows."),
    ] = None,
    interval: Annotated[bool, typer.Option("--interval", help="Add 95 % intervals by bootstrap.")] = False,
    replicates: Replicates = 200,
    partial: Annotated[
        bool, typer.Option("--partial", help="Score the conditions that are complete; no means.")
    ] = False,
    min_score: Annotated[float, typer.Option(help="E and flaws: ignore boxes scored below this.")] = 0.4,
    speaks: Annotated[
        str, typer.Option(help="E and flaws: which boxes may match an object: own-first, any or own class.")
    ] = "own-first",
    min_overlap: Annotated[
        float, typer.Option(help="E and flaws: the least IoU at which a box of another class matches.")
    ] = 0.1,
    one_to_one: Annotated[
        bool, typer.Option("--one-to-one", help="E and flaws: a box matches one object only.")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV: a row per condition, class and measure.")
    ] = False,
    track: Annotated[list[str] | None, typer.Option(help="mlflow, wandb or tensorboard; repeatable.")] = None,
    plugin: Annotated[
        list[str] | None, typer.Option(help="The file of a corruption of your own that moves labels.")
    ] = None,
) -> None:
    """Score a run with every measure that fits its task, and keep the scores in its folder.

    P is the clean score, mPC its mean under the corruptions of a benchmark or suite, rPC their ratio; over
    any other conditions there is a mean, and no mPC. Scores are over the classes that model and dataset
    share, unless --classes names some. An incomplete grid is refused
    and what is missing is named; --partial scores what is there. --interval says how sure each number is for
    new images like these. A run made with --precision gives an estimate, which is marked as one.

    Examples:

        stormproof score runs/yolox

        stormproof score runs/deeplab --reference runs/icnet --json

        stormproof score runs/yolox --interval

        stormproof score runs/maskrcnn --measure 'mask AP' --classes person,car

        stormproof score runs/zoo

        stormproof score runs/camera-clahe --reference runs/camera --min-score 0.3
    """
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.engine.trackers import open_tracker
    from stormproof.metrics.objects import MatchingRule, Speaks
    from stormproof.results import tables
    from stormproof.results.models import expectations, models_table
    from stormproof.results.score import score_run
    from stormproof.results.store.completeness import unreadable_images
    from stormproof.results.store.folders import runs_in
    from stormproof.results.store.integrity import unverified
    from stormproof.results.store.record import read_record

    if as_json and as_csv:
        raise InvalidOption("Give --json or --csv, not both; both are kept in the run folder anyway.")
    if interval and partial:
        raise InvalidOption("--interval needs the whole grid; leave out --partial.")
    if speaks not in (kinds := [kind.value for kind in Speaks]):
        raise UnknownName("kind of matching", speaks, kinds, f"--speaks is one of {', '.join(kinds)}.")
    rule = MatchingRule(
        speaks=Speaks(speaks), one_to_one=one_to_one, min_score=min_score, min_overlap=min_overlap
    )
    keep_memory()
    console.announce_compiling()
    load_plugins(plugin or ())
    trackers = [open_tracker(name) for name in track or []]
    found, every, failed = runs_in(runs), {}, False
    for name, run in found.items():
        try:
            if read_record(run).quota is not None and not partial:
                _print_estimate(run, data, replicates, as_json=as_json)
                continue
            scores = score_run(
                run, data=data, classes=classes, partial=partial, reference=reference, rule=rule
            )
            if measure is not None:
                scores = scores.showing(measure)
        except StormproofError as error:
            if len(found) == 1:
                raise
            console.fail(f"{name}: {error}")
            failed = True
            continue
        every[name] = scores
        try:
            tables.save(run, scores)
        except OutputError as error:  # someone else's run: its scores can be read all the same
            console.note(f"Not kept: {error}")
        for tracker in trackers:
            tracker.scored(scores.record, tables.flat_numbers(scores))
        unread = unreadable_images(run, scores.record)
        if unread:
            console.note(f"{name}: {left_out(len(unread))}.")
        for line in (unverified(scores.record), *expectations(scores)):
            if line:
                console.note(f"{name}: {line}")
        sure = _intervals(run, scores, data, classes, reference, replicates) if interval else None
        if sure is not None and as_json:
            both = json.loads(tables.as_json(scores)) | {"intervals": sure.as_dict()}
            typer.echo(json.dumps(both, indent=1))
        elif len(found) == 1 and not as_json and not as_csv:
            _show(scores, sure)
    if every and (as_csv or (as_json and not interval)):
        typer.echo(tables.several(every, wants_json=as_json), nl=False)
    elif len(every) > 1:
        console.out.print(models_table(every))
    if failed:
        raise typer.Exit(1)


def _show(scores: Scores, sure: Intervals | None) -> None:
    from stormproof.metrics.measure import measures
    from stormproof.results import tables
    from stormproof.results.interval_tables import interval_table

    clean = scores.by_measure.get(scores.headline, {}).get("clean", math.nan)
    if clean < _NEAR_ZERO and measures()[scores.headline].higher:
        console.warn(
            f"the clean {scores.headline} is {clean:.2%}: most likely the network is fed or read in a wrong "
            "way; 'stormproof inspect MODEL --data DATA' shows what it was taken for."
        )
    if scores.missing:
        console.note(f"Incomplete, so without aggregates: {some(scores.missing)}")
    else:
        console.out.print(interval_table(scores, sure) if sure else tables.summary_table(scores))
    for line in tables.set_lines(scores):
        console.say(line)
    if note := tables.class_line(scores):
        console.say(note)
    grid = tables.grid_table(scores)
    if grid.row_count:
        console.out.print(grid)
    if tables.curves_of(scores, scores.headline):
        console.out.print(tables.curve_table(scores))
    for table in tables.group_tables(scores):
        console.out.print(table)


def _intervals(
    run: Path,
    scores: Scores,
    data: str | None,
    classes: str | None,
    reference: Path | None,
    replicates: int,
) -> Intervals:
    """Intervals of a run, kept in its folder; few images are said to be few."""
    from stormproof.results import interval_tables as tables
    from stormproof.results.intervals import intervals
    from stormproof.results.resample import resample
    from stormproof.results.score import score_run

    beside = None
    if reference is not None:
        theirs = resample(reference, data=data, classes=classes, replicates=replicates)
        beside = (score_run(reference, data=data, classes=classes), theirs)
    mine = resample(run, data=data, classes=classes, replicates=replicates)
    found = intervals(scores, mine, beside)
    try:
        tables.save(run, found)
    except OutputError as error:
        console.note(f"Not kept: {error}")
    if found.warning:
        console.note(found.warning)
    return found


def _print_estimate(run: Path, data: str | None, replicates: int, *, as_json: bool) -> None:
    from stormproof.results.interval_tables import estimate_table
    from stormproof.results.partial import estimate_run, read_estimate
    from stormproof.results.store.record import read_record

    found = estimate_run(run, data=data, replicates=replicates)
    if as_json:
        typer.echo(json.dumps(read_estimate(run), indent=1, ensure_ascii=False))
    else:
        console.out.print(estimate_table(read_record(run), found))
