"""A run as a tracking service is told of it; the service may be away, and a run of hours must not stop."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from stormproof.core.errors import RunError, StormproofError
from stormproof.engine.plan import Survey
from stormproof.engine.run import Summary
from stormproof.engine.work import ChunkResult
from stormproof.results.store.record import RunRecord


class Service(Protocol):
    """What a tracking service must do; one page is open at a time."""

    def begin(self, record: RunRecord, kind: str) -> None:
        """Open a page for a run; `kind` is 'run' or 'scores'."""
        ...

    def log(self, numbers: Mapping[str, float], step: int | None = None) -> None:
        """Put numbers on the page: a point of a curve at a step, without one a final value."""
        ...

    def end(self, complete: bool) -> None: ...


class Tracker:
    """Watches a run for a service, as long as it listens.

    One that cannot begin says so before the first image; one that is lost later is warned of once, and
    the run goes on without it.
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
        times = summary.times
        spent = {"decode": times.decode, "corrupt": times.corrupt, "model": times.model, "total": times.total}
        with self._warning():
            self._service.log({f"seconds/{what}": seconds for what, seconds in spent.items()})
        with self._warning():  # also of one that was lost: it may be back, and its page should not stay open
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
                f"--track {self._name} does not work: {_line(error)}. Fix it, or leave it out."
            ) from error

    @contextmanager
    def _warning(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not self._lost:
                warnings.warn(f"{self._name} is lost, the run goes on without: {_line(error)}.", stacklevel=4)
            self._lost = True


def _line(error: Exception) -> str:
    """The first line of what a service says, which may be pages long."""
    said = str(error).strip().splitlines()
    return said[0].rstrip(".") if said else type(error).__name__


def parameters(record: RunRecord) -> dict[str, str | int]:
    """What services file a run under."""
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
