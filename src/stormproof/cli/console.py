"""What the command line prints: results on standard output, progress and errors on standard error.

Names come from files and from servers, so no string is interpreted as markup, and codes that would control
the terminal are escaped. Coloured output is a `Text` with a style.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from stormproof.core.private import without_secrets
from stormproof.core.progress import Progress, progress_on
from stormproof.core.table import Table
from stormproof.core.text import as_csv, json_safe

# C0 and C1 codes except line feed and tab, and the marks that change the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A string with every code that controls a terminal escaped.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _CONTROL.sub(lambda code: ascii(code[0])[1:-1], text)


class SafeConsole(Console):
    """A console in which printed names cannot control the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._width = None  # read whenever something is printed, not once when this is imported

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


out = SafeConsole(highlight=False, markup=False)
err = SafeConsole(stderr=True, highlight=False, markup=False)


def say(line: str) -> None:
    """Print a line of the result, not wrapped, so that it can be copied."""
    out.print(without_secrets(line), soft_wrap=True)


def note(line: str) -> None:
    """Print a line about the result on standard error, also not wrapped."""
    err.print(without_secrets(line), soft_wrap=True)


def note_kind(given: str | None, full: str | None) -> None:
    """Say which kind a bare file is opened as."""
    if given is not None and full is not None and given.strip() != full:
        note(f"{given} is opened as {full}")


def warn(line: str) -> None:
    """Print a warning."""
    err.print(Text.assemble(("warning: ", "bold yellow"), without_secrets(line)), soft_wrap=True)


def fail(message: str) -> None:
    """Print an error as one plain line that can be read, copied and searched."""
    err.print(Text.assemble(("error: ", "bold red"), without_secrets(message)), soft_wrap=True)


def print_table(table: Table, *, most: int | None = None, framed: bool = True) -> None:
    """Print a table in as many parts as fit the terminal, and its note on standard error."""
    for part in table.fitted(out.width, framed=framed):
        out.print(part.as_rich(most, framed=framed, width=out.width))
    if table.note:
        note(table.note)


def tell(lines: Iterable[tuple[str, Any]]) -> None:
    """Print lines and tables, each in the way that it comes with."""
    ways: dict[str, Callable[[Any], None]] = {"warn": warn, "say": say, "note": note, "table": print_table}
    for way, what in lines:
        ways[way](what)


def print_json(content: Any) -> None:
    """Print JSON in ASCII, so that it says the same on a terminal that cannot show every letter."""
    sys.stdout.write(json.dumps(json_safe(content), indent=1) + "\n")


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print CSV with a header, safe against terminal codes and spreadsheet formulas."""
    sys.stdout.write(as_csv(list(rows[0]), [list(row.values()) for row in rows]))


def progress(title: str, total: int, unit: str = "images") -> Progress:
    """Progress on standard error."""
    return progress_on(err, title, total, unit)
