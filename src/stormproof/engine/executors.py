"""Where chunks are run: this process, a process pool, Ray, Slurm. Each takes chunks and yields their results.

An executor owns its processes and nothing else: chunks, and how they are run, are the same for all. Ray and
submitit are imported when a run asks for them. An engine is a function in `ENGINES` that makes an executor;
its keyword-only parameters are the options of `--engine`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import Any, ClassVar, Protocol, cast

from stormproof.core import extensions
from stormproof.core.errors import InvalidOption, RunError, StormproofError
from stormproof.core.files import make_folder
from stormproof.core.loading import framework
from stormproof.core.private import without_secrets
from stormproof.core.processes import worker_count, worker_pool
from stormproof.core.registry import Registry
from stormproof.core.spec import Spec
from stormproof.engine.cells import end_feeding, look_at_old_objects
from stormproof.engine.chunk import NEVER_OPENED, after_death, do_chunk_safely, do_in_steps
from stormproof.engine.config import RunConfig
from stormproof.engine.liveness import INTERVAL, Listener, end_worker, mark_as_worker
from stormproof.engine.work import Attempt, ChunkResult
from stormproof.results.store.parts import part_path

SLURM_FOLDER = "slurm"  # submitit's scripts and logs, in the run folder
_PATIENCE = 5.0  # seconds to wait for a Ray cluster to accept a connection
_POLL = 1.0  # seconds between two looks at the jobs of Slurm


class Executor(Protocol):
    """Runs chunks. `on_this_machine`: whether its processes see the devices that this process sees."""

    @property
    def on_this_machine(self) -> bool: ...

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        """Run chunks, of one run or of several, taking each when a worker is free for it; closing the
        iterator stops the work and loses at most the chunks in progress."""


ENGINES: Registry[Callable[..., Executor]] = Registry(extensions.ENGINES)


@dataclass(frozen=True, slots=True)
class Local:
    """In this process, one chunk after the other."""

    on_this_machine: ClassVar[bool] = True

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        with ExitStack() as ending, ThreadPoolExecutor(1) as thread:
            ending.callback(end_feeding)
            ending.callback(look_at_old_objects)
            last: Future[ChunkResult | None] | None = None  # it is completed while the model does the next
            for attempt in attempts:
                steps = do_in_steps(attempt)
                now = next(steps) if attempt.work.config.device is not None else do_chunk_safely(attempt)
                if last is not None:
                    yield cast(ChunkResult, last.result())
                last = thread.submit(next, steps) if now is None else None
                if now is not None:
                    yield now
            if last is not None:
                yield cast(ChunkResult, last.result())


@ENGINES.declare("local")
def use_this_process(config: RunConfig, chunks: int) -> Local:
    """This process alone."""
    return Local()


@ENGINES.declare("feed")
def use_feeders(config: RunConfig, chunks: int) -> Local:
    """This process, with the only copy of the model; `--workers` others read and corrupt its images."""
    if config.device is not None:
        raise InvalidOption("--engine feed corrupts on the CPU: leave --device out, or the engine.")
    return Local()


def executor_for(config: RunConfig, chunks: int) -> Executor:
    """The executor that a run asks for, with at most `chunks` workers."""
    spec = Spec.of_options(config.engine)
    make = ENGINES.find(spec.kind)
    return make(config, chunks, **spec.arguments(make)[0])


def _workers(config: RunConfig) -> int:
    # Each worker has its own copy of the model on the device, so there is one unless the user asks for more.
    return worker_count(config.workers or (1 if config.device is not None else 0))


@dataclass(frozen=True, slots=True)
class Pool:
    """Worker processes on this machine; one that dies loses only its own chunk.

    Each is a pool of one process, because the standard pool breaks as a whole when one of its processes dies.
    """

    workers: int
    on_this_machine: ClassVar[bool] = True

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        fresh, listener = iter(attempts), Listener()
        again: deque[Attempt] = deque()
        idle = [worker_pool(1, mark_as_worker) for _ in range(self.workers)]
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
                        idle.append(worker_pool(1, mark_as_worker))
                        outcome = after_death(attempt, "the worker died")
                        if isinstance(outcome, Attempt):
                            again.append(outcome)
                            continue
                        result = outcome
                    else:
                        idle.append(pool)
                    yield result
        finally:
            for pool in (*idle, *(pool for pool, _ in busy.values())):
                for process in list((pool._processes or {}).values()):
                    process.kill()  # the chunk in progress is lost by design; waiting for it helps nobody
                pool.shutdown(wait=True, cancel_futures=True)


@ENGINES.declare("pool")
def use_processes(config: RunConfig, chunks: int) -> Pool:
    """Worker processes on this machine."""
    return Pool(max(1, min(_workers(config), chunks)))


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start a process that never receives Ctrl-C, which the planning process handles.

    A Ctrl-C that comes meanwhile is held back, not lost: it is delivered at the end.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # before the signal is blocked: starting it would unblock it
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # new processes inherit this, not the handler
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@dataclass(frozen=True, slots=True)
class RayCluster:
    """Workers on a cluster that keep their copy of the model; one that dies, or whose node is lost, loses
    only its own chunk.

    `address` is passed to ray.init; without one, and without RAY_ADDRESS, Ray starts on this machine. `gpus`
    is per worker. There are at most `workers`, and no more than the cluster has room for.
    """

    address: str | None = None
    gpus: float = 0.0
    workers: int = 1
    on_this_machine: ClassVar[bool] = False

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        ray = framework("ray", extra="ray")
        started_here = not ray.is_initialized()
        if started_here:
            _connect_ray(ray, self.address)
        kind = ray.remote(num_cpus=1, num_gpus=self.gpus)(_RayWorker)
        fresh, listener = iter(attempts), Listener()
        again: deque[Attempt] = deque()
        idle: list[Any] = []
        # A worker is given a chunk only once it answers: the cluster may have lost the room for it.
        starting = {one.start.remote(): one for one in (kind.remote() for _ in range(self._room(ray)))}
        busy: dict[Any, tuple[Any, Attempt]] = {}
        never_started = 0  # of the last workers
        try:
            while True:
                while idle and (attempt := again.popleft() if again else next(fresh, None)):
                    worker = idle.pop()
                    busy[worker.do.remote(attempt)] = worker, attempt
                if idle and not busy:
                    return
                done, _ = ray.wait([*starting, *busy], num_returns=1, timeout=INTERVAL)
                for attempt in listener.silent(attempt for _, attempt in busy.values()):
                    end_worker(attempt)
                for reference in done:
                    mine = busy.pop(reference, None)
                    worker = starting.pop(reference) if mine is None else mine[0]
                    result: Attempt | ChunkResult | None
                    try:
                        result = _collect(ray, reference)
                    except ray.exceptions.RayError as error:
                        never_started += mine is None and not busy  # those at work can end the run
                        if never_started == NEVER_OPENED:
                            raise RunError(
                                f"{NEVER_OPENED} Ray workers in a row did not start: {_last_line(error)}. "
                                "Give every node the same Python packages."
                            ) from error
                        another = kind.remote()
                        starting[another.start.remote()] = another
                        cause = f"the Ray worker died ({type(error).__name__})"
                        result = mine and after_death(mine[1], cause)
                    else:
                        never_started = 0
                        idle.append(worker)
                    if isinstance(result, Attempt):
                        again.append(result)
                    elif result is not None:
                        yield result
        finally:
            for worker in (*idle, *starting.values(), *(worker for worker, _ in busy.values())):
                ray.kill(worker)
            if started_here:
                ray.shutdown()

    def _room(self, ray: Any) -> int:
        has = ray.cluster_resources()
        room = has.get("GPU", 0) / self.gpus if self.gpus else has.get("CPU", 1)
        return max(1, min(self.workers or int(room), int(room)))


@ENGINES.declare("ray")
def use_ray(config: RunConfig, chunks: int, *, address: str | None = None, gpus: float = 0.0) -> RayCluster:
    """A Ray cluster at `address`, or Ray on this machine; `gpus` is per worker."""
    if gpus < 0:
        raise InvalidOption(f"--engine ray,gpus={gpus:g}: it must be at least 0.")
    if (config.device or "").startswith("cuda") and not gpus:
        raise InvalidOption("--device cuda with Ray requires --engine ray,gpus=1, or workers see no GPU.")
    return RayCluster(address, gpus, min(config.workers or chunks, chunks))


class _RayWorker:
    """An actor: its process stays, and with it the model."""

    def start(self) -> None:
        mark_as_worker()

    def do(self, attempt: Attempt) -> ChunkResult:
        return do_chunk_safely(attempt)


def _collect(ray: Any, reference: Any) -> ChunkResult | None:
    try:
        result: ChunkResult | None = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, StormproofError) else RunError(str(error)) from None
    if result is not None and result.done and not part_path(result.out, result.chunk).exists():
        raise RunError(
            f"A Ray worker wrote part {result.chunk}, but it is not in {result.out} here; "
            "--out must be a folder that all nodes share."
        )
    return result


def _last_line(error: Exception) -> str:
    """What an error says at the end of a traceback from another process."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1].rstrip(".")


