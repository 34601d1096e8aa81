"""Where the command line speaks: results on standard output, progress and errors on standard error.

Names come from files and from servers, so nothing in a string is taken for markup, and codes that would steer
the terminal are written out. What is to be in colour is a `Text` with a style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

# C0 and C1 codes but for line feed and tab, and the marks that turn the direction of writing.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A string with every code that steers a terminal written out.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


class SafeConsole(Console):
    """A console on which no name, wherever it comes from, can do more than be read."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


out = SafeConsole(highlight=False, markup=False)
err = SafeConsole(stderr=True, highlight=False, markup=False)


def say(line: str) -> None:
    """Print a line of the result, whole: a terminal's width must not break what is copied from it."""
    out.print(line, soft_wrap=True)


def note(line: str) -> None:
    """Print a line beside the result, likewise."""
    err.print(line, soft_wrap=True)


def warn(line: str) -> None:
    """Print what may be wrong, so that it is not overlooked."""
    err.print(Text.assemble(("warning: ", "bold yellow"), line), soft_wrap=True)


@cache
def announce_compiling() -> None:
    """Say it when the first use of a corruption or a metric compiles, which looks like hanging."""
    from stormproof.core.kernels import on_first_compile

    on_first_compile(note)


def fail(message: str) -> None:
    """Print an error as one plain line, so that it can be read, copied and grepped."""
    err.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)


def table(title: str, words: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    """A table with columns of words, and then of numbers, which stand to the right; nothing is ever cut."""
    made = Table(title=Text(title), title_justify="left")
    for name in words:
        made.add_column(Text(name), overflow="fold")
    for name in numbers:
        made.add_column(Text(name), justify="right", overflow="fold")
    return made


def progress(unit: str = "images") -> Progress:
    """A progress bar on standard error: description, bar, count, rate, time left."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=err,
        transient=False,
    )
