"""Progress of long work: a bar on a terminal, lines in a log, one line in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from time import monotonic
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

_Item = TypeVar("_Item")


class Progress:
    """Shows how far a piece of work has got, between `start` and `stop` or inside a `with` block.

    This one prints a line every ten seconds; shorter work that announces nothing prints nothing.
    """

    every = 10.0  # seconds

    def __init__(self, console: Console, title: str, total: int, unit: str, parts: Mapping[str, int]) -> None:
        self.title, self.total, self.unit, self.parts = title, total, unit, parts
        self.done, self.done_of = 0, Counter[str | None]()
        self.note = ""  # added to the line, such as the number of failures
        self._console = console
        self._before = 0  # done by an earlier command, so excluded from the rate
        self._begun = self._last = monotonic()
        self._warm = 0.0, 0  # when the first piece was done, and how much work it was
        self._printed = False

    def start(self) -> Self:
        return self

    def stop(self) -> None:
        if self._printed:
            self._report(self.line())

    def advance(self, count: int = 1, part: str | None = None) -> None:
        """Count work done now."""
        self.done += count
        if self.done > self._before and not self._warm[1]:
            self._warm = monotonic(), self.done
        self.done_of[part] += count
        self._update(count, part)

    def skip(self, count: int, part: str | None = None) -> None:
        """Count work done by an earlier command."""
        self._before += count
        self.advance(count, part)

    def begin(self, title: str, detail: str = "") -> None:
        """Announce the next piece of work: a bar shows the title, a log also the detail."""
        self.title = title
        self._report(f"{title}: {detail}" if detail else title)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def track(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items, each counted when the next is asked for."""
        for item in items:
            yield item
            self.advance()

    def line(self) -> str:
        """The progress as one line of text."""
        rate = (self.done - self._before) / max(monotonic() - self._begun, 1e-9)
        left = self.total - self.done
        note = f", {self.note}" if self.note else ""
        pace = self._pace(rate)
        when = f", {duration_text(left / pace)} left" if pace and left > 0 else ""
        share = f"{self.done / self.total:.0%}" if self.total else "100%"
        return (
            f"{self.title}: {self.done}/{self.total} {self.unit} ({share}){note}, "
            f"{rate:.1f} {self.unit}/s{when}"
        )

    def _pace(self, rate: float) -> float:
        """Work per second, for the time left; 0 while too little is done to tell.

        The first piece is left out: it includes loading the model and compiling kernels.
        """
        begun, first = self._warm
        if self.done > first:
            return (self.done - first) / max(monotonic() - begun, 1e-9)
        return rate if first - self._before > 0.05 * (self.total - self._before) else 0.0

    def _update(self, count: int, part: str | None) -> None:
        """Show that work was done."""
        if monotonic() - self._last >= self.every:
            self._report(self.line())

    def _report(self, line: str) -> None:
        self._last, self._printed = monotonic(), True
        self.say(line)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Notebook(Progress):
    """One line below the cell, updated in place; lines printed by `say` stay."""

    every = 0.5
    _handle: Any = None

    def say(self, line: str) -> None:
        print(line)

    def _report(self, line: str) -> None:
        self._last, self._printed = monotonic(), True
        if self._handle is None:
            display: Any = import_module("IPython.display").display
            self._handle = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": line}, raw=True)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "", style="progress.data.speed")


class _Terminal(Progress):
    """One bar for the whole, and one for each part if the terminal has enough lines."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._tasks: dict[str | None, TaskID] = {}  # of the whole (None) and its parts, from `start` on

    def start(self) -> Self:
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),  # a model may be called [/]
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}", markup=False),
            _Rate(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._bars.start()
        add = self._bars.add_task
        self._tasks = {None: add(self.title, total=self.total, completed=self.done, unit=self.unit)}
        if len(self.parts) + 3 <= self._console.height:
            for name, total in self.parts.items():
                self._tasks[name] = add(f"  {name}", total=total, completed=self.done_of[name], unit="")
        return self

    def stop(self) -> None:
        self._bars.stop()

    def begin(self, title: str, detail: str = "") -> None:
        self.title = title
        self._bars.update(self._tasks[None], description=title)

    def _update(self, count: int, part: str | None) -> None:
        for name in {None, part} & self._tasks.keys():
            self._bars.advance(self._tasks[name], count)


def progress_on(
    console: Console, title: str, total: int, unit: str = "images", *, parts: Mapping[str, int] | None = None
) -> Progress:
    """The progress of `total` units of work, as the console can show it.

    `parts` are the totals of its parts, by name; each gets its own bar if the terminal has room.
    """
    kind = _Notebook if console.is_jupyter else _Terminal if console.is_terminal else Progress
    return kind(console, title, total, unit, parts or {})


def duration_text(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration_text(3723), duration_text(59.6)
    ('1 h 2 min', '1 min 0 s')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
