"""Progress of a run where Python was started: bars on a terminal, one line that changes in a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rich.console import Console

from stormproof.engine.progress import Lines, watch_on
from stormproof.engine.run import Watch

_OFTEN = 0.5  # seconds between updates of a notebook's line


def watch_here() -> Watch:
    """What suits the place where the run was asked for."""
    console = Console(stderr=True, highlight=False)
    return Notebook(console) if console.is_jupyter else watch_on(console)


class Notebook(Lines):
    """One line below the cell, always the latest; failures stay."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, quiet=_OFTEN)
        self._handle: Any = None

    def _say(self, line: str) -> None:
        display: Any = import_module("IPython.display").display
        if line.startswith("failed:"):
            print(line)
        elif self._handle is None:
            self._handle = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": line}, raw=True)
