"""Progress of a run: bars on a terminal, plain lines in a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from stormproof.core.condition import corruption_of
from stormproof.core.errors import counted
from stormproof.engine.plan import Survey
from stormproof.engine.run import Summary, Watch
from stormproof.engine.work import ChunkResult, alike
from stormproof.results.store.record import RunRecord

QUIET = 10.0  # seconds between lines of a log


def watch_on(console: Console) -> Watch:
    """Bars where they can be drawn, lines where they cannot."""
    return Bars(console) if console.is_terminal else Lines(console)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "", style="progress.data.speed")


class Bars:
    """One bar for all cells, and one per corruption as far as the terminal has lines for them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),  # a model may be called [/]
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[str, int] = {}

    def started(self, record: RunRecord, survey: Survey) -> None:
        self._bar.start()
        self._all = self._bar.add_task(
            record.model.name, total=survey.cells, completed=survey.cells - survey.cells_left
        )
        totals, left = _by_corruption(survey.total), _by_corruption(survey.left)
        if len(totals) + 3 <= self._console.height:
            for name, total in totals.items():
                self._tasks[name] = self._bar.add_task(f"  {name}", total=total, completed=total - left[name])

    def advanced(self, result: ChunkResult) -> None:
        self._bar.advance(self._all, sum(result.done.values()))
        for name, count in _by_corruption(result.done).items():
            if name in self._tasks:
                self._bar.advance(self._tasks[name], count)  # type: ignore[arg-type]
        for failure in alike(result.failures)[:3]:
            self._bar.console.print(f"failed: {failure}", markup=False, soft_wrap=True)

    def ended(self, summary: Summary) -> None:
        self._bar.stop()


class Lines:
    """A line every ten seconds, and one for every kind of failure in a chunk."""

    def __init__(self, console: Console, quiet: float = QUIET) -> None:
        self._console, self._quiet = console, quiet
        self._done = self._failed = 0

    def started(self, record: RunRecord, survey: Survey) -> None:
        self._start = self._last = monotonic()
        self._survey, self._by = survey, Counter[str]()
        self._say(
            f"{record.model.name} on {record.dataset.name}: {survey.cells_left} of {survey.cells} cells "
            f"left, {counted(survey.images_left, 'image')}, {counted(len(survey.total), 'condition')}"
        )

    def advanced(self, result: ChunkResult) -> None:
        self._by.update(result.done)
        self._done, self._failed = self._by.total(), self._failed + len(result.failures)
        for failure in alike(result.failures):
            self._say(f"failed: {failure}")
        if monotonic() - self._last >= self._quiet:
            self._last = monotonic()
            self._say(self._state())

    def ended(self, summary: Summary) -> None:
        self._say(self._state())
        short = [name for name, count in self._by_condition().items() if count < self._survey.total[name]]
        if short:
            some = ", ".join(short[:3]) + (" …" if len(short) > 3 else "")
            self._say(f"incomplete: {len(short)} of {len(self._survey.total)} conditions ({some})")

    def _by_condition(self) -> Counter[str]:
        """Images done under each condition, those of earlier runs included."""
        table = Counter(self._survey.total)
        table.subtract(self._survey.left)
        table.update(self._by)
        return table

    def _state(self) -> str:
        if not self._survey.cells:
            return "no cells: there are more shards than chunks of images"
        spent = max(monotonic() - self._start, 1e-9)
        survey, rate = self._survey, self._done / spent
        left = survey.cells_left - self._done - self._failed
        when = f", {spoken(left / rate)} left" if rate and left else ""
        done = survey.cells - survey.cells_left + self._done
        failed = f", {self._failed} failed" if self._failed else ""
        each = sorted(self._by_condition().values())
        spread = counted(each[-1], "image")
        if each[0] < each[-1]:
            spread = f"{each[0]} to {spread}"
        return (
            f"{done}/{survey.cells} cells ({done / survey.cells:.0%}), {spread} under each condition"
            f"{failed}, {rate:.1f} cells/s{when}"
        )

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def spoken(seconds: float) -> str:
    """A duration in its two largest units.

    >>> spoken(3723), spoken(59.6)
    ('1 h 2 min', '1 min 0 s')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _by_corruption(counts: Mapping[str, int]) -> Counter[str]:
    """Counts of conditions added up over severities and parameters."""
    total: Counter[str] = Counter()
    for text, count in counts.items():
        total[corruption_of(text)] += count
    return total
