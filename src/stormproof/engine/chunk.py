"""One chunk: find what is missing, run it, write the part file; and what to try next when a worker dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import OutputError, RunError, StoreError, StormproofError
from stormproof.core.files import make_folder, sweep
from stormproof.engine.cells import run_cells
from stormproof.engine.failures import Failure
from stormproof.engine.liveness import clear_note, heartbeat, read_note
from stormproof.engine.pair import pair_for
from stormproof.engine.work import Attempt, ChunkResult, Times, Work
from stormproof.models.model import fingerprint
from stormproof.results.store import parts
from stormproof.results.store.schema import Cell, Row, RowBlock

PARDONED = 1  # deaths without consequence: a machine may be short of memory for a moment
NEVER_OPENED = 10  # deaths before the first image after which the model is assumed not to open
FATAL = 4  # cells that kill workers after which a chunk is given up
TOO_MANY = 32  # deaths, whatever their cause


def missing_cells(work: Work, chunk: int, held: Iterable[Cell]) -> dict[int, list[Condition]]:
    """The images of a chunk, with the conditions under which its part does not have them."""
    held = set(held)
    missing = {
        index: [condition for condition, text in named if (index, text) not in held]
        for index, named in work.cells(chunk).items()
    }
    return {index: conditions for index, conditions in missing.items() if conditions}


def do_chunk_safely(attempt: Attempt) -> ChunkResult:
    """Run the missing cells of a chunk and write its part again, existing rows included.

    Errors of its run are returned in the result, since other runs may share the workers. A full disk concerns
    all runs and is raised.
    """
    *_, result = do_in_steps(attempt)
    assert result is not None
    return result


def do_in_steps(attempt: Attempt) -> Iterator[ChunkResult | None]:
    """`do_chunk_safely`, with a None where the model is done: a thread may go on while it does the next."""
    try:
        with heartbeat(attempt):
            yield from _steps(attempt)
    except OutputError as error:
        raise OutputError(str(error)) from None
    except StormproofError as error:
        kind = StoreError if isinstance(error, StoreError) else RunError
        yield ChunkResult(attempt.work.out, attempt.chunk, error=kind(str(error)))


def _steps(attempt: Attempt) -> Iterator[ChunkResult | None]:
    work = attempt.work
    path, key, times = parts.part_path(work.out, attempt.chunk), work.record.key, Times()
    held = parts.held_cells(path, key)
    missing = missing_cells(work, attempt.chunk, held)
    if not missing:
        # A worker wrote the part and was lost before it could report.
        whole = Counter(text for named in work.cells(attempt.chunk).values() for _, text in named)
        yield ChunkResult(work.out, attempt.chunk, dict(whole))
        return
    clear_note(attempt)  # left by a run that was killed
    pair = pair_for(work)
    start = perf_counter()  # opening the model is not the chunk's cost
    _check_files(work)
    sweep(path)
    before = {
        index: content
        for (index, text), content in parts.held_contents(path, key).items()
        if work.config.copies is None or text == "clean"  # the other rows are about copies
    }
    with parts.writing_part(path, key) as part:
        taken = _Taken(part, parts.held_rows(path, key))
        run_cells(pair, attempt, missing, before, times, taken)
        yield None
        taken.add_held(None)
        _check_files(work)  # again: rows made with other files must not become a part
        # Written before the part gets its name: after a kill in between, the chunk is simply run again.
        tried = {(index, str(condition)) for index, tried in missing.items() for condition in tried}
        _record_failures(parts.failures_path(work.out, attempt.chunk), taken.failures, {*held} | tried, key)
    clear_note(attempt)
    times.total = perf_counter() - start
    yield ChunkResult(work.out, attempt.chunk, dict(taken.done), tuple(taken.failures), times)


class _Taken:
    """Takes rows and failures in the order of cells; rows go to the part, between those that it held."""

    def __init__(self, part: parts.PartWriter, held: Iterator[tuple[Cell, Any]]) -> None:
        self._part, self._held, self._next = part, held, next(held, None)
        self.done: Counter[str] = Counter()
        self.failures: list[Failure] = []

    def __call__(self, outcomes: Iterable[Row | Failure] | RowBlock) -> None:
        if isinstance(outcomes, RowBlock) and self._next is None:
            self._part.add_block(outcomes)
            self.done.update(str(head.condition) for head in outcomes.heads)
            return
        for outcome in outcomes:
            self.add_held(outcome.cell)
            if isinstance(outcome, Failure):
                self.failures.append(outcome)
            else:
                self._part.add(outcome)
                self.done[str(outcome.condition)] += 1

    def add_held(self, before: Cell | None) -> None:
        """Add the held rows that come before a cell, or all that are left."""
        while self._next is not None and (before is None or self._next[0] < before):
            self._part.add(self._next[1])
            self._next = next(self._held, None)


def _check_files(work: Work) -> None:
    """Stop if a file that conditions or plugins use has changed since the run was planned."""
    for name, digest in work.record.files.items():
        if fingerprint([Path(name)], {}) != digest:
            raise StoreError(f"{name} changed during the run. Restore it, or run into another folder.")


def _record_failures(path: Path, failures: Iterable[Failure], settled: set[Cell], key: str) -> None:
    """Write failures, and keep those of cells that only an earlier command asked for."""
    try:
        known = parts.failures_of(path, key)
    except StoreError:  # the cells of a damaged record are tried again when they are asked for
        known = []
    sweep(path)
    earlier = [row for row in known if (row["index"], row["condition"]) not in settled]
    parts.write_failures(path, [*earlier, *map(asdict, failures)], key)


def after_death(attempt: Attempt, cause: str) -> Attempt | ChunkResult:
    """The next attempt at a chunk whose worker died, or its failure.

    The same attempt is repeated first, then made image by image until two workers in a row die of one cell,
    then made without that cell. One death proves nothing: whatever kills processes hits any cell in progress.
    """
    attempt = replace(attempt, deaths=attempt.deaths + 1)
    if attempt.deaths >= TOO_MANY or len(attempt.skip) >= FATAL:
        return _give_up(attempt, f"{cause}; {attempt.deaths} workers died of this chunk")
    note = read_note(attempt)
    clear_note(attempt)  # the next may die before it writes its own
    if not note and not attempt.one_by_one and attempt.deaths >= NEVER_OPENED:
        error = RunError(
            f"{cause} {attempt.deaths} times before its first image: the model does not open there. "
            "Try --engine local to see why, or fewer --workers if memory is short."
        )
        return ChunkResult(attempt.work.out, attempt.chunk, error=error)
    if attempt.deaths <= PARDONED or not note:
        return attempt
    if not attempt.one_by_one or len(note) > 1:
        return replace(attempt, one_by_one=True)
    (cell,) = note
    if attempt.suspect != cell:
        return replace(attempt, suspect=cell)
    return replace(attempt, suspect=None, skip={**attempt.skip, cell: f"{cause} on this image"})


def _give_up(attempt: Attempt, reason: str) -> ChunkResult:
    work = attempt.work
    ids = pair_for(work).dataset.ids
    missing = missing_cells(
        work, attempt.chunk, parts.held_cells(parts.part_path(work.out, attempt.chunk), work.record.key)
    )
    failures = tuple(
        Failure(index, ids[index], text, "death", attempt.skip.get((index, text), reason))
        for index, conditions in missing.items()
        for text in map(str, conditions)
    )
    path = parts.failures_path(work.out, attempt.chunk)
    make_folder(path.parent)
    parts.write_failures(path, [*map(asdict, failures)], work.record.key)
    return ChunkResult(work.out, attempt.chunk, failures=failures)
