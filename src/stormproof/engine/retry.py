"""What to do when a worker dies with a chunk in hand: try again, narrow down, go around."""

from __future__ import annotations

from dataclasses import replace

from stormproof.core.errors import RunError
from stormproof.core.files import make_folder
from stormproof.engine.chunk import missing_cells
from stormproof.engine.in_hand import clear_in_hand, read_in_hand
from stormproof.engine.pair import pair_for
from stormproof.engine.work import Attempt, ChunkResult, Failure
from stormproof.results.store.parts import failures_path, held_cells, part_path, write_failures

PARDONED = 1  # deaths without consequence: a machine may be short of memory for a moment
UNBORN = 10  # deaths before the first image after which the model is held not to open
GUILTY = 4  # cells that workers die of after which a chunk is given up
TOO_MANY = 32  # deaths, whatever their cause


def after_death(attempt: Attempt, cause: str) -> Attempt | ChunkResult:
    """The next attempt at a chunk that a worker died of, or its failure.

    First the same again; then image by image, until two workers in a row die of one cell; then past it. One
    death alone proves nothing: whoever kills processes hits whatever they have in hand.
    """
    work, deaths = attempt.work, attempt.deaths + 1
    if deaths >= TOO_MANY or len(attempt.skip) >= GUILTY:
        return _given_up(attempt, f"{cause}; {deaths} workers died of this chunk")
    note = read_in_hand(work.out, attempt.chunk)
    clear_in_hand(work.out, attempt.chunk)  # the next may die before it writes its own
    if deaths <= PARDONED:
        return replace(attempt, deaths=deaths)
    if not note and not attempt.one_by_one and deaths >= UNBORN:
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
        return replace(
            attempt,
            deaths=deaths,
            suspect=None,
            skip={**attempt.skip, note[0]: f"{cause} on this image"},
        )
    return replace(attempt, deaths=deaths, one_by_one=True)


def _given_up(attempt: Attempt, reason: str) -> ChunkResult:
    work = attempt.work
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
    return ChunkResult(work.out, attempt.chunk, failures=failures)
