"""Folders of several runs: where each is, and what it is called there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stormproof.core.errors import StoreError
from stormproof.results.store.record import RECORD


def runs_in(places: Sequence[Path]) -> dict[str, Path]:
    """Run folders by name, from run folders and folders that hold some, such as those of many models."""
    found: dict[str, Path] = {}
    for place in places:
        inside = [place] if (place / RECORD).exists() else sorted(p.parent for p in _records(place))
        if not inside:
            raise StoreError(f"{place} is not a run folder: it has no {RECORD}; 'stormproof run' makes one.")
        for run in inside:
            name = run.name if run == place else run.relative_to(place).as_posix()
            found[name if name not in found else str(run)] = run
    return found


def _records(place: Path) -> list[Path]:
    """One folder per model, or one per model and dataset."""
    return [path for pattern in (f"*/{RECORD}", f"*/*/{RECORD}") for path in place.glob(pattern)]
