"""Engines behind one small interface: take chunks, yield their results in any order.

An executor owns its processes and nothing else: chunks, and how they are run, are the same for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from stormproof.core.processes import worker_count
from stormproof.engine.chunk import do_chunk_safely
from stormproof.engine.config import Engine, RunConfig
from stormproof.engine.work import Attempt, ChunkResult


class Executor(Protocol):
    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        """Run chunks, of one run or of several, taking each when a worker is free for it; closing the
        iterator stops the work and loses at most the chunks in progress."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """In this process, one chunk after the other."""

    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        for attempt in attempts:
            yield do_chunk_safely(attempt)


def executor_for(config: RunConfig, chunks: int) -> Executor:
    """The executor that a run asks for, with at most `chunks` workers; frameworks are imported on demand."""
    # Each worker has its own copy of the model on the device, so there is one unless the user asks for more.
    workers = worker_count(config.workers or (1 if config.device is not None else 0))
    if config.engine is Engine.ray:
        from stormproof.engine.executors.ray import RayCluster

        return RayCluster(config.address, config.gpus)
    if config.engine is Engine.slurm:
        from stormproof.engine.executors.slurm import Slurm

        options = dict(config.slurm)
        return Slurm(workers, options, str(options.pop("cluster", "slurm")))
    if config.engine is Engine.local:
        return Local()
    from stormproof.engine.executors.pool import Pool

    return Pool(max(1, min(workers, chunks)))
