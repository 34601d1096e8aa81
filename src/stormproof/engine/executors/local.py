"""In this process, one chunk after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stormproof.engine.chunk import do_chunk_safely
from stormproof.engine.work import Attempt, ChunkResult


@dataclass(frozen=True, slots=True)
class Local:
    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        for attempt in attempts:
            yield do_chunk_safely(attempt)
