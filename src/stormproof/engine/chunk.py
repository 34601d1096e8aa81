"""One chunk: find what is missing, run it, write the part file; and what to try next when a worker dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import chain
from time import perf_counter

from stormproof.core.condition import Condition
from stormproof.core.errors import OutputError, RunError, StoreError, StormproofError
from stormproof.core.files import make_folder, sweep
from stormproof.engine.cells import end_reading, run_cells
from stormproof.engine.failures import Failure
from stormproof.engine.liveness import clear_note, heartbeat, read_note
from stormproof.engine.pair import pair_for
from stormproof.engine.storing import Order, check_files, end_store, store_for
from stormproof.engine.work import Attempt, ChunkResult, Times, Work
from stormproof.results.store.parts import (
    failures_path,
    held_cells,
    held_contents,
    part_path,
    write_failures,
)
from stormproof.results.store.schema import Cell

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
    except StoreError as error:
        yield ChunkResult(attempt.work.out, attempt.chunk, error=StoreError(str(error)))
    except StormproofError as error:
        yield ChunkResult(attempt.work.out, attempt.chunk, error=RunError(str(error)))


def _steps(attempt: Attempt) -> Iterator[ChunkResult | None]:
    work = attempt.work
    path, key, times = part_path(work.out, attempt.chunk), work.record.key, Times()
    held = held_cells(path, key)
    missing = missing_cells(work, attempt.chunk, held)
    if not missing:
        # A worker wrote the part and was lost before it could report.
        whole = Counter(text for named in work.cells(attempt.chunk).values() for _, text in named)
        yield ChunkResult(work.out, attempt.chunk, dict(whole))
        return
    clear_note(work.out, attempt.chunk)  # left by a run that was killed
    pair = pair_for(work)
    start = perf_counter()  # opening the model is not the chunk's cost
    check_files(work.record.files)
    sweep(path)
    before = {
        index: content
        for (index, text), content in held_contents(path, key).items()
        if work.config.copies is None or text == "clean"  # the other rows are about copies
    }
    tried = ((index, str(condition)) for index, conditions in missing.items() for condition in conditions)
    order = Order.of(work, attempt.chunk, chain(held, tried))
    beside = work.pays_processes and not held and not attempt.one_by_one
    with store_for(beside=beside)(order) as taken:
        run_cells(pair, attempt, missing, before, times, taken)
        taken.end()
        yield None
    clear_note(work.out, attempt.chunk)
    times.total = perf_counter() - start
    yield ChunkResult(work.out, attempt.chunk, dict(taken.done), tuple(taken.failures), times)


@contextmanager
def closing_processes() -> Iterator[None]:
    """End the processes beside this one when the block ends."""
    try:
        yield
    finally:
        end_reading()
        end_store()


def after_death(attempt: Attempt, cause: str) -> Attempt | ChunkResult:
    """The next attempt at a chunk whose worker died, or its failure.

    The same attempt is repeated first, then made image by image until two workers in a row die of one cell,
    then made without that cell. One death proves nothing: whatever kills processes hits any cell in progress.
    """
    work, deaths = attempt.work, attempt.deaths + 1
    if deaths >= TOO_MANY or len(attempt.skip) >= FATAL:
        return _give_up(attempt, f"{cause}; {deaths} workers died of this chunk")
    note = read_note(work.out, attempt.chunk)
    clear_note(work.out, attempt.chunk)  # the next may die before it writes its own
    if deaths <= PARDONED:
        return replace(attempt, deaths=deaths)
    if not note and not attempt.one_by_one and deaths >= NEVER_OPENED:
        error = RunError(
            f"{cause} {deaths} times before its first image: the model does not open there. "
            "Try --engine local to see why, or fewer --workers if memory is short."
        )
        return ChunkResult(work.out, attempt.chunk, error=error)
    if not note:
        return replace(attempt, deaths=deaths)
    if attempt.one_by_one and len(note) == 1:
        if attempt.suspect != note[0]:
            return replace(attempt, deaths=deaths, suspect=note[0])
        skip = {**attempt.skip, note[0]: f"{cause} on this image"}
        return replace(attempt, deaths=deaths, suspect=None, skip=skip)
    return replace(attempt, deaths=deaths, one_by_one=True)


def _give_up(attempt: Attempt, reason: str) -> ChunkResult:
    work = attempt.work
    ids = pair_for(work).dataset.ids
    missing = missing_cells(
        work, attempt.chunk, held_cells(part_path(work.out, attempt.chunk), work.record.key)
    )
    failures = tuple(
        Failure(index, ids[index], text, "death", attempt.skip.get((index, text), reason))
        for index, conditions in missing.items()
        for text in map(str, conditions)
    )
    path = failures_path(work.out, attempt.chunk)
    make_folder(path.parent)
    write_failures(path, [*map(asdict, failures)], work.record.key)
    return ChunkResult(work.out, attempt.chunk, failures=failures)
