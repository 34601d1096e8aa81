"""Worker processes: how many, how they start, and how many threads each may use."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing import parent_process
from multiprocessing.context import ForkServerContext, ForkServerProcess, SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any, TypeVar

from stormproof.core.errors import InvalidOption, RunError

Job = TypeVar("Job")
Made = TypeVar("Made")

# One thread per worker everywhere: parallel sums depend on the number of threads, results must not.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def worker_count(asked: int | None) -> int:
    """The number of workers; 0 and None mean one per core."""
    if asked is not None and asked < 0:
        raise InvalidOption(f"--workers {asked}: give 0 for one per core, or a number of processes.")
    return asked or os.cpu_count() or 1


def one_thread() -> None:
    """Limit numerical libraries to one thread, unless the environment says otherwise."""
    for name in _THREADS:
        os.environ.setdefault(name, "1")
    import cv2

    cv2.setNumThreads(int(os.environ["OMP_NUM_THREADS"]))


@contextmanager
def same_folder() -> Iterator[None]:
    """Return to the working directory when the block ends: a model's code may change it, and relative paths
    of images and results start there."""
    before = os.getcwd()  # noqa: PTH109  a string: this runs for every call of a model
    try:
        yield
    finally:
        os.chdir(before)


def keep_memory() -> None:
    """Make the C library keep freed memory for the next array, for a command that ends soon.

    By default it returns blocks to the system at once; getting zeroed pages back took a sixth of the time
    of scoring a large run. The largest blocks are still returned, since keeping them would cost memory.
    """
    trim_threshold, mmap_threshold = -1, -3  # of malloc.h
    with suppress(OSError, AttributeError):  # not glibc
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(trim_threshold, 256 << 20)
        libc.mallopt(mmap_threshold, 24 << 20)


def worker_pool(
    workers: int, start: Callable[..., None] | None = None, *arguments: Any
) -> ProcessPoolExecutor:
    """A pool of processes with one thread each, which call `start(*arguments)` before anything else.

    Each is a fresh interpreter: forking a process that has run compiled kernels or a GPU is not safe.
    """
    return ProcessPoolExecutor(workers, _WorkerContext(), _start, (start, arguments))


def _kernel_pool(workers: int, module: str) -> ProcessPoolExecutor:
    """A pool for a function of `module`, with kernels started and the module imported once for all workers.

    Workers are forked from a small process that has done both and nothing else: no thread, no GPU, no user
    code (docs/adr/0023). Only Linux forks such a process safely.
    """
    if sys.platform != "linux":
        return worker_pool(workers)
    context = _ForkedContext()
    context.set_forkserver_preload(["stormproof.core.worker_preload", module])
    return ProcessPoolExecutor(workers, context, _start, (None, ()))


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep a new process from running the user's script again: workers open what they need by name, so a
    script needs no `if __name__ == "__main__"`."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_TRIES, _PAUSE = 50, 0.1  # to reach the fork server; seconds between tries


class _WorkerProcess(SpawnProcess):
    @staticmethod
    def _Popen(process: Any) -> Any:  # noqa: N802  multiprocessing's name for how a process starts
        with _without_main():
            return SpawnProcess._Popen(process)


class _WorkerContext(SpawnContext):
    Process = _WorkerProcess


class _ForkedProcess(ForkServerProcess):
    @staticmethod
    def _Popen(process: Any) -> Any:  # noqa: N802
        lost: Exception | None = None
        for _ in range(_TRIES):
            try:
                with _without_main():
                    return ForkServerProcess._Popen(process)
            except (EOFError, ConnectionError) as error:
                lost = error
                time.sleep(_PAUSE)  # killed but not yet reaped; then another is started
        raise BrokenProcessPool("The process that workers are forked from was killed.") from lost


class _ForkedContext(ForkServerContext):
    Process = _ForkedProcess


def spread(function: Callable[[Job], Made], jobs: Iterable[Job], *, workers: int) -> Iterator[Made]:
    """The result of every job as it finishes; at most four jobs per worker are made ahead.

    The first job runs alone, so that one process compiles the kernels and the others load them from disk.
    """
    queue = iter(jobs)
    if workers == 1:
        yield from map(function, queue)
        return
    inner = function.func if isinstance(function, partial) else function
    with explain_killed_workers(), _kernel_pool(workers, inner.__module__) as pool:
        try:
            for job in islice(queue, 1):
                yield pool.submit(function, job).result()
            pending: set[Future[Made]] = {pool.submit(function, job) for job in islice(queue, 4 * workers)}
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                pending |= {pool.submit(function, job) for job in islice(queue, len(done))}
                for future in done:
                    yield future.result()
        except BaseException as error:
            # Workers finish the job they are at, so that nothing is written after the error is reported.
            pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
            raise


@contextmanager
def explain_killed_workers() -> Iterator[None]:
    """Turn the death of a worker, which ends the whole pool, into an error that says what to do."""
    try:
        yield
    except BrokenProcessPool:
        raise RunError(
            "A worker process was killed, perhaps because memory ran out. Run the same command again, with "
            "fewer --workers if memory is short."
        ) from None


def _start(start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    # Ctrl-C reaches every process of a terminal; only the one that started the workers handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # as the parent blocks it at the start
    threading.Thread(target=_follow_parent, daemon=True).start()
    one_thread()
    if start is not None:
        start(*arguments)


def _follow_parent() -> None:
    """End this process when its parent ends, even if killed: an orphan would wait forever and hold memory."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
