"""`stormproof run`: a model on a dataset under every condition, resumable."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from stormproof.cli import app, console
from stormproof.cli.options import with_settings
from stormproof.cli.outcome import require_success, say_findings, stoppable
from stormproof.engine.config import RunConfig, make_config, overlay, read_settings

if TYPE_CHECKING:
    from stormproof.engine.plan import Plan
    from stormproof.engine.run import Summary, Watch


@app.command()
@with_settings(RunConfig)
def run(
    settings: dict[str, Any],
    config: Annotated[Path | None, typer.Option(help="A run.yaml; flags override its settings.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and its size.")] = False,
) -> None:
    """Run a model on a dataset, clean and under every condition, and keep its predictions.

    You can stop it at any time: the same command continues it. The results do not depend on how often it was
    stopped, nor on workers, batch size or engine. 'stormproof score' turns the folder into scores.

    Examples:

        stormproof run --model onnx:yolox.onnx --data coco:val.json --conditions imagenet-c --out runs/yolox

        stormproof run --model mine.py:detect --benchmark coco-c --root /data/coco --out runs/mine

        stormproof run --config run.yaml --workers 16

        stormproof run --model mine.py:detect --data coco:val.json -c imagenet-c --out runs/quick
        --precision 0.5

        stormproof run --model torchvision:fasterrcnn_resnet50_fpn,weights=w.pth,device=cuda
        --data coco:val.json -c imagenet-c --out runs/rcnn --device cuda --batch 32

    A run.yaml with models: (a list, or a pattern such as onnx:zoo/*.onnx) runs all of them as one plan.
    """
    from stormproof.cli.run_many import run_many
    from stormproof.engine.many import is_plan
    from stormproof.engine.plan import make_plan

    console.announce_compiling()
    both = overlay(read_settings(config) if config else {}, settings)
    if is_plan(both):
        run_many(both, str(config or ""), dry_run=dry_run)
        return
    made = make_config(both, str(config) if config else "")
    if made.precision and not dry_run:
        _run_to_precision(made)
        return
    plan = make_plan(made)
    if dry_run:
        _print_plan(plan)
        return
    _announce(plan)
    _report(plan, _execute(plan))


def _announce(plan: Plan) -> None:
    """Print how the model is run, and what looks wrong in the labels or in its first predictions."""
    from stormproof.engine.plan import label_findings

    console.note(plan.model_description)
    say_findings(label_findings(plan.work.data, plan.work.images), plan.work.data)
    for remark in plan.remarks:
        console.warn(f"{remark} See: stormproof inspect {shlex.quote(plan.config.model)}")
    if plan.doubts:
        console.warn(plan.doubts)
    _print_classes(plan)


def _run_to_precision(config: RunConfig) -> None:
    from stormproof.engine.run import run_to_precision
    from stormproof.results.run import Run
    from stormproof.results.tables import estimate_table

    announced: list[Plan] = []

    def execute_part(plan: Plan) -> Summary:
        if not announced:
            _announce(plan)
        announced.append(plan)
        return _execute(plan)

    summary, found = run_to_precision(config, execute_part)
    require_success(summary, allow_missing=config.allow_missing)
    if found is None:
        console.say(f"{config.out}: this precision requires every cell, and all are done.")
        console.say(f"Score it with: stormproof score {shlex.quote(config.out)}")
        return
    console.out.print(estimate_table(Run(config.out), found))
    console.say("The same command with --precision 0 completes the grid; no cell is run twice.")


def _execute(plan: Plan) -> Summary:
    from stormproof.engine.executors import executor_for
    from stormproof.engine.progress import RunProgress
    from stormproof.engine.run import execute
    from stormproof.engine.trackers import open_tracker

    watches: list[Watch] = [RunProgress(console.err), *map(open_tracker, plan.config.track)]
    with stoppable(plan.work.out):
        return execute(plan, executor_for(plan.config, len(plan.chunks)), watches)


def _report(plan: Plan, summary: Summary) -> None:
    require_success(summary, allow_missing=plan.config.allow_missing)
    out, share = plan.config.out, plan.config.share
    done = summary.survey.cells - len(summary.failures)
    left_out = len(summary.unreadable)
    images = f" on {plan.work.images - left_out} of {plan.work.images} images" if left_out else ""
    console.say(f"{out}: {done} cells{images}, all done.")
    if share[1] > 1:
        score = f"stormproof score {shlex.quote(out)}"
        console.say(
            f"This was shard {plan.config.shard}. When all are done: {score} if they share the folder,"
        )
        console.say("or else: stormproof merge OUT SHARD…")
    else:
        console.say(f"Score it with: stormproof score {shlex.quote(out)}")


def _print_classes(plan: Plan) -> None:
    """Print which classes will be scored, if the names of the model and of the dataset do not all match."""
    from stormproof.models.classes import class_lines, match_classes

    model, dataset = plan.record.model, plan.record.dataset
    sides = ((model.classes, dataset.classes), (model.semantic_classes, dataset.semantic_classes))
    for theirs, ours in sides:
        for line in class_lines(match_classes(theirs, ours)) if theirs and ours else ():
            console.note(line)


def _print_plan(plan: Plan) -> None:
    from stormproof.engine.plan import survey
    from stormproof.results.store.record import RECORD, may_claim

    if (plan.work.out / RECORD).exists():
        may_claim(plan.work.out, plan.record)
    left = survey(plan)
    work, record = plan.work, plan.record
    table = Table(show_header=False, box=None)
    calls = -(-left.cells_left // plan.config.batch)
    facts = {
        "model": f"{record.model.name} ({record.model.fingerprint[:16]})",
        "dataset": f"{record.dataset.name} ({record.dataset.fingerprint[:16]}), {work.images} of "
        f"{record.dataset.images} images",
        "conditions": f"{len(work.conditions)}: {', '.join(record.conditions)}",
        "seed": str(plan.config.seed),
        "shard": plan.config.shard,
        "cells": f"{left.cells:,}, of which {left.cells_left:,} are left",
        "to do": f"{len(left.chunks):,} chunks of {work.chunk} images: {left.images_left:,} to decode, "
        f"about {calls:,} model calls of {plan.config.batch} images",
        "engine": str(plan.config.engine),
        "out": plan.config.out,
    }
    for name, value in facts.items():
        table.add_row(name, value)
    console.out.print(table)
