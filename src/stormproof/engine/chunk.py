"""Doing one chunk: find what is missing, answer it, write the part file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import merge
from operator import itemgetter
from pathlib import Path
from time import perf_counter

from stormproof.core.condition import Condition
from stormproof.core.errors import OutputError, RunError, StoreError, StormproofError
from stormproof.core.files import sweep
from stormproof.engine.cells import answers
from stormproof.engine.heartbeat import beating
from stormproof.engine.in_hand import clear_in_hand
from stormproof.engine.pair import pair_for
from stormproof.engine.work import Attempt, ChunkResult, Failure, Times, Work
from stormproof.results.store.parts import (
    failures_of,
    failures_path,
    held_cells,
    held_contents,
    held_rows,
    part_path,
    write_failures,
    writing_part,
)
from stormproof.results.store.schema import Cell, Row


def missing_cells(work: Work, chunk: int, held: Iterable[Cell]) -> dict[int, list[Condition]]:
    """The images of a chunk with the conditions under which its part does not hold them."""
    held = set(held)
    missing = {
        index: [condition for condition, text in named if (index, text) not in held]
        for index, named in work.cells(chunk).items()
    }
    return {index: conditions for index, conditions in missing.items() if conditions}


def do_chunk(attempt: Attempt) -> ChunkResult:
    """Answer the missing cells of a chunk and write its part anew, old rows included."""
    work = attempt.work
    path, times = part_path(work.out, attempt.chunk), Times()
    held = held_cells(path, work.key)
    missing = missing_cells(work, attempt.chunk, held)
    if not missing:
        # A worker wrote the part and was lost before it could say so.
        whole = Counter(text for named in work.cells(attempt.chunk).values() for _, text in named)
        return ChunkResult(work.out, attempt.chunk, dict(whole))
    clear_in_hand(work.out, attempt.chunk)  # of a run that was killed: it blames nobody
    pair = pair_for(work)
    start = perf_counter()  # opening the model is not the chunk's cost
    sweep(path)
    before = held_contents(path, work.key)
    answered = ((outcome.cell, outcome) for outcome in answers(pair, attempt, missing, before, times))
    done: Counter[str] = Counter()
    failures: list[Failure] = []
    with writing_part(path, work.key) as part:
        for (_, text), outcome in merge(held_rows(path, work.key), answered, key=itemgetter(0)):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                continue
            part.add(outcome)
            if isinstance(outcome, Row):
                done[text] += 1
        # Before the part takes its name: a kill in between leaves a chunk that is simply done again.
        tried = {(index, str(condition)) for index, tried in missing.items() for condition in tried}
        _tell(failures_path(work.out, attempt.chunk), failures, {*held} | tried)
    clear_in_hand(work.out, attempt.chunk)
    times.total = perf_counter() - start
    return ChunkResult(work.out, attempt.chunk, dict(done), tuple(failures), times)


def _tell(path: Path, failures: Iterable[Failure], settled: set[Cell]) -> None:
    """Record failures, beside those of cells that only an earlier command asked for."""
    try:
        known = failures_of(path)
    except StoreError:  # what a damaged record named is tried again when it is asked for
        known = []
    earlier = [row for row in known if (row["index"], row["condition"]) not in settled]
    write_failures(path, [*earlier, *(failure.as_dict() for failure in failures)])


def do_chunk_safely(attempt: Attempt) -> ChunkResult:
    """`do_chunk`, with what keeps its run from going on as a result: other runs may share the workers.

    A disk that is full is no run's own affair, and raised.
    """
    try:
        with beating(attempt):
            return do_chunk(attempt)
    except OutputError as error:
        raise OutputError(str(error)) from None
    except StoreError as error:
        return ChunkResult(attempt.work.out, attempt.chunk, error=StoreError(str(error)))
    except StormproofError as error:
        return ChunkResult(attempt.work.out, attempt.chunk, error=RunError(str(error)))