def _connect_ray(ray: Any, address: str | None) -> None:
    # Without an address Ray would look for this machine's last cluster, and wait long for a dead one.
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        if host and port.isdecimal():  # where nothing listens, Ray itself would retry for minutes
            socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
        options = {"include_dashboard": False} if address == "local" else {}
        ray.init(address=address, log_to_driver=False, **options)
    except Exception as error:  # Ray raises plain ones when a node starts too slowly
        if address == "local":
            raise RunError(f"Ray did not start: {error}; try again, or use --engine pool.") from error
        raise RunError(
            f"No Ray cluster at {address!r}: {error}; "
            "start one with 'ray start --head', or leave the address out."
        ) from error


@dataclass(frozen=True, slots=True)
class Slurm:
    """A job array through submitit, in which each job takes a share of the chunks.

    At most `jobs` run at a time; `options` are submitit's, such as `slurm_partition`. `cluster` is where
    submitit sends jobs: slurm, or local for processes on this machine.
    """

    jobs: int
    options: Mapping[str, str | int] = field(default_factory=dict)
    cluster: str = "slurm"
    on_this_machine: ClassVar[bool] = False

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        todo = list(attempts)
        if not todo:
            return
        shares = [todo[start :: self.jobs] for start in range(min(self.jobs, len(todo)))]
        submitit = framework("submitit", extra="slurm")
        folder = make_folder(todo[0].work.out / SLURM_FOLDER)
        try:
            executor = submitit.AutoExecutor(folder=folder, cluster=self.cluster)
            executor.update_parameters(name="stormproof", slurm_array_parallelism=self.jobs, **self.options)
            with executor.batch():
                jobs = [executor.submit(_do_share, share) for share in shares]
        except Exception as error:  # submitit's own, or sbatch's about the options
            raise RunError(f"Slurm rejected the jobs: {' '.join(str(error).split())}.") from error
        try:
            yield from _collect_jobs(jobs)
        finally:
            for job in jobs:
                if not job.done():
                    job.cancel(check=False)


