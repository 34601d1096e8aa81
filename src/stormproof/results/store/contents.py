"""What kinds of answers a run holds: its parts are looked into until one says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from stormproof.results.store.parts import part_paths, read_part
from stormproof.results.store.record import read_record


def has_objects(run: Path) -> bool:
    """Whether the model found any object anywhere."""
    return any(len(pc.list_flatten(found)) for found in _parts_of(run, "scores"))


def has_values(run: Path, column: str) -> bool:
    """Whether any row has a value in a column: masks, label maps."""
    return any(found.null_count < len(found) for found in _parts_of(run, column))


def _parts_of(run: Path, column: str) -> Iterator[pa.ChunkedArray]:
    """A column, part by part. Not as a dataset, which takes half a second to load."""
    key = read_record(run).key
    return (read_part(path, key, (column,))[column] for path in part_paths(run))
