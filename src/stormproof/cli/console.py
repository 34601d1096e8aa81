"""Where the command line speaks: results on standard output, progress and errors on standard error."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def say(line: str) -> None:
    """Print a line of the result, whole: a terminal's width must not break what is copied from it."""
    out.print(line, markup=False, soft_wrap=True)


def note(line: str) -> None:
    """Print a line beside the result, likewise."""
    err.print(line, markup=False, soft_wrap=True)


def fail(message: str) -> None:
    """Print an error as one plain line, so that it can be read, copied and grepped."""
    err.print("[bold red]error:[/] ", end="")
    note(message)


def progress(unit: str = "images") -> Progress:
    """A progress bar on standard error: description, bar, count, rate, time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=err,
        transient=False,
    )
