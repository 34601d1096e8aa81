"""Ray: chunks as tasks on a cluster. Ray restarts a task when its worker or node is lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from stormproof.core.errors import RunError, StormproofError
from stormproof.core.loading import framework
from stormproof.engine.chunk import after_death, do_chunk_safely
from stormproof.engine.crash_notes import INTERVAL, Listener, end_worker
from stormproof.engine.guard import mark_as_worker
from stormproof.engine.work import Attempt, ChunkResult
from stormproof.results.store.parts import part_path

RETRIES = 3  # by Ray itself, on another node if necessary
_PATIENCE = 5.0  # seconds to wait for a cluster to accept a connection


@dataclass(frozen=True, slots=True)
class RayCluster:
    """`address` is passed to ray.init; without one, and without RAY_ADDRESS, Ray starts on this machine.

    `gpus` is per task.
    """

    address: str | None = None
    gpus: float = 0.0

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        ray = framework("ray", extra="ray")
        started_here = not ray.is_initialized()
        if started_here:
            _connect(ray, self.address)
        task = ray.remote(num_cpus=1, num_gpus=self.gpus, max_retries=RETRIES)(_task)
        # Twice as many tasks as can run at once are queued; more would only fill Ray's memory.
        ahead = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        fresh, listener = iter(attempts), Listener()
        busy: dict[Any, Attempt] = {task.remote(attempt): attempt for attempt in islice(fresh, ahead)}
        try:
            while busy:
                done, _ = ray.wait(list(busy), num_returns=1, timeout=INTERVAL)
                for attempt in listener.silent(busy.values()):
                    end_worker(attempt)
                for reference in done:
                    outcome = _collect(ray, reference, busy.pop(reference))
                    if isinstance(outcome, Attempt):
                        busy[task.remote(outcome)] = outcome
                        continue
                    busy |= {task.remote(attempt): attempt for attempt in islice(fresh, 1)}
                    yield outcome
        finally:
            for reference in busy:
                ray.cancel(reference, force=True)
            if started_here:
                ray.shutdown()


def _task(attempt: Attempt) -> ChunkResult:
    mark_as_worker()
    return do_chunk_safely(attempt)


def _collect(ray: Any, reference: Any, attempt: Attempt) -> ChunkResult | Attempt:
    try:
        result: ChunkResult = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, StormproofError) else RunError(str(error)) from None
    except ray.exceptions.RayError as error:
        # Ray has already tried other workers, so this is not the first death.
        again = replace(attempt, deaths=max(1, attempt.deaths))
        return after_death(again, f"the Ray worker died ({type(error).__name__})")
    if result.done and not part_path(result.out, result.chunk).exists():
        raise RunError(
            f"A Ray worker wrote part {result.chunk}, but it is not in {result.out} here; "
            "--out must be a folder that all nodes share."
        )
    return result


def _connect(ray: Any, address: str | None) -> None:
    # Without an address Ray would look for this machine's last cluster, and wait long for a dead one.
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    try:
        if address != "local":
            _require_listener(address)
        options = {"include_dashboard": False} if address == "local" else {}
        ray.init(address=address, log_to_driver=False, **options)
    except Exception as error:  # Ray raises plain ones when a node starts too slowly
        if address == "local":
            raise RunError(f"Ray did not start: {error}; try again, or use --engine pool.") from error
        raise RunError(
            f"No Ray cluster at {address!r}: {error}; "
            "start one with 'ray start --head', or leave --address out."
        ) from error


def _require_listener(address: str) -> None:
    """Fail at once where nothing listens: Ray itself would retry for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
