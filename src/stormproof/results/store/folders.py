"""Folders of several runs: the path and the name of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from stormproof.core.errors import StoreError
from stormproof.results.store.record import RECORD, read_record


def runs_in(places: Sequence[Path]) -> dict[str, Path]:
    """Run folders by name, from run folders and folders that hold some, such as those of many models.

    A run has the name in its record, since folders may be renamed. Without a name, or if the record cannot be
    read, it has the name of its folder.
    """
    found: dict[str, Path] = {}
    for place in places:
        inside = [place] if (place / RECORD).exists() else sorted(p.parent for p in _records(place))
        if not inside:
            raise StoreError(f"{place} is not a run folder: it has no {RECORD}; 'stormproof run' makes one.")
        for run in inside:
            name = _recorded_name(run)
            name = name or (run.name if run == place else run.relative_to(place).as_posix())
            found[name if name not in found else str(run)] = run
    return found


def _recorded_name(run: Path) -> str | None:
    try:
        name = read_record(run).name
    except StoreError:  # opening the run reports the error
        return None
    parts = PurePath(name).parts if name is not None else ()
    if name is not None and (not parts or PurePath(name).is_absolute() or ".." in parts):
        raise StoreError(f"{run / RECORD}: the name {name!r} leads out of a folder; give the run another.")
    return name


def _records(place: Path) -> list[Path]:
    """One folder per model, or one per model and dataset."""
    return [path for pattern in (f"*/{RECORD}", f"*/*/{RECORD}") for path in place.glob(pattern)]
