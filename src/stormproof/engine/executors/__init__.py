"""Engines behind one small interface: take chunks, yield their results in any order.

An executor owns its processes, nothing else: what a chunk is and how it is done is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from stormproof.engine.work import Attempt, ChunkResult


class Executor(Protocol):
    def run(self, attempts: Iterable[Attempt]) -> Iterator[ChunkResult]:
        """Do the chunks, of one run or of several, taking each when a worker is free for it; closing the
        iterator stops the work and loses at most the chunks in hand."""
        ...
