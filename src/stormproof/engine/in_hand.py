"""Notes of the cells in hand, left by workers so that their death can be explained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from stormproof.results.store.schema import Cell

IN_HAND = "inhand"


def write_in_hand(run: Path, chunk: int, cells: Sequence[Cell]) -> None:
    """Write down what is about to be asked. A note that cannot be written is done without."""
    with suppress(OSError):
        _path(run, chunk).write_text(json.dumps(cells), encoding="utf-8")


def read_in_hand(run: Path, chunk: int) -> list[Cell]:
    """The cells that were in hand; none if the worker had not come that far."""
    try:
        return [(index, text) for index, text in json.loads(_path(run, chunk).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def clear_in_hand(run: Path, chunk: int) -> None:
    with suppress(OSError):
        _path(run, chunk).unlink(missing_ok=True)


def _path(run: Path, chunk: int) -> Path:
    return run / IN_HAND / f"{chunk:06d}.json"
