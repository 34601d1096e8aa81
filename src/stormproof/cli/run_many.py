"""`stormproof run` with many models: one plan, one progress, one table at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from stormproof.cli import console
from stormproof.cli.outcome import list_failures, say_continue, say_unreadable, stoppable
from stormproof.core.errors import InvalidOption, StormproofError

if TYPE_CHECKING:
    from stormproof.engine.many import Entry, Outcome


def run_many(settings: Mapping[str, Any], source: str, *, dry_run: bool) -> None:
    """Plan, and unless it is a dry run execute, every run that the settings describe."""
    from stormproof.core.files import make_folder
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.engine.many import entries, run_all
    from stormproof.engine.run import executor_for
    from stormproof.engine.together import size_of, together_on
    from stormproof.results.store.settings import SETTINGS, write_settings

    plugins = settings.get("plugin") or ()
    load_plugins([plugins] if isinstance(plugins, str) else plugins)
    listed = entries(settings, source)
    if any(entry.config.engine == "slurm" for entry in listed):
        raise InvalidOption("Many models in one plan run on pool, local or ray; give Slurm one run each.")
    if dry_run:
        _show(listed)
        return
    cells = sum(size_of(entry.config).cells for entry in listed)
    write_settings(make_folder(Path(str(settings["out"]))) / SETTINGS, settings)  # to continue from
    with stoppable():
        outcomes = run_all(
            listed, executor_for(listed[0].config, 10**9), [together_on(console.err, listed, cells)]
        )
    _report(outcomes, str(settings["out"]))


def _report(outcomes: list[Outcome], out: str) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            console.fail(f"{outcome.entry.name}: {outcome.error}")
        elif outcome.summary is not None and outcome.summary.failed:
            console.note(f"{outcome.entry.name}:")
            list_failures(outcome.summary)
        elif outcome.summary is not None:
            say_unreadable(outcome.summary)
            _compare(outcome)
    bad = [outcome for outcome in outcomes if not outcome.complete]
    console.say(f"{out}: {len(outcomes) - len(bad)} of {len(outcomes)} models are done.")
    console.say(f"Score them with: stormproof score {out}")
    if bad:
        say_continue()
        raise typer.Exit(1)


def _compare(outcome: Outcome) -> None:
    """Say when the clean score is not what the model's card promises."""
    if not outcome.entry.config.expect:
        return
    from stormproof.results.run import Run
    from stormproof.results.tables import expectations

    run = Path(outcome.entry.config.out)
    try:
        found = expectations(Run(run, data=outcome.entry.config.data_spec()).score(conditions=("clean",)))
    except StormproofError as error:
        found = [str(error)]
    for line in found:
        console.note(f"warning: {outcome.entry.name}: {line}")


def _show(listed: list[Entry]) -> None:
    """The plan and its size; models are opened when it runs."""
    from stormproof.engine.together import left_of, size_of

    title = f"{len(listed)} runs; models are opened when they run"
    table = console.table(title, ("run", "dataset"), ("images", "conditions", "cells", "left"))
    total = left = evaluations = 0
    for entry in listed:
        size, rest = size_of(entry.config), left_of(entry.config)
        total, left, evaluations = total + size.cells, left + rest, evaluations + size.conditions
        table.add_row(
            Text(entry.name), Text(size.dataset), f"{size.images:,}", f"{size.conditions:,}",
            f"{size.cells:,}", f"{rest:,}",
        )  # fmt: skip
    console.out.print(table)
    console.say(f"{evaluations:,} evaluations, {total:,} cells, of which {left:,} are left.")
