"""`stormproof run`: a model on a dataset under every condition, resumable."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from stormproof.cli import app, console
from stormproof.cli.options import (
    Conditions,
    Limit,
    Suite,
    complete_benchmarks,
    complete_datasets,
    complete_measures,
    complete_models,
)
from stormproof.cli.outcome import require_success, stoppable
from stormproof.core.errors import InvalidOption

if TYPE_CHECKING:
    from stormproof.engine.config import RunConfig
    from stormproof.engine.plan import Plan
    from stormproof.engine.run import Summary, Watch


@app.command()
def run(
    model: Annotated[
        str | None,
        typer.Option(
            help="kind:file, package.module:attribute or script.py:function.", autocompletion=complete_models
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="The dataset, e.g. coco:val.json,images=val2017.", autocompletion=complete_datasets
        ),
    ] = None,
    out: Annotated[str | None, typer.Option(help="The run folder; the same one continues a run.")] = None,
    conditions: Conditions = None,
    suite: Suite = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            help="A paper's benchmark, e.g. coco-c; with --root. --conditions then chooses part of it.",
            autocompletion=complete_benchmarks,
        ),
    ] = None,
    root: Annotated[str | None, typer.Option(help="The folder of the benchmark's dataset.")] = None,
    enhance: Annotated[
        list[str] | None, typer.Option(help="Enhance images first: clahe, nlm, style; repeatable.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed gives other noise. Default 0.")] = None,
    limit: Limit = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-j", help="Worker processes, or Slurm jobs. Default: one per core."),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Images per call of the model. Default 8.")] = None,
    chunk: Annotated[
        int | None, typer.Option(help="Images per part file, the most that a kill can lose.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="pool (default), local, ray or slurm.")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster's address.")] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs per Ray task.")] = None,
    slurm: Annotated[
        list[str] | None, typer.Option(help="A submitit option, e.g. slurm_partition=gpu; repeatable.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="i/n: every n-th chunk; join with 'stormproof merge'.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds a call of the model may take.")] = None,
    precision: Annotated[
        float | None,
        typer.Option(help="Estimate the corrupted mean to within ± this many points, from part of it."),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            help="What tables print first, and what --precision is about. Default: the benchmark's, or AP, "
            "mask AP or mIoU.",
            autocompletion=complete_measures,
        ),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="key=value, for grouping reports; repeatable.")
    ] = None,
    track: Annotated[list[str] | None, typer.Option(help="mlflow, wandb or tensorboard; repeatable.")] = None,
    plugin: Annotated[
        list[str] | None, typer.Option(help="A Python file with corruptions or metrics of your own; repeatable.")
    ] = None,
    copies: Annotated[
        str | None, typer.Option(help="Read corrupted images from DIR/<condition>/<file>.")
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(help="Clean score to expect, e.g. AP=0.372; 'score' warns if it differs. Repeatable."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Corrupt batches there: cuda, cuda:1, cpu; the same pixels.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A run.yaml; flags override its settings.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and its size.")] = False,
) -> None:  # fmt: skip
    """Run a model on a dataset, clean and under every condition, and keep its predictions.

    Stop it at any time: the same command continues where it was, and the rows do not depend on how often
    it was stopped, on workers, batch size or engine. 'stormproof score' turns the folder into scores.

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
    from stormproof.engine.config import make_config, overlay, read_settings
    from stormproof.engine.many import is_many
    from stormproof.engine.plan import make_plan

    flags: dict[str, Any] = {
        "model": model, "data": data, "out": out, "suite": suite, "conditions": conditions,
        "benchmark": benchmark, "root": root, "enhance": enhance, "seed": seed, "limit": limit,
        "workers": workers, "batch": batch, "chunk": chunk, "engine": engine, "address": address,
        "gpus": gpus, "slurm": _pairs("--slurm", slurm), "shard": shard, "timeout": timeout,
        "precision": precision, "measure": measure,
        "tags": _pairs("--tag", tag), "track": track, "plugin": plugin, "copies": copies,
        "expect": _pairs("--expect", expect), "device": device,
    }  # fmt: skip
    console.announce_compiling()
    settings = overlay(read_settings(config) if config else {}, flags)
    if is_many(settings):
        run_many(settings, str(config or ""), dry_run=dry_run)
        return
    made = make_config(settings, str(config) if config else "")
    if made.precision and not dry_run:
        _run_to_precision(made)
        return
    plan = make_plan(made)
    if dry_run:
        _show(plan)
        return
    _run(plan)


