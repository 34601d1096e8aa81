"""Joining the shards of a run: their parts, and where several hold the same chunk, their rows."""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from stormproof.core.errors import StoreError
from stormproof.core.files import read_yaml, sweep, whole_file
from stormproof.results.run import Run
from stormproof.results.store.integrity import check_parts
from stormproof.results.store.parts import (
    FAILURES,
    PARTS,
    SETTINGS,
    failures_of,
    held_cells,
    held_rows,
    part_paths,
    write_failures,
    writing_part,
)
from stormproof.results.store.record import (
    RECORD,
    RunRecord,
    claim,
    claiming,
    covering,
    differences,
    read_record,
    write_settings,
)


def merge(out: Path, shards: Sequence[Path]) -> RunRecord:
    """Put the rows of all shards into one run folder; shards of different runs are refused."""
    if not shards:
        raise StoreError("Nothing to merge: name the shards' run folders.")
    if out.resolve() in {shard.resolve() for shard in shards}:
        raise StoreError(f"{out} is one of the shards; merge into a separate folder.")
    records = [read_record(shard) for shard in shards]
    _require_one_run(shards, records)
    for shard in shards:
        check_parts(Run(shard))  # before anything is written
    for shard, theirs in zip(shards, records, strict=True):
        with claiming(out):
            sweep(out / RECORD)
            record = claim(out, theirs)
        for path in part_paths(shard):
            sweep(out / PARTS / path.name)
            _take(path, out / PARTS / path.name, record.key)
    for shard in shards:
        _take_failures(shard, out, record.key)
    settings = shards[0] / SETTINGS
    if settings.exists():
        mine = read_yaml(settings, error=StoreError)
        if not isinstance(mine, dict):
            raise StoreError(f"{settings} does not hold settings; copy another shard's over it.")
        write_settings(out / SETTINGS, covering(mine, records[0], record, shard="1/1", out=str(out)))
    return record


def _require_one_run(shards: Sequence[Path], records: Sequence[RunRecord]) -> None:
    """Refuse shards of different runs before anything is written."""
    for shard, record in zip(shards, records, strict=True):
        differ = differences(records[0], record)
        if differ:
            raise StoreError(f"{shard} is not a shard of the run in {shards[0]}: {'; '.join(differ)}.")


def _take(source: Path, target: Path, key: str) -> None:
    """Copy a part, or join its rows to those of the part that is there."""
    held, more = held_cells(target, key), held_cells(source, key)
    if {*more} <= {*held}:
        return
    if not held:
        with whole_file(target) as file, source.open("rb") as part:
            shutil.copyfileobj(part, file)
        return
    rows = heapq.merge(held_rows(target, key), held_rows(source, key), key=itemgetter(0))
    with writing_part(target, key) as joined:
        for _, same in groupby(rows, key=itemgetter(0)):
            joined.add(next(same)[1])


def _take_failures(shard: Path, out: Path, key: str) -> None:
    """Add a shard's failures to those already there, except cells that another shard has."""
    for path in sorted((shard / FAILURES).glob("part-*.json")):
        target = out / FAILURES / path.name
        sweep(target)
        held = {*held_cells(out / PARTS / path.with_suffix(".parquet").name, key)}
        both = [*failures_of(target, key), *failures_of(path, key)]
        failed = {(row["index"], row["condition"]): row for row in both}
        write_failures(target, [failed[cell] for cell in sorted(failed) if cell not in held], key)
