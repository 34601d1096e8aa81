"""The size and the progress of many runs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from stormproof.engine.conditions import asked
from stormproof.engine.config import RunConfig
from stormproof.engine.many import Entry
from stormproof.engine.pair import open_dataset_once
from stormproof.engine.plan import Survey
from stormproof.engine.progress import QUIET, spoken
from stormproof.engine.run import Summary, Watch
from stormproof.engine.work import ChunkResult, alike
from stormproof.results.run import Run
from stormproof.results.store.record import RECORD, RunRecord


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run will be; precomputed predictions that name no conditions are counted when opened."""

    dataset: str
    images: int
    conditions: int

    @property
    def cells(self) -> int:
        return self.images * self.conditions


def size_of(config: RunConfig) -> Size:
    """The size of a run, found without opening its model."""
    dataset = open_dataset_once(config.data_spec())
    return Size(dataset.name, min(len(dataset), config.limit or len(dataset)), len(asked(config)))


def left_of(config: RunConfig) -> int:
    """Cells that a run's folder lacks."""
    size, run = size_of(config), Path(config.out)
    if not (run / RECORD).exists():
        return size.cells
    wanted, held = {str(c) for c in asked(config)}, Run(run).held
    here = sum(len(images) for text, images in held.items() if text in wanted)
    return max(0, size.cells - here)


def together_on(console: Console, listed: Sequence[Entry], cells: int) -> Watch:
    """One bar, or lines in a log, for all runs."""
    return _Bar(console, len(listed), cells) if console.is_terminal else _Lines(console, len(listed), cells)


class _Lines:
    """A line when a run begins, for failures, and every ten seconds while cells are done."""

    def __init__(self, console: Console, runs: int, cells: int) -> None:
        self._console, self._runs, self._cells = console, runs, cells
        self._begun = self._done = self._new = 0
        self._start = self._last = monotonic()

    def started(self, record: RunRecord, survey: Survey) -> None:
        self._begun += 1
        self._done += survey.cells - survey.cells_left
        self._say(
            f"{self._begun} of {self._runs}: {record.model.name} on {record.dataset.name}, "
            f"{survey.cells_left} of {survey.cells} cells left; {self._done}/{self._cells} of all"
        )

    def advanced(self, result: ChunkResult) -> None:
        self._done += sum(result.done.values())
        self._new += sum(result.done.values())
        for failure in alike(result.failures)[:3]:
            self._say(f"failed: {failure}")
        self._told()

    def _told(self) -> None:
        if monotonic() - self._last < QUIET:
            return
        self._last = monotonic()
        rate = self._new / (self._last - self._start)
        left = f", {spoken((self._cells - self._done) / rate)} left" if rate else ""
        self._say(
            f"{self._done}/{self._cells} of all ({self._done / self._cells:.0%}), {rate:.1f} cells/s{left}"
        )

    def ended(self, summary: Summary) -> None: ...

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Bar(_Lines):
    """One bar over all cells, which names the run begun last."""

    def __init__(self, console: Console, runs: int, cells: int) -> None:
        super().__init__(console, runs, cells)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console)
        self._ended = 0

    def started(self, record: RunRecord, survey: Survey) -> None:
        if not self._begun:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._cells)
        self._begun += 1
        title = f"{self._begun} of {self._runs}: {record.model.name}"
        self._bar.update(self._task, description=escape(title))
        self._bar.advance(self._task, survey.cells - survey.cells_left)

    def _told(self) -> None:
        """The bar tells it."""

    def advanced(self, result: ChunkResult) -> None:
        super().advanced(result)
        self._bar.advance(self._task, sum(result.done.values()))

    def ended(self, summary: Summary) -> None:
        self._ended += 1
        if self._ended == self._begun:
            self._bar.stop()