@ENGINES.declare("slurm")
def use_slurm(config: RunConfig, chunks: int, *, cluster: str = "slurm", **options: str) -> Slurm:
    """Jobs through submitit; `cluster=local` runs them on this machine, all other options are submitit's."""
    if without_secrets(config.model) != config.model:
        raise InvalidOption(
            "--model has a query or a user part, which --engine slurm would store in the run folder: write "
            "${NAME} in it for an environment variable of the jobs."
        )
    numbers = {name: int(text) if text.isdecimal() else text for name, text in options.items()}
    return Slurm(_workers(config), numbers, cluster)


def _do_share(attempts: list[Attempt]) -> list[ChunkResult]:
    """A job's work, in a separate process: a model that dies or hangs costs its cell, not the job."""
    return list(Pool(1).run(attempts))


def _collect_jobs(jobs: list[Any]) -> Iterator[ChunkResult]:
    """Results as jobs end. The chunks of a lost job stay undone; the next run does them."""
    waiting, lost = list(jobs), []
    while waiting:
        ended = [job for job in waiting if job.done()]
        for job in ended:
            waiting.remove(job)
            error = job.exception()
            if error is None:
                yield from job.result()
            else:
                lost.append(f"job {job.job_id}: {_last_line(error)} (log {job.paths.stderr})")
        if waiting and not ended:
            time.sleep(_POLL)
    if lost:
        raise RunError(f"{len(lost)} of {len(jobs)} jobs were lost: {'; '.join(lost)}.")
