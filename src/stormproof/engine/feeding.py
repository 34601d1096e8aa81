"""Processes that read and corrupt images for the one that holds the model: one copy of it, all cores.

For corruptions that only the CPU has, and devices that none are written for. A cell that a process cannot
make, or that is lost with it, is made by the process that asked, which meets the error if there is one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.processes import worker_count
from stormproof.corruptions.plugins import load_plugins
from stormproof.datasets import read_dataset
from stormproof.engine.beside import Beside, Line, end_all
from stormproof.engine.stages import DecodedImage, PreparedCell
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.stages.decode import Decoder
from stormproof.engine.work import Times, Work

_AHEAD = 4  # cells that each process may be ahead of the model
Fed = tuple[str, PreparedCell, Times]  # the digest of the clean image, the cell, and what it took


class Feeders:
    """Processes that make the cells of a run, each in turn."""

    def __init__(self, work: Work) -> None:
        self.out, count = work.out, worker_count(work.config.workers)
        self.processes = [Beside(serve_cells, work) for _ in range(count)]

    def __call__(self, cells: Iterable[tuple[int, Condition]]) -> Iterator[Fed | None]:
        """What is made of each cell, in order; None if nobody could."""
        waiting: deque[Beside | None] = deque()
        for cell, process in zip(cells, cycle(self.processes), strict=False):
            waiting.append(process if _ask(process, cell) else None)
            if len(waiting) >= _AHEAD * len(self.processes):
                yield _answer(waiting.popleft())
        while waiting:
            yield _answer(waiting.popleft())

    def end(self) -> None:
        end_all(self.processes)


def _ask(process: Beside, cell: tuple[int, Condition]) -> bool:
    try:
        process.send(cell)
    except OSError:
        return False
    return True


def _answer(process: Beside | None) -> Fed | None:
    if process is None:
        return None
    try:
        fed = process.receive()
    except (EOFError, OSError):
        return None
    return fed and (fed[0], _unpack(*fed[1]), fed[2])


def _pack(cell: PreparedCell) -> tuple[Any, ...]:
    return *cell[:5], cell.truth(), cell.content, cell.change()


def _unpack(*fields: Any) -> PreparedCell:
    cell = PreparedCell._make(fields)
    return cell._replace(truth=lambda: fields[5], change=lambda: fields[7])


def serve_cells(line: Line, work: Work) -> None:
    """Answer cells with what the model is to see."""
    os.chdir(work.folder)
    load_plugins(work.config.plugin)
    dataset = read_dataset(work.record.dataset.spec)
    if dataset.fingerprint != work.record.dataset.fingerprint:
        return
    config = work.config
    decoded: DecodedImage | Exception | None = None
    while True:
        index, condition = line.receive()
        times = Times()
        corrupt = Corruptor(dataset, seed=config.seed, copies=config.copies, times=times)
        if not isinstance(decoded, DecodedImage) or decoded.index != index:
            decoded = Decoder(dataset, {}, times).read(index)
        fed = None
        if isinstance(decoded, DecodedImage):
            made = corrupt(decoded, condition)
            fed = (decoded.content, _pack(made), times) if isinstance(made, PreparedCell) else None
        line.send(fed)
