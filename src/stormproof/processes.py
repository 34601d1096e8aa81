"""Worker processes: how many, how they start, and how many threads each may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

# One thread per worker everywhere: parallel sums depend on the number of threads, results must not.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def worker_count(asked: int | None) -> int:
    """As many as asked for; one per core for 0 or None."""
    return asked or os.cpu_count() or 1


def one_thread() -> None:
    """Keep numerical libraries to one thread, unless the environment says otherwise."""
    for name in _THREADS:
        os.environ.setdefault(name, "1")
    import cv2

    cv2.setNumThreads(int(os.environ["OMP_NUM_THREADS"]))


def worker_pool(
    workers: int, start: Callable[..., None] | None = None, *arguments: Any
) -> ProcessPoolExecutor:
    """Processes of one thread each, which call `start(*arguments)` before anything else.

    Each is a fresh interpreter: forking a process that has run compiled kernels or a GPU is not safe.
    """
    return ProcessPoolExecutor(workers, get_context("spawn"), _start, (start, arguments))


def _start(start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    one_thread()
    if start is not None:
        start(*arguments)
