"""Worker processes: how many, how they start, and how many threads each may use."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any, TypeVar

from stormproof.errors import InvalidOption, RunError

Job = TypeVar("Job")
Made = TypeVar("Made")

# One thread per worker everywhere: parallel sums depend on the number of threads, results must not.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def worker_count(asked: int | None) -> int:
    """As many as asked for; one per core for 0 or None."""
    if asked is not None and asked < 0:
        raise InvalidOption(f"--workers {asked}: give 0 for one per core, or a number of processes.")
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

    Each is a fresh interpreter: forking a process that has run compiled kernels or a GPU is not safe. It does
    not run the user's script again, as a spawned process otherwise would: workers open what they need by
    name, and a script need not guard itself with `if __name__ == "__main__"`.
    """
    return ProcessPoolExecutor(workers, _WorkerContext(), _start, (start, arguments))


class _WorkerProcess(SpawnProcess):
    @staticmethod
    def _Popen(process: Any) -> Any:  # noqa: N802  multiprocessing's name for how a process starts
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process)
        finally:
            sys.modules["__main__"] = main


class _WorkerContext(SpawnContext):
    Process = _WorkerProcess


def spread(function: Callable[[Job], Made], jobs: Iterable[Job], *, workers: int) -> Iterator[Made]:
    """Every job's outcome as it is finished; at most a few jobs a worker are under way at any time."""
    if workers == 1:
        yield from map(function, jobs)
        return
    queue = iter(jobs)
    with all_alive(), worker_pool(workers) as pool:
        pending: set[Future[Made]] = {pool.submit(function, job) for job in islice(queue, 4 * workers)}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                pending |= {pool.submit(function, job) for job in islice(queue, len(done))}
                for future in done:
                    yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def all_alive() -> Iterator[None]:
    """Say what to do when a worker is killed: its job is lost, and with it what all of them were to make."""
    try:
        yield
    except BrokenProcessPool:
        raise RunError(
            "A worker process was killed, perhaps for want of memory. Run the same command again, with fewer "
            "--workers if memory is short."
        ) from None


def _start(start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    # Ctrl-C reaches every process of a terminal; the one that started the workers says what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    one_thread()
    if start is not None:
        start(*arguments)


def _follow_parent() -> None:
    """End with whoever started this process, even when it was killed: an orphan would wait for ever for work
    that nobody sends, and hold memory and files."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
