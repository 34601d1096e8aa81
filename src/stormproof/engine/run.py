"""A run from plan to parts: all of the grid, or as much of it as a precision requires."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from stormproof.core.errors import RunError, counted
from stormproof.core.files import make_folder, sweep, write_text
from stormproof.datasets.dataset import Dataset
from stormproof.engine.config import RunConfig
from stormproof.engine.executors import Executor, executor_for
from stormproof.engine.failures import Failure
from stormproof.engine.liveness import NOTES, forget_beats
from stormproof.engine.pair import open_pair
from stormproof.engine.plan import Plan, Survey, make_plan, survey
from stormproof.engine.work import Attempt, ChunkResult, Times
from stormproof.results.run import Run
from stormproof.results.store.integrity import check_images
from stormproof.results.store.lock import sole_writer
from stormproof.results.store.parts import SETTINGS, part_paths
from stormproof.results.store.record import (
    RECORD,
    RunRecord,
    claim,
    claiming,
    covering,
    may_claim,
    read_record,
    shard_of,
    write_settings,
)

if TYPE_CHECKING:
    from stormproof.results.estimate import Estimate

_ENOUGH = 3  # images on which nothing works before a run is stopped
_UNREADABLE = 10  # the same for images that cannot be read: one broken file says nothing about the rest
# A condition of an estimate starts with this many images, or this share of them: with fewer, intervals cover
# too little.
_FEWEST, _SHARE = 15, 0.02


class Observer(Protocol):
    """Follows a run: a progress display or an experiment tracker."""

    def started(self, record: RunRecord, survey: Survey) -> None: ...
    def advanced(self, result: ChunkResult) -> None: ...
    def ended(self, summary: Summary) -> None: ...


@dataclass(slots=True)
class Summary:
    """What a run did: cells by condition, failures, time by activity (summed over workers)."""

    survey: Survey
    chunks: set[int] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    times: Times = field(default_factory=Times)

    @property
    def unreadable(self) -> dict[int, str]:
        """The images that could not be read, by index: they are left out of every condition."""
        return {failure.index: failure.image for failure in self.failures if failure.kind == "image"}

    @property
    def failed(self) -> list[Failure]:
        """The cells that failed although their image could be read."""
        return [failure for failure in self.failures if failure.kind != "image"]

    @property
    def retry_may_help(self) -> bool:
        """Whether workers died or hung: they may have lacked memory or time."""
        return any(failure.kind in ("death", "timeout") for failure in self.failures)

    @property
    def complete(self) -> bool:
        """Whether nothing of this shard is left."""
        return not self.failures and self.chunks >= {*self.survey.chunks}


def run(config: RunConfig, watches: Sequence[Observer] = ()) -> Summary:
    """Plan and execute a run; the same call continues one that was stopped."""
    plan = make_plan(config)
    return execute(plan, executor_for(config, len(plan.chunks)), watches)


def execute(plan: Plan, executor: Executor, watches: Sequence[Observer] = ()) -> Summary:
    """Do what is left of a plan."""
    with running(plan, watches) as task:
        attempts = (Attempt(plan.work, chunk) for chunk in task.summary.survey.chunks)
        with closing(cast(Generator[ChunkResult], executor.run(attempts))) as results:
            for result in results:
                task.take(result)
    return task.summary


def run_to_precision(
    config: RunConfig, do: Callable[[Plan], Summary], *, data: Dataset | None = None
) -> tuple[Summary, Estimate | None]:
    """Run until the interval of mPC is within ± the precision, or the grid is full.

    `do` executes a plan; `data` is the dataset, if no spec can open it again. There is no estimate if cells
    failed or the grid became full.
    """
    from stormproof.results.estimate import estimate_run, next_share  # loads every metric, and SciPy

    out = Path(config.out)
    size = (read_record(out).quota if (out / RECORD).exists() else None) or 0
    times, done = Times(), Counter[str]()
    while True:
        plan = make_plan(config, quota=size or None)
        images = plan.record.images
        if not size:
            size = first_share(images)
            continue
        summary = do(plan)
        times.add(summary.times)
        done.update(summary.done)
        _write_profile(config, times, done)  # of all rounds
        if summary.failed or size >= images:
            return summary, None
        estimate = estimate_run(Run(plan.work.out, data=data))
        if 100 * estimate.mpc.reach <= config.precision:
            return summary, estimate
        size = next_share(estimate, config.precision / 100)


def first_share(images: int) -> int:
    """How many images each condition starts with."""
    return min(images, max(_FEWEST, round(_SHARE * images)))


@dataclass(slots=True)
class RunInProgress:
    """A run in progress: what it has done so far, and who follows it."""

    plan: Plan
    summary: Summary
    watches: Sequence[Observer]

    def take(self, result: ChunkResult) -> None:
        """Count a result; raises if the run cannot continue, or if nothing in it works."""
        if result.error is not None:
            raise result.error
        self.summary.chunks.add(result.chunk)
        self.summary.done.update(result.done)
        self.summary.failures += result.failures
        self.summary.times.add(result.times)
        for watch in self.watches:
            watch.advanced(result)
        _require_some_success(self.summary)


@contextmanager
def running(plan: Plan, watches: Sequence[Observer] = ()) -> Iterator[RunInProgress]:
    """Claim the folder of a plan and lock it while the block runs."""
    out, config = plan.work.out, plan.config
    held = may_claim(out, plan.record)
    if held is not None and part_paths(out):
        pair = open_pair(config.model, config.enhance, plan.record.dataset.spec)
        check_images(Run(out, data=pair.dataset))
    make_folder(out)
    with sole_writer(out, config.shard):
        with claiming(out):  # not before: a second writer must not change what the first one runs
            for name in (RECORD, SETTINGS):
                sweep(out / name)
            record = claim(out, plan.record)
            make_folder(out / NOTES)
            forget_beats(out, plan.chunks)
            mine, shard = config.model_dump(mode="json", exclude_none=True), shard_of(out, config.shard)
            settings = covering(mine, plan.record, record, shard=shard, out=config.out)
            write_settings(out / SETTINGS, settings)
        left = survey(plan)
        summary = Summary(left)
        started: list[Observer] = []
        try:
            for watch in watches:
                watch.started(record, left)
                started.append(watch)
            yield RunInProgress(plan, summary, watches)
        finally:
            for watch in started:
                watch.ended(summary)
        _write_profile(config, summary.times, summary.done)


def _write_profile(config: RunConfig, times: Times, done: Counter[str]) -> None:
    if config.profile is not None and done:
        write_text(Path(config.profile), times.profile(done))


def _require_some_success(summary: Summary) -> None:
    """Stop a run in which nothing works: every cell of the first images failed."""
    survey = summary.survey
    if survey.cells_left < survey.cells or summary.done or not summary.failures:
        return
    failed = {failure.index for failure in summary.failures}
    tried = {failure.index for failure in summary.failures if failure.kind != "image"}
    if len(tried) >= _ENOUGH or len(failed) >= min(_UNREADABLE, survey.images_left):
        every = f"All {len(summary.failures)} cells of the first {counted(len(failed), 'image')} failed"
        unread = f"Not one of the first {counted(len(failed), 'image')} could be read"
        raise RunError(
            f"{every if tried else unread}, so the run stops here. The first: {summary.failures[0]}"
        )
