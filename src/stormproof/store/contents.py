"""What kinds of answers a run holds, asked of its rows without reading them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from stormproof.store.parts import part_paths
from stormproof.store.schema import ROWS


def has_objects(run: Path) -> bool:
    """Whether the model found any object anywhere."""
    return _any_row(run, pc.list_value_length(ds.field("scores")) > 0)


def has_values(run: Path, column: str) -> bool:
    """Whether any row has a value in a column: masks, label maps."""
    return _any_row(run, ds.field(column).is_valid())


def _any_row(run: Path, expression: ds.Expression) -> bool:
    parts = part_paths(run)
    return (
        bool(parts)
        and ds.dataset(parts, schema=ROWS).head(1, columns=["index"], filter=expression).num_rows > 0
    )
