"""`stormproof run`: one model, or many as one plan, under every condition; `merge` joins shards of runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stormproof.cli import app, console
from stormproof.cli.outcome import (
    list_failures,
    require_success,
    say_continue,
    say_findings,
    say_unreadable,
    stoppable,
)
from stormproof.cli.settings import with_settings
from stormproof.core.errors import InvalidOption, StormproofError, counted, first_few
from stormproof.core.table import Table
from stormproof.engine.config import PLAN, RunConfig, make_config, overlay, read_settings

if TYPE_CHECKING:
    from stormproof.engine.many import RunOutcome
    from stormproof.engine.plan import Plan
    from stormproof.engine.run import Observer, Summary


@app.command()
@with_settings
def run(
    settings: dict[str, Any],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL DATA [IMAGES]]",
            help="Files instead of --model and --data; --conditions is then imagenet-c and --out runs/MODEL.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A run.yaml; flags override its settings.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and its size.")] = False,
) -> None:
    """Run a model on a dataset, clean and under every condition, and keep its predictions.

    You can stop it at any time: the same command continues it. The results do not depend on how often it was
    stopped, nor on workers, batch size or engine. 'stormproof score' turns the folder into scores.

    Examples:

        stormproof run yolox.onnx val.json val2017

        stormproof run --model onnx:yolox.onnx --data coco:val.json --conditions imagenet-c --out runs/yolox

        stormproof run --model mine.py:detect --benchmark coco-c --root /data/coco --out runs/mine

        stormproof run --config run.yaml --workers 16

        stormproof run --model mine.py:detect --data coco:val.json -c imagenet-c --out runs/quick
        --precision 0.5

        stormproof run --model torchvision:fasterrcnn_resnet50_fpn,weights=w.pth,device=cuda
        --data coco:val.json -c imagenet-c --out runs/rcnn --device cuda --batch 32

    A run.yaml with models: (a list, or a pattern such as onnx:zoo/*.onnx) runs all of them as one plan.
    """
    from stormproof.engine.plan import make_plan

    given = _with_files(files, settings) if files else settings
    both = overlay(read_settings(config) if config else {}, given)
    if any(name in both for name in PLAN):
        _run_many(both, str(config or ""), dry_run=dry_run)
        return
    made = make_config(both, str(config) if config else "")
    for short, full in ((both.get("model"), made.model), (both.get("data"), made.data)):
        console.note_kind(short, full)
    if made.precision and not dry_run:
        _run_to_precision(made)
        return
    plan = make_plan(made)
    if dry_run:
        _print_plan(plan)
        return
    _announce(plan)
    _report(plan, _execute(plan))


def _with_files(files: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, with a model, a dataset and perhaps the folder of its images that were given by place."""
    model, *places = files
    by_option = len(files) == 1 and settings["data"]  # the dataset, in a command such as run a.onnx --data …
    if settings["model"] or (not by_option and (settings["data"] or not 1 <= len(places) <= 2)):
        raise InvalidOption(
            f"{shlex.join(files)}: give a model, a dataset and perhaps the folder of its images, as in "
            "'stormproof run model.onnx val.json val2017', or --model and --data."
        )
    data, *images = places or [settings["data"]]
    folder = images[0].replace(",", r"\,") if images else ""
    given = {
        "model": model,
        "data": f"{data},images={folder}" if folder else data,
        "conditions": settings["conditions"] or ["imagenet-c"],
        "out": settings["out"] or f"runs/{PurePath(model.partition(',')[0].rpartition(':')[2]).stem}",
    }
    return settings | given


def _announce(plan: Plan) -> None:
    """Print how the model is run, what looks wrong in the labels or in its first predictions, and which
    classes will be scored if those of the model and of the dataset do not all match."""
    from stormproof.engine.plan import label_findings
    from stormproof.models.classes import class_lines, match_classes

    console.note(plan.model_description)
    model, dataset = plan.record.model, plan.record.dataset
    data = dataset.spec
    say_findings(label_findings(data, plan.record.images), data)
    for remark in plan.remarks:
        console.warn(f"{remark} See: stormproof inspect {shlex.quote(plan.config.model)}")
    for doubt in plan.doubts:
        console.warn(doubt)
    sides = ((model.classes, dataset.classes), (model.semantic_classes, dataset.semantic_classes))
    for theirs, ours in sides:
        for line in class_lines(match_classes(theirs, ours)) if theirs and ours else ():
            console.note(line)


def _run_to_precision(config: RunConfig) -> None:
    from stormproof.engine.run import run_to_precision
    from stormproof.report.tables import estimate_table
    from stormproof.results.run import Run

    announced: list[Plan] = []

    def execute_part(plan: Plan) -> Summary:
        if not announced:
            _announce(plan)
        announced.append(plan)
        return _execute(plan)

    summary, estimate = run_to_precision(config, execute_part)
    require_success(summary, allow_missing=config.allow_missing)
    if estimate is None:
        console.say(f"{config.out}: this precision requires every cell, and all are done.")
        console.say(f"Score it with: stormproof score {shlex.quote(config.out)}")
        return
    console.print_table(estimate_table(Run(config.out), estimate))
    console.say("The same command with --precision 0 completes the grid; no cell is run twice.")


def _execute(plan: Plan) -> Summary:
    from stormproof.engine.executors import executor_for
    from stormproof.engine.progress import RunProgress
    from stormproof.engine.run import execute
    from stormproof.engine.trackers import open_tracker

    watches: list[Observer] = [RunProgress(console.err), *map(open_tracker, plan.config.track)]
    with stoppable(plan.work.out):
        return execute(plan, executor_for(plan.config, len(plan.chunks)), watches)


def _report(plan: Plan, summary: Summary) -> None:
    require_success(summary, allow_missing=plan.config.allow_missing)
    out, share = plan.config.out, plan.config.share
    done = summary.survey.cells - len(summary.failures)
    left_out = len(summary.unreadable)
    images = f" on {plan.record.images - left_out} of {plan.record.images} images" if left_out else ""
    console.say(f"{out}: {counted(done, 'cell')}{images}, all done.")
    if summary.times.total:
        words = summary.times.in_words(beside=plan.config.device is not None)
        console.say(f"Time, summed over workers: {words}.")
    if share[1] > 1:
        score = f"stormproof score {shlex.quote(out)}"
        console.say(
            f"This was shard {plan.config.shard}. When all are done: {score} if they share the folder,"
        )
        console.say("or else: stormproof merge OUT SHARD…")
    else:
        console.say(f"Score it with: stormproof score {shlex.quote(out)}")


def _print_plan(plan: Plan) -> None:
    from stormproof.engine.plan import survey
    from stormproof.results.store.record import RECORD, may_claim

    if (plan.work.out / RECORD).exists():
        may_claim(plan.work.out, plan.record)
    left = survey(plan)
    work, record = plan.work, plan.record
    calls = -(-left.cells_left // plan.config.batch)
    facts = {
        "model": f"{record.model.name} ({record.model.fingerprint[:16]})",
        "dataset": f"{record.dataset.name} ({record.dataset.fingerprint[:16]}), {record.images} of "
        f"{record.dataset.images} images",
        "conditions": f"{len(work.conditions)}: {first_few(record.conditions, 8)}",
        "seed": str(plan.config.seed),
        "shard": plan.config.shard,
        "cells": f"{left.cells:,}, of which {left.cells_left:,} are left",
        "to do": f"{counted(len(left.chunks), 'chunk')} of {counted(record.chunk, 'image')}: "
        f"{left.images_left:,} to decode, about {calls:,} model calls of "
        f"{counted(plan.config.batch, 'image')}",
        "engine": plan.config.engine,
        "out": plan.config.out,
    }
    console.print_table(Table("plan", "", ("", ""), [*facts.items()]), framed=False)


def _run_many(settings: Mapping[str, Any], source: str, *, dry_run: bool) -> None:
    """Plan every run that the settings describe and, unless this is a dry run, execute it."""
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.engine.executors import executor_for
    from stormproof.engine.many import run_all, runs_of
    from stormproof.engine.plan import copies_doubt, label_findings, size_of
    from stormproof.engine.progress import RunProgress
    from stormproof.results.store.parts import SETTINGS
    from stormproof.results.store.record import claiming, write_settings

    plugins = settings.get("plugin") or ()
    load_plugins([plugins] if isinstance(plugins, str) else plugins)
    runs = runs_of(settings, source)
    if any(config.engine.startswith("slurm") for config in runs):
        raise InvalidOption(
            "A plan of many models runs on pool, local or ray; use one run per model on Slurm."
        )
    if dry_run:
        _print_plans(runs)
        return
    progress = RunProgress(console.err, runs=len(runs), cells=sum(size_of(config).cells for config in runs))
    for spec, config in {config.data_spec(): config for config in runs}.items():
        say_findings(label_findings(spec, size_of(config).images), spec)
    for doubt in filter(None, dict.fromkeys(map(copies_doubt, runs))):
        console.warn(doubt)
    out = Path(str(settings["out"]))
    with claiming(out):
        write_settings(out / SETTINGS, settings)  # to continue from
    with stoppable(out):
        outcomes = run_all(runs, executor_for(runs[0], 10**9), [progress])
    _report_many(outcomes, str(out))


def _report_many(outcomes: list[RunOutcome], out: str) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            console.fail(f"{outcome.config.name}: {outcome.error}")
        elif outcome.summary is not None and outcome.summary.failed:
            console.note(f"{outcome.config.name}:")
            list_failures(outcome.summary)
        elif outcome.summary is not None:
            say_unreadable(outcome.summary, allow_missing=outcome.config.allow_missing)
            _check_expected(outcome)
    bad = [outcome for outcome in outcomes if not outcome.complete]
    console.say(f"{out}: {len(outcomes) - len(bad)} of {len(outcomes)} models are done.")
    console.say(f"Score them with: stormproof score {out}")
    if any(outcome.summary is not None and outcome.summary.retry_may_help for outcome in bad):
        say_continue()
    if bad:
        raise typer.Exit(1)


def _check_expected(outcome: RunOutcome) -> None:
    """Warn when the clean score is not the expected one."""
    if not outcome.config.expect:
        return
    from stormproof.report.tables import expectations
    from stormproof.results.run import Run

    run = Path(outcome.config.out)
    try:
        lines = expectations(Run(run, data=outcome.config.data_spec()).score(conditions=("clean",)))
    except StormproofError as error:
        lines = [str(error)]
    for line in lines:
        console.note(f"warning: {outcome.config.name}: {line}")


def _print_plans(runs: list[RunConfig]) -> None:
    from stormproof.engine.plan import size_of

    title = f"{counted(len(runs), 'run')}; models are opened when they run"
    sizes = [size_of(config) for config in runs]
    rows = [
        [str(config.name), s.dataset, *(f"{count:,}" for count in (s.images, s.conditions, s.cells, s.left))]
        for config, s in zip(runs, sizes, strict=True)
    ]
    columns = ("run", "dataset", "images", "conditions", "cells", "left")
    console.print_table(Table("plans", title, columns, rows))
    console.say(
        f"{sum(s.conditions for s in sizes):,} evaluations, {sum(s.cells for s in sizes):,} cells, of which "
        f"{sum(s.left for s in sizes):,} are left."
    )


@app.command()
def merge(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to make, or to add to.")],
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD...", help="Run folders of --shard runs.")],
) -> None:
    """Join runs that were made with --shard i/n into one folder.

    Folders of plans are joined run by run. A damaged part is refused, with the command that makes it again.

    Examples:

        stormproof merge runs/yolox runs/yolox-1 runs/yolox-2 runs/yolox-3

        stormproof merge runs/zoo runs/zoo-1 runs/zoo-2
    """
    from stormproof.results.run import runs_in
    from stormproof.results.store.record import RECORD

    if any((shard / RECORD).exists() for shard in shards) or not shards:
        whole = _merge(out, shards)
    else:
        inside = [runs_in([shard]) for shard in shards]
        names = dict.fromkeys(name for runs in inside for name in runs)
        each = [_merge(out / name, [runs[name] for runs in inside if name in runs]) for name in names]
        whole = all(each)
    if not whole:
        raise typer.Exit(1)


def _merge(out: Path, shards: list[Path]) -> bool:
    """Join the shards of one run; returns whether it is complete."""
    from stormproof.results.run import Run
    from stormproof.results.store.merge import merge as merge_runs

    record = merge_runs(out, shards)
    lacking = sum(Run(out).missing.values())
    held = record.cells - lacking
    console.say(f"{out}: {held} of {record.cells} cells; score it with: stormproof score {out}")
    if lacking:
        console.fail(f"lacking {counted(lacking, 'cell')}; merge the other shards, or run it again.")
    return not lacking
