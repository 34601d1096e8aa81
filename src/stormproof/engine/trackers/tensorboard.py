"""TensorBoard: event files in the folder that TENSORBOARD_LOGDIR names, a folder in it per run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormproof.core.loading import framework
from stormproof.engine.trackers.tracker import parameters, title
from stormproof.results.store.record import RunRecord


class Tensorboard:
    def __init__(self) -> None:
        self._make = framework("tensorboardX", extra="tensorboard").SummaryWriter
        self._writer: Any = None
        self._step = 0

    def begin(self, record: RunRecord, kind: str) -> None:
        self._writer, self._step = self._make(str(_fresh_folder(record, kind))), 0
        lines = "\n".join(f"- {name}: {value}" for name, value in parameters(record).items())
        self._writer.add_text("run", lines, 0)

    def log(self, numbers: Mapping[str, float], step: int | None = None) -> None:
        self._step = self._step if step is None else step
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, self._step)

    def end(self, complete: bool) -> None:
        self._writer.close()


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
