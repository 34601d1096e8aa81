"""Scores that were kept with a run, as long as they are still those of its rows; else made anew."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from stormproof.core.errors import OutputError, StoreError
from stormproof.results.images import IMAGES
from stormproof.results.score import score_run
from stormproof.results.store.parts import part_paths
from stormproof.results.store.record import read_record
from stormproof.results.store.seal import is_sealed, read_sealed
from stormproof.results.tables import SCORES, as_json, save


def kept_scores(run: Path, data: str | None = None) -> dict[str, Any]:
    """A run's scores as `scores.json` holds them, complete or partial."""
    found = _fresh(run)
    if found is not None:
        return found
    scores = score_run(run, data=data, partial=True)
    with suppress(OutputError):  # someone else's run: its scores can be read all the same
        save(run, scores)
    made: dict[str, Any] = json.loads(as_json(scores))
    return made


def _fresh(run: Path) -> dict[str, Any] | None:
    """The kept scores, unless the run has grown or changed since, or they are not what was written."""
    path, record = run / SCORES, read_record(run)
    if not path.exists() or not (run / IMAGES).exists() or not is_sealed(run / IMAGES):
        return None
    try:
        found = read_sealed(path, again="")
    except StoreError:
        return None
    newest = max((part.stat().st_mtime_ns for part in part_paths(run)), default=0)
    covered: Any = next(iter(found["scores"].values()), {}).keys()
    same = found.get("key") == record.key and found.get("images") == record.images
    whole = {*record.conditions} == {*covered} or bool(found.get("missing"))
    return found if same and whole and "curves" in found and path.stat().st_mtime_ns >= newest else None
