"""Worker processes forked from one that has loaded everything: real processes that start at once."""

from __future__ import annotations

import os
from typing import Any

import forked
from stormproof.core import processes


class _Process(processes._ForkedProcess):
    """Has the environment of whoever starts it, as a new interpreter would."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._environment = dict(os.environ)

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self._environment)
        super().run()


class _Context(processes._ForkedContext):
    Process = _Process


def _context() -> _Context:
    context = _Context()
    context.set_forkserver_preload(["stormproof.core.worker_preload", *forked.LOADED])
    return context


def fork_workers() -> None:
    """Fork the workers of every pool that this process starts; other processes start theirs anew."""
    processes._WorkerContext = _context  # type: ignore[assignment,misc]
