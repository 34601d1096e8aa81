"""Weights & Biases: a run per run, in the project that WANDB_PROJECT names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from stormproof.core.loading import framework
from stormproof.engine.trackers.tracker import parameters, title
from stormproof.results.store.record import RunRecord


class Wandb:
    def __init__(self) -> None:
        self._wandb = framework("wandb", extra="wandb")
        self._run: Any = None

    def begin(self, record: RunRecord, kind: str) -> None:
        project = os.environ.get("WANDB_PROJECT", "stormproof")
        self._run = self._wandb.init(
            project=project, name=title(record), job_type=kind, config=parameters(record)
        )

    def log(self, numbers: Mapping[str, float], step: int | None = None) -> None:
        if step is None:
            self._run.summary.update(dict(numbers))
        else:
            self._run.log(dict(numbers), step=step)

    def end(self, complete: bool) -> None:
        self._run.finish(exit_code=0 if complete else 1)
