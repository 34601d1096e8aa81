"""A tracking service may be away; a run of hours must not stop for it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stormproof.engine.plan import Survey
from stormproof.engine.run import Summary
from stormproof.engine.work import ChunkResult
from stormproof.errors import RunError, StormproofError
from stormproof.store.record import RunRecord

if TYPE_CHECKING:
    from stormproof.trackers import Tracker


class Guarded:
    """A tracker that is told of a run as long as it listens.

    One that cannot begin says so before the first image; one that is lost later is warned of once, and
    the run goes on without it.
    """

    def __init__(self, name: str, tracker: Tracker) -> None:
        self._name, self._tracker, self._lost = name, tracker, False

    def started(self, record: RunRecord, survey: Survey) -> None:
        try:
            self._tracker.started(record, survey)
        except Exception as error:
            raise self._refused(error) from error

    def advanced(self, result: ChunkResult) -> None:
        if self._lost:
            return
        try:
            self._tracker.advanced(result)
        except Exception as error:
            self._warn(error)

    def ended(self, summary: Summary) -> None:
        try:  # also of one that was lost: it may be back, and its run should not stay open
            self._tracker.ended(summary)
        except Exception as error:
            self._warn(error)

    def scored(self, record: RunRecord, numbers: Mapping[str, float]) -> None:
        try:
            self._tracker.scored(record, numbers)
        except Exception as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> StormproofError:
        if isinstance(error, StormproofError):
            return error
        return RunError(f"--track {self._name} does not work: {_line(error)}. Fix it, or leave it out.")

    def _warn(self, error: Exception) -> None:
        if not self._lost:
            warnings.warn(f"{self._name} is lost, the run goes on without: {_line(error)}.", stacklevel=3)
        self._lost = True


def _line(error: Exception) -> str:
    """The first line of what a service says, which may be pages long."""
    said = str(error).strip().splitlines()
    return said[0].rstrip(".") if said else type(error).__name__
