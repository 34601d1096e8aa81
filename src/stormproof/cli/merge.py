"""`stormproof merge`: shards of a run into one folder."""

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

    Examples:

        stormproof merge runs/yolox runs/yolox-1 runs/yolox-2 runs/yolox-3
    """
    from stormproof.store.merge import merge as merge_runs
    from stormproof.store.parts import held_cells, part_paths

    record = merge_runs(out, shards)
    held = sum(len(held_cells(path, record.key)) for path in part_paths(out))
    console.say(f"{out}: {held} of {record.cells} cells; score it with: stormproof score {out}")
    if held < record.cells:
        console.fail(f"{record.cells - held} cells are missing; merge the other shards, or run it again.")
        raise typer.Exit(1)
