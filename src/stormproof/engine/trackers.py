"""Experiment trackers: MLflow, Weights & Biases, TensorBoard; each is imported only when it is named.

Every service reads from its own environment variables where to write. A service may become unreachable,
which must not stop a run of hours.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stormproof.core import extensions
from stormproof.core.errors import RunError, StormproofError, first_line
from stormproof.core.loading import framework
from stormproof.core.registry import Registry

if TYPE_CHECKING:
    from stormproof.engine.plan import Survey
    from stormproof.engine.run import Summary
    from stormproof.engine.work import ChunkResult
    from stormproof.results.store.record import RunRecord


class Service(Protocol):
    """A tracking service; one of its pages is open at a time."""

    def begin(self, record: RunRecord, kind: str) -> None:
        """Open a page for a run; `kind` is 'run' or 'scores'."""

    def log(self, numbers: Mapping[str, float], step: int | None = None) -> None:
        """Log numbers: with a step as points of curves, without one as final values."""

    def end(self, complete: bool) -> None: ...


TRACKERS: Registry[Callable[[], Service]] = Registry(extensions.TRACKERS)


class Tracker:
    """Watches a run and reports it to a service.

    A service that cannot be reached at the start stops the run before its first image; one that fails later
    causes one warning, and the run continues without it.
    """

    def __init__(self, name: str, service: Service) -> None:
        self._name, self._service, self._lost = name, service, False
        self._done = self._failed = self._chunks = 0

    def started(self, record: RunRecord, survey: Survey) -> None:
        with self._refusing():
            self._service.begin(record, "run")

    def advanced(self, result: ChunkResult) -> None:
        self._done += sum(result.done.values())
        self._failed += len(result.failures)
        self._chunks += 1
        if not self._lost:
            with self._warning():
                self._service.log({"cells/done": self._done, "cells/failed": self._failed}, self._chunks)

    def ended(self, summary: Summary) -> None:
        activities = ("decode", "corrupt", "model", "total")
        with self._warning():
            self._service.log({f"seconds/{what}": getattr(summary.times, what) for what in activities})
        with self._warning():  # even after a failure: the service may be back, and its page must be closed
            self._service.end(summary.complete)

    def scored(self, record: RunRecord, numbers: Mapping[str, float]) -> None:
        """Scores by name, such as 'AP/mPC' or 'AP/fog@3'."""
        with self._refusing():
            self._service.begin(record, "scores")
            self._service.log(numbers)
            self._service.end(True)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except StormproofError:
            raise
        except Exception as error:
            raise RunError(
                f"--track {self._name} failed: {first_line(error)}. Fix it, or leave it out."
            ) from error

    @contextmanager
    def _warning(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not self._lost:
                warnings.warn(
                    f"{self._name} failed, the run continues without it: {first_line(error)}.", stacklevel=4
                )
            self._lost = True


def parameters(record: RunRecord) -> dict[str, str | int]:
    """The parameters that a service records with a run."""
    return {
        "model": record.model.name,
        "model_fingerprint": record.model.fingerprint,
        "dataset": record.dataset.name,
        "dataset_fingerprint": record.dataset.fingerprint,
        "seed": record.seed,
        "images": record.images,
        "conditions": len(record.conditions),
        "enhance": "+".join(record.model.enhance),
        "benchmark": record.benchmark or "",
        **{f"tag.{key}": value for key, value in record.tags.items()},
    }


def title(record: RunRecord) -> str:
    return f"{record.model.name} on {record.dataset.name}"


@TRACKERS.declare("mlflow")
class Mlflow:
    """One MLflow run for each run, on the server that MLFLOW_TRACKING_URI names."""

    def __init__(self) -> None:
        self._mlflow = framework("mlflow", extra="mlflow")

    def begin(self, record: RunRecord, kind: str) -> None:
        self._mlflow.set_experiment("stormproof")
        self._mlflow.start_run(run_name=f"{'' if kind == 'run' else f'{kind} of '}{title(record)}")
        self._mlflow.log_params({_mlflow_name(key): value for key, value in parameters(record).items()})

    def log(self, numbers: Mapping[str, float], step: int | None = None) -> None:
        self._mlflow.log_metrics({_mlflow_name(name): value for name, value in numbers.items()}, step=step)

    def end(self, complete: bool) -> None:
        self._mlflow.end_run("FINISHED" if complete else "FAILED")


def _mlflow_name(name: str) -> str:
    """A name in the few characters that MLflow accepts for metrics and parameters.

    >>> _mlflow_name("AP/fog@3"), _mlflow_name("tag.crops?")
    ('AP/fog-3', 'tag.crops-')
    """
    return re.sub(r"[^\w./: -]", "-", name)


@TRACKERS.declare("tensorboard")
class Tensorboard:
    """Event files in the folder that TENSORBOARD_LOGDIR names, one folder in it for each run."""

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
    """A new folder, because TensorBoard joins all events of a folder into one curve."""
    home = Path(os.environ.get("TENSORBOARD_LOGDIR", "tensorboard")) / title(record).replace("/", "_")
    number = 1
    while True:
        folder = home / f"{kind} {number}"
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1


@TRACKERS.declare("wandb")
class Wandb:
    """One run for each run, in the project that WANDB_PROJECT names."""

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


def open_tracker(name: str) -> Tracker:
    return Tracker(name, TRACKERS.find(name)())
