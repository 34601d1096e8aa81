"""A run from plan to parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from stormproof.core.errors import RunError
from stormproof.core.files import make_folder
from stormproof.core.processes import worker_count
from stormproof.engine.config import Engine, RunConfig
from stormproof.engine.executors import Executor
from stormproof.engine.in_hand import IN_HAND
from stormproof.engine.pair import open_pair
from stormproof.engine.plan import Plan, Survey, make_plan, survey
from stormproof.engine.work import Attempt, ChunkResult, Failure, Times
from stormproof.results.run import Run
from stormproof.results.store.integrity import check_images
from stormproof.results.store.lock import sole_writer
from stormproof.results.store.parts import part_paths
from stormproof.results.store.record import RunRecord, claim, claiming, may_claim
from stormproof.results.store.settings import SETTINGS, covering, shard_of, write_settings

_ENOUGH = 3  # images on which nothing works before a run is given up
_UNREADABLE = 10  # the same for images that cannot even be read: one broken file says nothing about the rest


class Watch(Protocol):
    """Told what happens during a run: progress on a terminal, a log, an experiment tracker."""

    def started(self, record: RunRecord, survey: Survey) -> None: ...
    def advanced(self, result: ChunkResult) -> None: ...
    def ended(self, summary: Summary) -> None: ...


@dataclass(slots=True)
class Summary:
    """What a run did: cells by condition, failures, time by what it was spent on (over all workers)."""

    survey: Survey
    chunks: set[int] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    times: Times = field(default_factory=Times)

    def add(self, result: ChunkResult) -> None:
        self.chunks.add(result.chunk)
        self.done.update(result.done)
        self.failures += result.failures
        self.times += result.times

    @property
    def unreadable(self) -> dict[int, str]:
        """Images that could not be read, by index: they are left out of every condition alike."""
        return {failure.index: failure.image for failure in self.failures if failure.kind == "image"}

    @property
    def failed(self) -> list[Failure]:
        """Cells that failed though their image was there."""
        return [failure for failure in self.failures if failure.kind != "image"]

    @property
    def complete(self) -> bool:
        """Whether nothing of this shard is left."""
        return not self.failures and self.chunks >= {*self.survey.chunks}


def run(config: RunConfig, watches: Sequence[Watch] = ()) -> Summary:
    """Plan and execute a run; the same call continues one that was stopped."""
    plan = make_plan(config)
    return execute(plan, executor_for(config, len(plan.chunks)), watches)


def execute(plan: Plan, executor: Executor, watches: Sequence[Watch] = ()) -> Summary:
    """Do what is left of a plan."""
    with started(plan, watches) as task:
        attempts = (Attempt(plan.work, chunk) for chunk in task.summary.survey.chunks)
        with closing(cast(Generator[ChunkResult], executor.run(attempts))) as results:
            for result in results:
                task.take(result)
    return task.summary


@dataclass(slots=True)
class Task:
    """A run under way: what it has done so far, and who is told."""

    plan: Plan
    summary: Summary
    watches: Sequence[Watch]

    def take(self, result: ChunkResult) -> None:
        """Count a result; raises if the run cannot go on, or never begins to work."""
        if result.error is not None:
            raise result.error
        self.summary.add(result)
        for watch in self.watches:
            watch.advanced(result)
        _require_some_success(self.summary)


@contextmanager
def started(plan: Plan, watches: Sequence[Watch] = ()) -> Iterator[Task]:
    """Claim the folder of a plan and hold it while the block runs."""
    out = plan.work.out
    held = may_claim(out, plan.record)
    if held is not None and part_paths(out):
        check_images(Run(out, data=open_pair(plan.work.model, plan.work.enhance, plan.work.data).dataset))
    make_folder(out)
    with sole_writer(out, plan.config.shard):
        with claiming(out):  # not before: a second writer must not add to what the first runs
            record = claim(out, plan.record)
            make_folder(out / IN_HAND)
            write_settings(out / SETTINGS, _settings(plan, record))
        left = survey(plan)
        summary = Summary(left)
        begun: list[Watch] = []
        try:
            for watch in watches:
                watch.started(record, left)
                begun.append(watch)
            yield Task(plan, summary, watches)
        finally:
            for watch in begun:
                watch.ended(summary)


def _settings(plan: Plan, record: RunRecord) -> dict[str, Any]:
    """The settings that repeat the folder, with whatever was put there before."""
    config = plan.config
    mine = config.model_dump(mode="json", exclude_none=True)
    shard = shard_of(plan.work.out, config.shard)
    return covering(mine, plan.record, record, shard=shard, out=config.out)


def executor_for(config: RunConfig, chunks: int) -> Executor:
    """The engine a run asked for, no larger than so many chunks need; frameworks are imported when named."""
    # Each worker has the model on the device: one, unless asked for more.
    workers = worker_count(config.workers or (1 if config.device is not None else 0))
    if config.engine is Engine.ray:
        from stormproof.engine.executors.cluster import RayCluster

        return RayCluster(config.address, config.gpus)
    if config.engine is Engine.slurm:
        from stormproof.engine.executors.slurm import Slurm

        options = dict(config.slurm)
        return Slurm(workers, options, str(options.pop("cluster", "slurm")))
    if config.engine is Engine.local:
        from stormproof.engine.executors.local import Local

        return Local()
    from stormproof.engine.executors.pool import Pool

    return Pool(max(1, min(workers, chunks)))


def _require_some_success(summary: Summary) -> None:
    """Stop a run that never begins to work: everything fails on the first images."""
    survey = summary.survey
    if survey.cells_left < survey.cells or summary.done or not summary.failures:
        return
    failed = {failure.index for failure in summary.failures}
    tried = {failure.index for failure in summary.failures if failure.kind != "image"}
    if len(tried) >= _ENOUGH or len(failed) >= min(_UNREADABLE, survey.images_left):
        raise RunError(
            f"All {len(summary.failures)} cells of the first {len(failed)} images failed, so the run "
            f"stops here. The first: {summary.failures[0]}"
        )
