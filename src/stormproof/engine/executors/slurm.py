"""Slurm through submitit: a job array in which each job takes a share of the chunks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stormproof.core.errors import RunError
from stormproof.core.files import make_folder
from stormproof.core.loading import framework
from stormproof.engine.executors.pool import Pool
from stormproof.engine.work import Attempt, ChunkResult, Work

FOLDER = "slurm"  # submitit's scripts and logs, in the run folder
_POLL = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Slurm:
    """At most `jobs` run at a time; `options` are submitit's, such as `slurm_partition`.

    `cluster` is where submitit sends jobs: slurm, or local for processes on this machine.
    """

    jobs: int
    options: Mapping[str, str | int] = field(default_factory=dict)
    cluster: str = "slurm"

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        todo = list(attempts)
        if not todo:
            return
        shares = [todo[start :: self.jobs] for start in range(min(self.jobs, len(todo)))]
        executor = self._executor(todo[0].work)
        try:
            with executor.batch():
                jobs = [executor.submit(_do_share, share) for share in shares]
        except Exception as error:  # submitit's own, or sbatch's about the options
            raise RunError(f"Slurm rejected the jobs: {' '.join(str(error).split())}.") from error
        try:
            yield from _collect(jobs)
        finally:
            for job in jobs:
                if not job.done():
                    job.cancel(check=False)

    def _executor(self, work: Work) -> Any:
        submitit = framework("submitit", extra="slurm")
        folder = make_folder(work.out / FOLDER)
        try:
            executor = submitit.AutoExecutor(folder=folder, cluster=self.cluster)
            executor.update_parameters(name="stormproof", slurm_array_parallelism=self.jobs, **self.options)
        except (RuntimeError, ValueError, TypeError, AssertionError, NameError) as error:
            raise RunError(f"Slurm rejected the jobs: {error}.") from error
        return executor


def _do_share(attempts: list[Attempt]) -> list[ChunkResult]:
    """A job's work, in a separate process: a model that dies or hangs costs its cell, not the job."""
    return list(Pool(1).run(attempts))


def _collect(jobs: list[Any]) -> Iterator[ChunkResult]:
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
                reason = str(error).strip().splitlines()[-1]
                lost.append(f"job {job.job_id}: {reason} (log {job.paths.stderr})")
        if waiting and not ended:
            time.sleep(_POLL)
    if lost:
        raise RunError(f"{len(lost)} of {len(jobs)} jobs were lost: {'; '.join(lost)}.")
