"""TensorBoard: event files in the folder that TENSORBOARD_LOGDIR names, a folder in it per run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormproof.engine.plan import Survey
from stormproof.engine.run import Summary
from stormproof.engine.work import ChunkResult
from stormproof.errors import MissingExtra
from stormproof.store.record import RunRecord
from stormproof.trackers import parameters, title
from stormproof.trackers.counting import Count, seconds


class TensorboardTracker:
    def __init__(self) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise MissingExtra("tensorboardX", "pip install 'stormproof[tensorboard]'") from None
        self._make, self._count = SummaryWriter, Count()
        self._writer: Any = None

    def started(self, record: RunRecord, survey: Survey) -> None:
        self._writer = self._open(record, "run")

    def advanced(self, result: ChunkResult) -> None:
        for name, value in self._count.add(result).items():
            self._writer.add_scalar(name, value, self._count.chunks)

    def ended(self, summary: Summary) -> None:
        for name, value in seconds(summary).items():
            self._writer.add_scalar(name, value, self._count.chunks)
        self._writer.close()

    def scored(self, record: RunRecord, numbers: Mapping[str, float]) -> None:
        writer = self._open(record, "scores")
        for name, value in numbers.items():
            writer.add_scalar(name, value, 0)
        writer.close()

    def _open(self, record: RunRecord, kind: str) -> Any:
        writer = self._make(str(_fresh_folder(record, kind)))
        lines = "\n".join(f"- {name}: {value}" for name, value in parameters(record).items())
        writer.add_text("run", lines, 0)
        return writer


def _fresh_folder(record: RunRecord, kind: str) -> Path:
    """A folder of its own, because TensorBoard joins all events of a folder into one curve."""
    home = Path(os.environ.get("TENSORBOARD_LOGDIR", "tensorboard")) / title(record).replace("/", "_")
    number = 1
    while True:
        folder = home / f"{kind} {number}"
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1
