"""Weights & Biases: a run per run, in the project that WANDB_PROJECT names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from stormproof.engine.plan import Survey
from stormproof.engine.run import Summary
from stormproof.engine.work import ChunkResult
from stormproof.errors import MissingExtra
from stormproof.store.record import RunRecord
from stormproof.trackers import parameters, title
from stormproof.trackers.counting import Count, seconds


class WandbTracker:
    def __init__(self) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtra("Weights & Biases", "pip install 'stormproof[wandb]'") from None
        self._wandb, self._count = wandb, Count()
        self._run: Any = None

    def started(self, record: RunRecord, survey: Survey) -> None:
        self._run = self._init(record, "run")

    def advanced(self, result: ChunkResult) -> None:
        self._run.log(self._count.add(result), step=self._count.chunks)

    def ended(self, summary: Summary) -> None:
        self._run.summary.update(seconds(summary))
        self._run.finish(exit_code=0 if summary.complete else 1)

    def scored(self, record: RunRecord, numbers: Mapping[str, float]) -> None:
        run = self._init(record, "scores")
        run.summary.update(dict(numbers))
        run.finish()

    def _init(self, record: RunRecord, kind: str) -> Any:
        project = os.environ.get("WANDB_PROJECT", "stormproof")
        return self._wandb.init(project=project, name=title(record), job_type=kind, config=parameters(record))
