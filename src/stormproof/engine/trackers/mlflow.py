"""MLflow: a run per run, where MLFLOW_TRACKING_URI says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stormproof.core.loading import framework
from stormproof.engine.trackers.tracker import parameters, title
from stormproof.results.store.record import RunRecord

EXPERIMENT = "stormproof"


class Mlflow:
    def __init__(self) -> None:
        self._mlflow = framework("mlflow", extra="mlflow")

    def begin(self, record: RunRecord, kind: str) -> None:
        self._mlflow.set_experiment(EXPERIMENT)
        self._mlflow.start_run(run_name=f"{'' if kind == 'run' else f'{kind} of '}{title(record)}")
        self._mlflow.log_params({_plain(key): value for key, value in parameters(record).items()})

    def log(self, numbers: Mapping[str, float], step: int | None = None) -> None:
        self._mlflow.log_metrics({_plain(name): value for name, value in numbers.items()}, step=step)

    def end(self, complete: bool) -> None:
        self._mlflow.end_run("FINISHED" if complete else "FAILED")


def _plain(name: str) -> str:
    """A name of the few signs that MLflow takes, in metrics and parameters alike.

    >>> _plain("AP/fog@3"), _plain("tag.crops?")
    ('AP/fog-3', 'tag.crops-')
    """
    return re.sub(r"[^\w./: -]", "-", name)
