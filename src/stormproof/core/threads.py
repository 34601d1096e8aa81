"""Work that threads share: compiled loops, NumPy, Parquet and digests let other threads run meanwhile."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeVar

Job = TypeVar("Job")
Made = TypeVar("Made")


def run_ahead(
    workers: Executor, function: Callable[[Job], Made], jobs: Iterable[Job], *, ahead: int
) -> Iterator[Made]:
    """The result of every job, in order, computed by `workers` up to `ahead` jobs in advance."""
    waiting: deque[Future[Made]] = deque()
    try:
        for job in jobs:
            waiting.append(workers.submit(function, job))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:  # nobody will ask for them
            future.cancel()


def map_in_threads(
    function: Callable[[Job], Made], jobs: Iterable[Job], *, threads: int = 0
) -> Iterator[Made]:
    """The result of every job, in order; as many jobs wait as there are threads, by default one per core.

    >>> list(map_in_threads(abs, [-1, 2, -3], threads=2))
    [1, 2, 3]
    """
    count = threads or os.cpu_count() or 1
    if count == 1:
        yield from map(function, jobs)
        return
    with ThreadPoolExecutor(count) as pool:
        yield from run_ahead(pool, function, jobs, ahead=count)


def cached(function: Callable[[Any], Made]) -> cached_property[Made]:
    """A cached property that threads compute for different objects at the same time.

    Up to Python 3.11, `cached_property` holds one lock for all objects of the class.
    """
    made = cached_property(function)
    made.lock = nullcontext()  # type: ignore[attr-defined]
    return made


def remember(owner: object, name: str, key: object, make: Callable[[], Made]) -> Made:
    """What `make` returns, held by `owner` until it is asked for with another `key`."""
    held: tuple[object, Made] | None = vars(owner).get(name)
    if held is None or held[0] is not key:
        vars(owner)[name] = held = (key, make())
    return held[1]
