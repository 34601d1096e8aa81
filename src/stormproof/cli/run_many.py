"""`stormproof run` with many models: one plan, one progress bar, one summary at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from stormproof.cli import console
from stormproof.cli.outcome import (
    list_failures,
    say_continue,
    say_findings,
    say_unreadable,
    stoppable,
)
from stormproof.core.errors import InvalidOption, StormproofError

if TYPE_CHECKING:
    from stormproof.engine.config import RunConfig
    from stormproof.engine.many import Outcome


def run_many(settings: Mapping[str, Any], source: str, *, dry_run: bool) -> None:
    """Plan every run that the settings describe and, unless this is a dry run, execute it."""
    from stormproof.core.files import sweep
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.engine.executors import executor_for
    from stormproof.engine.many import run_all, runs_of
    from stormproof.engine.plan import label_findings, size_of
    from stormproof.engine.progress import RunProgress
    from stormproof.results.store.record import claiming
    from stormproof.results.store.settings import SETTINGS, write_settings

    plugins = settings.get("plugin") or ()
    load_plugins([plugins] if isinstance(plugins, str) else plugins)
    runs = runs_of(settings, source)
    if any(config.engine == "slurm" for config in runs):
        raise InvalidOption(
            "A plan of many models runs on pool, local or ray; use one run per model on Slurm."
        )
    if dry_run:
        _print_plan(runs)
        return
    progress = RunProgress(console.err, runs=len(runs), cells=sum(size_of(config).cells for config in runs))
    for spec, config in {config.data_spec(): config for config in runs}.items():
        say_findings(label_findings(spec, size_of(config).images), spec)
    out = Path(str(settings["out"]))
    with claiming(out):
        sweep(out / SETTINGS)
        write_settings(out / SETTINGS, settings)  # to continue from
    with stoppable(out):
        outcomes = run_all(runs, executor_for(runs[0], 10**9), [progress])
    _report(outcomes, str(out))


def _report(outcomes: list[Outcome], out: str) -> None:
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


def _check_expected(outcome: Outcome) -> None:
    """Warn when the clean score is not the expected one."""
    if not outcome.config.expect:
        return
    from stormproof.results.run import Run
    from stormproof.results.tables import expectations

    run = Path(outcome.config.out)
    try:
        found = expectations(Run(run, data=outcome.config.data_spec()).score(conditions=("clean",)))
    except StormproofError as error:
        found = [str(error)]
    for line in found:
        console.note(f"warning: {outcome.config.name}: {line}")


def _print_plan(runs: list[RunConfig]) -> None:
    from stormproof.engine.plan import size_of

    title = f"{len(runs)} runs; models are opened when they run"
    table = console.table(title, ("run", "dataset"), ("images", "conditions", "cells", "left"))
    total = left = evaluations = 0
    for config in runs:
        size = size_of(config)
        total, left, evaluations = total + size.cells, left + size.left, evaluations + size.conditions
        table.add_row(
            Text(str(config.name)), Text(size.dataset), f"{size.images:,}", f"{size.conditions:,}",
            f"{size.cells:,}", f"{size.left:,}",
        )  # fmt: skip
    console.out.print(table)
    console.say(f"{evaluations:,} evaluations, {total:,} cells, of which {left:,} are left.")
