"""What every tracker shows of a run under way, from the results of its chunks."""

from __future__ import annotations

from dataclasses import dataclass, field

from stormproof.engine.run import Summary
from stormproof.engine.work import ChunkResult


@dataclass(slots=True)
class Count:
    """Cells done and failed so far."""

    done: int = 0
    failed: int = 0
    chunks: int = field(default=0)

    def add(self, result: ChunkResult) -> dict[str, float]:
        self.done += sum(result.done.values())
        self.failed += len(result.failures)
        self.chunks += 1
        return {"cells/done": self.done, "cells/failed": self.failed}


def seconds(summary: Summary) -> dict[str, float]:
    """Time by what it was spent on, over all workers."""
    times = summary.times
    return {"seconds/decode": times.decode, "seconds/corrupt": times.corrupt,
            "seconds/model": times.model, "seconds/total": times.total}  # fmt: skip
