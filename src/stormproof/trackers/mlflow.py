"""MLflow: a run per run, where MLFLOW_TRACKING_URI says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stormproof.engine.plan import Survey
from stormproof.engine.run import Summary
from stormproof.engine.work import ChunkResult
from stormproof.errors import MissingExtra
from stormproof.store.record import RunRecord
from stormproof.trackers import parameters, title
from stormproof.trackers.counting import Count, seconds

EXPERIMENT = "stormproof"


class MlflowTracker:
    def __init__(self) -> None:
        try:
            import mlflow
        except ImportError:
            raise MissingExtra("MLflow", "pip install 'stormproof[mlflow]'") from None
        self._mlflow, self._count = mlflow, Count()

    def started(self, record: RunRecord, survey: Survey) -> None:
        self._start(record, title(record))

    def advanced(self, result: ChunkResult) -> None:
        self._mlflow.log_metrics(self._count.add(result), step=self._count.chunks)

    def ended(self, summary: Summary) -> None:
        self._mlflow.log_metrics(seconds(summary))
        self._mlflow.end_run("FINISHED" if summary.complete else "FAILED")

    def scored(self, record: RunRecord, numbers: Mapping[str, float]) -> None:
        self._start(record, f"scores of {title(record)}")
        self._mlflow.log_metrics({_plain(name): value for name, value in numbers.items()})
        self._mlflow.end_run("FINISHED")

    def _start(self, record: RunRecord, name: str) -> None:
        self._mlflow.set_experiment(EXPERIMENT)
        self._mlflow.start_run(run_name=name)
        self._mlflow.log_params({_plain(key): value for key, value in parameters(record).items()})


def _plain(name: str) -> str:
    """A name of the few signs that MLflow takes, in metrics and parameters alike.

    >>> _plain("AP/fog@3"), _plain("tag.crops?")
    ('AP/fog-3', 'tag.crops-')
    """
    return re.sub(r"[^\w./: -]", "-", name)
