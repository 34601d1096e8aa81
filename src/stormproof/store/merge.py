"""Joining the shards of a run: their parts, and where several hold the same chunk, their rows."""

from __future__ import annotations

import heapq
import json
import shutil
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from stormproof.errors import StoreError
from stormproof.store.files import whole_file
from stormproof.store.parts import (
    FAILURES,
    PARTS,
    check_part,
    held_cells,
    held_rows,
    part_paths,
    write_failures,
    writing_part,
)
from stormproof.store.record import RunRecord, claim, read_record


def merge(out: Path, shards: Sequence[Path]) -> RunRecord:
    """Put the rows of all shards into one run folder; shards of different runs are refused."""
    if not shards:
        raise StoreError("Nothing to merge: name the shards' run folders.")
    if out.resolve() in {shard.resolve() for shard in shards}:
        raise StoreError(f"{out} is one of the shards; merge into a folder of its own.")
    for shard in shards:
        record = claim(out, read_record(shard))
        for path in part_paths(shard):
            _take(path, out / PARTS / path.name, record.key)
    for shard in shards:
        _take_failures(shard, out, record.key)
    settings = shards[0] / "run.yaml"
    if settings.exists():
        with whole_file(out / settings.name) as file:
            file.write(settings.read_bytes())
    return record


def _take(source: Path, target: Path, key: str) -> None:
    """Copy a part, or join its rows to those of the part that is there."""
    check_part(source, key)
    held, more = held_cells(target, key), held_cells(source, key)
    if {*more} <= {*held}:
        return
    if not held:
        with whole_file(target) as file, source.open("rb") as part:
            shutil.copyfileobj(part, file)
        return
    rows = heapq.merge(held_rows(target), held_rows(source), key=itemgetter(0))
    with writing_part(target, key) as joined:
        for _, same in groupby(rows, key=itemgetter(0)):
            joined.add(next(same)[1])


def _take_failures(shard: Path, out: Path, key: str) -> None:
    """Keep a shard's failures, unless another shard has what failed there."""
    for path in sorted((shard / FAILURES).glob("part-*.json")):
        held = held_cells(out / PARTS / path.with_suffix(".parquet").name, key)
        failures = json.loads(path.read_text(encoding="utf-8"))
        left = [row for row in failures if (row["index"], row["condition"]) not in held]
        write_failures(out / FAILURES / path.name, left)
