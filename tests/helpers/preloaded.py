"""Processes forked from one that has loaded everything: real processes that start at once.

The process that they are forked from starts with the first of them, and no thread may start in it.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver
from typing import Any
from unittest.mock import patch

from stormproof.core import processes

LOADED = [
    "stormproof.core.worker_preload", "pandas", "pyarrow.parquet", "stormproof.cli", "stormproof.depth",
    "stormproof.tools.corrupted_copies",
    "stormproof.corruptions", "stormproof.datasets.coco", "stormproof.datasets.context",
    "stormproof.engine.many", "stormproof.engine.executors",
    "stormproof.engine.progress", "stormproof.models.python",
    "stormproof.engine.trackers", "stormproof.report.make", "helpers.warm",
]  # fmt: skip
PATH = "STORMPROOF_TESTS_PATH"  # tells `helpers.warm` the search path


class _Server(forkserver.ForkServer):
    """Starts with the search path of this process, where `helpers` is found."""

    def ensure_running(self) -> None:
        path = os.pathsep.join(sys.path)
        with patch.dict(os.environ, {"PYTHONPATH": path, PATH: path}):
            super().ensure_running()


# Beside Python's own, which the pools of the product use: a test kills that one.
_SERVER = _Server()
_SERVER.set_forkserver_preload(LOADED)


def load(*more: str) -> None:
    """Load further modules in the process that others are forked from; before the first of them."""
    _SERVER.set_forkserver_preload([*LOADED, *more])


class Process(processes._ForkedProcess):
    """Has the environment of whoever starts it, as a new interpreter would."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._environment = dict(os.environ)

    @staticmethod
    def _Popen(process: Any) -> Any:  # noqa: N802  multiprocessing's name for how a process starts
        with patch.object(forkserver, "connect_to_new_process", _SERVER.connect_to_new_process):
            return processes._ForkedProcess._Popen(process)

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self._environment)
        os.fsync = lambda _: None  # as in tests/conftest.py
        super().run()


class _Context(processes._ForkedContext):
    Process = Process


kernel_pool = processes._kernel_pool  # as it is without `fork_workers`


def fork_workers() -> None:
    """Fork the workers of every pool that this process starts; other processes start theirs anew."""
    processes._WorkerContext = _Context  # type: ignore[assignment,misc]
    processes._kernel_pool = lambda workers, module: ProcessPoolExecutor(
        workers, _Context(), processes._start, (None, ())
    )
