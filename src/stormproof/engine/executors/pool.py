"""One process per worker on this machine; a worker that dies loses only its own chunk."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

from stormproof.core.processes import worker_pool
from stormproof.engine.chunk import after_death, do_chunk_safely
from stormproof.engine.crash_notes import INTERVAL, Listener, end_worker
from stormproof.engine.guard import mark_as_worker
from stormproof.engine.work import Attempt, ChunkResult


@dataclass(frozen=True, slots=True)
class Pool:
    """`workers` single-process pools: the standard pool breaks as a whole when one process dies."""

    workers: int

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        fresh, listener = iter(attempts), Listener()
        again: deque[Attempt] = deque()
        idle = [_one_worker() for _ in range(self.workers)]
        busy: dict[Future[ChunkResult], tuple[ProcessPoolExecutor, Attempt]] = {}
        try:
            while True:
                while idle and (attempt := again.popleft() if again else next(fresh, None)):
                    pool = idle.pop()
                    with _ignoring_interrupts():
                        busy[pool.submit(do_chunk_safely, attempt)] = pool, attempt
                if not busy:
                    return
                ended = wait(busy, timeout=INTERVAL, return_when=FIRST_COMPLETED).done
                for attempt in listener.silent(attempt for _, attempt in busy.values()):
                    end_worker(attempt)  # its pool breaks, as if the worker had died by itself
                for future in ended:
                    pool, attempt = busy.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        pool.shutdown(wait=False)
                        idle.append(_one_worker())
                        outcome = after_death(attempt, "the worker died")
                        if isinstance(outcome, Attempt):
                            again.append(outcome)
                            continue
                        result = outcome
                    else:
                        idle.append(pool)
                    yield result
        finally:
            _shut_down([*idle, *(pool for pool, _ in busy.values())])


def _one_worker() -> ProcessPoolExecutor:
    return worker_pool(1, mark_as_worker)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start a process that never receives Ctrl-C, which the planning process handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _shut_down(pools: list[ProcessPoolExecutor]) -> None:
    for pool in pools:
        for process in list((pool._processes or {}).values()):
            process.kill()  # the chunk in progress is lost by design; waiting for it helps nobody
        pool.shutdown(wait=True, cancel_futures=True)
