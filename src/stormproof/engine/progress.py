"""The progress of one run, or of the runs of a plan together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Console

from stormproof.core.condition import corruption_of
from stormproof.core.errors import counted
from stormproof.core.progress import Progress, progress_on
from stormproof.engine.failures import group_failures
from stormproof.engine.plan import Survey
from stormproof.engine.run import Summary
from stormproof.engine.work import ChunkResult
from stormproof.results.store.record import RunRecord

_CAUSES = 3  # causes of failures that are printed per chunk


class RunProgress:
    """Watches a run. For a plan of several `runs`, `cells` is the total over all of them."""

    def __init__(self, console: Console | None = None, *, runs: int = 1, cells: int = 0) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._runs, self._cells = runs, cells
        self._progress: Progress | None = None
        self._begun = self._ended = self._failed = 0

    def started(self, record: RunRecord, survey: Survey) -> None:
        self._begun += 1
        name = f"{record.model.name} on {record.dataset.name}"
        title = f"{self._begun} of {self._runs}: {name}" if self._runs > 1 else name
        first = self._progress is None
        parts = _by_corruption(survey.total) if self._runs == 1 else {}
        progress = self._progress = self._progress or progress_on(
            self._console, title, max(self._cells, survey.cells), "cells", parts=parts
        )
        self._images = Counter(survey.total)
        self._images.subtract(survey.left)
        self._wanted = survey.total
        for part, count in _by_corruption(self._images).items():
            progress.skip(count, part)
        if first:
            progress.start()
        if not survey.cells:
            progress.say("There are no cells to run: there are more shards than chunks of images.")
            return
        progress.begin(
            title,
            f"{survey.cells_left} of {survey.cells} cells left, {counted(survey.images_left, 'image')}, "
            f"{counted(len(survey.total), 'condition')}",
        )

    def advanced(self, result: ChunkResult) -> None:
        assert self._progress is not None
        self._failed += len(result.failures)
        self._images.update(result.done)
        self._progress.note = self._note()
        for part, count in _by_corruption(result.done).items():
            self._progress.advance(count, part)
        for cause in group_failures(result.failures)[:_CAUSES]:
            self._progress.say(f"failed: {cause}")

    def ended(self, summary: Summary) -> None:
        """Stop the display; the runs of a plan all end together."""
        assert self._progress is not None
        self._ended += 1
        if self._ended < self._begun:
            return
        self._progress.stop()
        short = [name for name, count in self._images.items() if count < self._wanted[name]]
        if short and self._runs == 1:
            some = ", ".join(short[:3]) + (" …" if len(short) > 3 else "")
            self._progress.say(f"incomplete: {len(short)} of {len(self._wanted)} conditions ({some})")

    def _note(self) -> str:
        failed = f"{self._failed} failed" if self._failed else ""
        if self._runs > 1:
            return failed
        each = sorted(self._images.values())
        spread = counted(each[-1], "image")
        if each[0] < each[-1]:
            spread = f"{each[0]} to {spread}"
        return f"{spread} under each condition" + (f", {failed}" if failed else "")


def _by_corruption(counts: Mapping[str, int]) -> Counter[str]:
    """Counts of conditions, summed over severities and parameters."""
    total: Counter[str] = Counter()
    for text, count in counts.items():
        total[corruption_of(text)] += count
    return total
