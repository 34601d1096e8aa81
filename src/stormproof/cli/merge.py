"""`stormproof merge`: join the shards of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console


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
    from stormproof.results.store.folders import runs_in
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
        console.fail(f"{lacking} cells are missing; merge the other shards, or run it again.")
    return not lacking
