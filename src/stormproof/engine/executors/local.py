"""In this process, one chunk after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stormproof.engine.chunk import do_chunk
from stormproof.engine.work import Attempt, ChunkResult, Work


@dataclass(frozen=True, slots=True)
class Local:
    def run(self, work: Work, chunks: Iterable[int]) -> Iterator[ChunkResult]:
        for chunk in chunks:
            yield do_chunk(work, Attempt(chunk))
