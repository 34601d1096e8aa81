"""Processes that read and corrupt images for the one that holds the model: one copy of it, all cores.

For corruptions that only the CPU has, and for devices without Triton.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.processes import explain_killed_workers, worker_count, worker_pool
from stormproof.core.threads import run_ahead
from stormproof.corruptions.plugins import load_plugins
from stormproof.engine.pair import open_dataset_once
from stormproof.engine.stages import DecodedImage, PreparedCell
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.stages.decode import Decoder
from stormproof.engine.work import Times, Work

_AHEAD = 4  # cells that each process may be ahead of the model
Asked = tuple[int, Condition]  # an image, and what to make of it
Fed = tuple[str, PreparedCell, Times]  # the digest of the clean image, the cell, and what it took


class Feeders:
    """Makes the cells of a run in as many processes as it has workers."""

    def __init__(self, work: Work) -> None:
        self.out, self._count = work.out, worker_count(work.config.workers)
        self._pool = worker_pool(self._count, _start, work)

    def __call__(self, cells: Iterable[Asked]) -> Iterator[Fed | None]:
        """What is made of each cell, in order; None for one that raised an error."""
        with explain_killed_workers():
            for fed in run_ahead(self._pool, _make, cells, ahead=_AHEAD * self._count):
                yield fed and (fed[0], _unpack(fed[1]), fed[2])

    def end(self) -> None:
        self._pool.shutdown(cancel_futures=True)


_work: list[Work] = []  # of this process, if it feeds
_last: list[DecodedImage] = []


def _start(work: Work) -> None:
    os.chdir(work.folder)
    load_plugins(work.config.plugin)
    _work[:] = [work]


def _make(cell: Asked) -> tuple[str, tuple[Any, ...], Times] | None:
    """A cell as plain values, which `_unpack` makes one of; None where that fails: whoever asked tries again,
    and meets the error."""
    (work,), (index, condition), times = _work, cell, Times()
    dataset = open_dataset_once(work.record.dataset.spec)
    if not _last or _last[0].index != index:
        read = Decoder(dataset, {}, times).read(index)
        _last[:] = [read] if isinstance(read, DecodedImage) else []
    if not _last:
        return None
    config = work.config
    made = Corruptor(dataset, seed=config.seed, copies=config.copies, times=times)(_last[0], condition)
    if not isinstance(made, PreparedCell):
        return None
    try:
        return _last[0].content, (*made[:5], made.truth(), made.content, made.change()), times
    except Exception:  # of truth, which is moved only now if the image is a copy
        return None


def _unpack(fields: tuple[Any, ...]) -> PreparedCell:
    return PreparedCell._make(fields)._replace(truth=lambda: fields[5], change=lambda: fields[7])
