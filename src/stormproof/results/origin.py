"""Where scores come from: a run folder, a submission or a paper's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stormproof.results.store.record import RunRecord


@dataclass(frozen=True, eq=False)
class ScoreOrigin:
    """What scores are of, besides the model and the dataset.

    A run has a record, a folder, images that could not be read, and clips if images are frames of some. A
    submission states the dataset's fingerprint, which a run has in its record. A table that averages over
    severities has `given` aggregates by measure.
    """

    record: RunRecord | None = None
    folder: Path | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    clips: int | None = None
    fingerprint: str = ""
    citation: str = ""
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
