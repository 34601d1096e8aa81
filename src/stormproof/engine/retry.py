"""What to do when a worker dies with a chunk in hand: try again, narrow down, go around."""

from __future__ import annotations

from dataclasses import replace

from stormproof.engine.chunk import missing_cells
from stormproof.engine.in_hand import read_in_hand
from stormproof.engine.work import Attempt, ChunkResult, Failure, Work
from stormproof.errors import RunError
from stormproof.files import make_folder
from stormproof.store.parts import failures_path, held_cells, part_path, write_failures

PARDONED = 1  # deaths without consequence: a machine may be short of memory for a moment
TOO_MANY = 8  # deaths after which a chunk is given up


def after_death(work: Work, attempt: Attempt, cause: str) -> Attempt | ChunkResult:
    """The next attempt at a chunk that a worker died of, or its failure.

    First the same again; then image by image, until the note left behind names one cell; then past it.
    """
    deaths = attempt.deaths + 1
    if deaths >= TOO_MANY:
        return _given_up(work, attempt, f"{cause}; {deaths} workers died of this chunk")
    if deaths <= PARDONED:
        return replace(attempt, deaths=deaths)
    note = read_in_hand(work.out, attempt.chunk)
    if not note and deaths > PARDONED + 1:
        raise RunError(
            f"{cause} {deaths} times before its first image: the model does not open there. "
            "Try --engine local to see why, or fewer --workers if memory is short."
        )
    if attempt.one_by_one and len(note) == 1:
        return replace(attempt, deaths=deaths, skip={**attempt.skip, note[0]: f"{cause} on this image"})
    return replace(attempt, deaths=deaths, one_by_one=True)


def _given_up(work: Work, attempt: Attempt, reason: str) -> ChunkResult:
    from stormproof.engine.pair import pair_for

    ids = pair_for(work).dataset.ids
    held = held_cells(part_path(work.out, attempt.chunk), work.key)
    missing = missing_cells(work, attempt.chunk, held)
    failures = tuple(
        Failure(index, ids[index], text, "death", attempt.skip.get((index, text), reason))
        for index, conditions in missing.items()
        for text in map(str, conditions)
    )
    path = failures_path(work.out, attempt.chunk)
    make_folder(path.parent)
    write_failures(path, [failure.as_dict() for failure in failures])
    return ChunkResult(attempt.chunk, {}, failures)
