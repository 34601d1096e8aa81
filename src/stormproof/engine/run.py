"""A run from plan to parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from stormproof.engine.config import Engine, RunConfig
from stormproof.engine.executors import Executor
from stormproof.engine.in_hand import IN_HAND
from stormproof.engine.plan import Plan, Survey, make_plan, survey
from stormproof.engine.work import ChunkResult, Failure, Times
from stormproof.errors import RunError
from stormproof.files import make_folder
from stormproof.processes import worker_count
from stormproof.store.lock import sole_writer
from stormproof.store.record import RunRecord, claim, may_claim
from stormproof.store.settings import SETTINGS, covering, shard_of, write_settings

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
    def complete(self) -> bool:
        """Whether nothing of this shard is left."""
        return not self.failures and self.chunks >= {*self.survey.chunks}


def run(config: RunConfig, watches: Sequence[Watch] = ()) -> Summary:
    """Plan and execute a run; the same call continues one that was stopped."""
    plan = make_plan(config)
    return execute(plan, executor_for(config, plan), watches)


def execute(plan: Plan, executor: Executor, watches: Sequence[Watch] = ()) -> Summary:
    """Do what is left of a plan."""
    out = plan.work.out
    may_claim(out, plan.record)
    make_folder(out)
    with sole_writer(out, plan.config.shard):
        record = claim(out, plan.record)  # not before: a second writer must not add to what the first runs
        make_folder(out / IN_HAND)
        write_settings(out / SETTINGS, _settings(plan, record))
        left = survey(plan)
        summary = Summary(left)
        begun: list[Watch] = []
        try:
            for watch in watches:
                watch.started(record, left)
                begun.append(watch)
            with closing(cast(Generator[ChunkResult], executor.run(plan.work, left.chunks))) as results:
                for result in _checked(results, summary):
                    for watch in watches:
                        watch.advanced(result)
        finally:
            for watch in begun:
                watch.ended(summary)
    return summary


def _settings(plan: Plan, record: RunRecord) -> dict[str, Any]:
    """The settings that repeat the folder, with whatever was put there before."""
    config = plan.config
    mine = config.model_dump(mode="json", exclude_none=True)
    shard = shard_of(plan.work.out, config.shard)
    return covering(mine, plan.record, record, shard=shard, out=config.out)


def executor_for(config: RunConfig, plan: Plan) -> Executor:
    """The engine a run asked for; frameworks are imported only when named."""
    workers = worker_count(config.workers)
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

    return Pool(max(1, min(workers, len(plan.chunks))))


def _checked(results: Iterator[ChunkResult], summary: Summary) -> Iterator[ChunkResult]:
    """Pass results on, and stop a run that never begins to work: everything fails on the first images."""
    begun = summary.survey.cells_left < summary.survey.cells
    for result in results:
        summary.add(result)
        yield result
        begun = begun or bool(result.done)
        if begun:
            continue
        failed = {failure.index for failure in summary.failures}
        tried = {failure.index for failure in summary.failures if failure.kind != "image"}
        if len(tried) >= _ENOUGH or len(failed) >= min(_UNREADABLE, summary.survey.images_left):
            raise RunError(
                f"All {len(summary.failures)} cells of the first {len(failed)} images failed, so the run "
                f"stops here. The first: {summary.failures[0]}"
            )
