"""A process per worker on this machine; one that dies takes only its own chunk with it."""

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
from stormproof.engine.chunk import do_chunk_safely
from stormproof.engine.guard import may_be_ended
from stormproof.engine.heartbeat import INTERVAL, Listener, end_worker
from stormproof.engine.retry import after_death
from stormproof.engine.work import Attempt, ChunkResult


@dataclass(frozen=True, slots=True)
class Pool:
    """`workers` single-process pools: the standard pool breaks as a whole when one process dies."""

    workers: int

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        fresh, listener = iter(attempts), Listener()
        again: deque[Attempt] = deque()
        idle = [_seat() for _ in range(self.workers)]
        busy: dict[Future[ChunkResult], tuple[ProcessPoolExecutor, Attempt]] = {}
        try:
            while True:
                while idle and (attempt := again.popleft() if again else next(fresh, None)):
                    seat = idle.pop()
                    with _deaf():
                        busy[seat.submit(do_chunk_safely, attempt)] = seat, attempt
                if not busy:
                    return
                ended = wait(busy, timeout=INTERVAL, return_when=FIRST_COMPLETED).done
                for attempt in listener.silent(attempt for _, attempt in busy.values()):
                    end_worker(attempt)  # its seat breaks, as if it had died by itself
                for future in ended:
                    seat, attempt = busy.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        seat.shutdown(wait=False)
                        idle.append(_seat())
                        outcome = after_death(attempt, "the worker died")
                        if isinstance(outcome, Attempt):
                            again.append(outcome)
                            continue
                        result = outcome
                    else:
                        idle.append(seat)
                    yield result
        finally:
            _leave([*idle, *(seat for seat, _ in busy.values())])


def _seat() -> ProcessPoolExecutor:
    return worker_pool(1, may_be_ended)


@contextmanager
def _deaf() -> Iterator[None]:
    """Start a process that never hears Ctrl-C, which is the planner's to handle."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(seats: list[ProcessPoolExecutor]) -> None:
    for seat in seats:
        for process in list((seat._processes or {}).values()):
            process.kill()  # whatever is in hand is lost by design; waiting for it helps nobody
        seat.shutdown(wait=True, cancel_futures=True)