def _run(plan: Plan) -> None:
    console.note(plan.taken_for)
    for remark in plan.remarks:
        console.warn(f"{remark} See: stormproof inspect {shlex.quote(plan.config.model)}")
    _print_classes(plan)
    _report(plan, _executed(plan))


def _run_to_precision(config: RunConfig) -> None:
    from stormproof.engine.precision import run_to_precision
    from stormproof.results.run import Run
    from stormproof.results.tables import estimate_table

    summary, found = run_to_precision(config, _executed)
    require_success(summary)
    if found is None:
        console.say(f"{config.out}: that precision needs every cell, and all are done.")
        console.say(f"Score it with: stormproof score {shlex.quote(config.out)}")
        return
    console.out.print(estimate_table(Run(config.out), found))
    console.say("The same command with --precision 0 completes the grid; nothing is run twice.")


def _executed(plan: Plan) -> Summary:
    from stormproof.engine.progress import watch_on
    from stormproof.engine.run import execute, executor_for
    from stormproof.engine.trackers import open_tracker

    watches: list[Watch] = [watch_on(console.err), *(open_tracker(name) for name in plan.config.track)]
    with stoppable():
        return execute(plan, executor_for(plan.config, len(plan.chunks)), watches)


def _report(plan: Plan, summary: Summary) -> None:
    require_success(summary)
    out, share = plan.config.out, plan.config.share
    done = summary.survey.cells - len(summary.failures)
    console.say(f"{out}: {done} cells, all done.")
    if share[1] > 1:
        score = f"stormproof score {shlex.quote(out)}"
        console.say(
            f"This was shard {plan.config.shard}. When all are done: {score} if they share the folder,"
        )
        console.say("or else: stormproof merge OUT SHARD…")
    else:
        console.say(f"Score it with: stormproof score {shlex.quote(out)}")


def _print_classes(plan: Plan) -> None:
    """What did not match between the model's class names and the dataset's."""
    from stormproof.models.classes import class_table, match_classes

    model, dataset = plan.record.model, plan.record.dataset
    sides = {"Classes": (model.classes, dataset.classes),
             "Semantic classes": (model.semantic_classes, dataset.semantic_classes)}  # fmt: skip
    for title, (theirs, ours) in sides.items():
        match = match_classes(theirs, ours)
        if theirs and ours and (match.unmatched_model or match.unmatched_dataset):
            console.err.print(class_table(match, title))


def _show(plan: Plan) -> None:
    """The plan and its size."""
    from stormproof.engine.plan import survey
    from stormproof.results.store.record import RECORD, may_claim

    if (plan.work.out / RECORD).exists():
        may_claim(plan.work.out, plan.record)
    left = survey(plan)
    work, record = plan.work, plan.record
    table = Table(show_header=False, box=None)
    calls = -(-left.cells_left // work.batch)
    facts = {
        "model": f"{record.model.name} ({record.model.fingerprint[:16]})",
        "dataset": f"{record.dataset.name} ({record.dataset.fingerprint[:16]}), {work.images} of "
        f"{record.dataset.images} images",
        "conditions": f"{len(work.conditions)}: {', '.join(record.conditions)}",
        "seed": str(work.seed),
        "shard": plan.config.shard,
        "cells": f"{left.cells:,}, of which {left.cells_left:,} are left",
        "to do": f"{len(left.chunks):,} chunks of {work.chunk} images: {left.images_left:,} to decode, "
        f"about {calls:,} calls of {work.batch} images",
        "engine": str(plan.config.engine),
        "out": plan.config.out,
    }
    for name, value in facts.items():
        table.add_row(name, value)
    console.out.print(table)


def _pairs(flag: str, texts: list[str] | None) -> dict[str, str] | None:
    if texts is None:
        return None
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not key or not equals:
            raise InvalidOption(f"{flag} {text}: write key=value.")
    return {key.strip(): value.strip() for key, _, value in pairs}
