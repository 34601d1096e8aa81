"""A pool's scenes in the memory of the training device, which grow as they are rendered."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from training import pool as pools
from training.config import Source

_AT_ONCE = 256  # scenes copied at a time


class Arrays:
    """Arrays of a pool as tensors on the device; several trainings may share them.

    `grow` loads what has been rendered since.
    """

    def __init__(self, folder: Path, device: torch.device, names: Iterable[str], limit: int = 0) -> None:
        self.folder, self.pool, self.device = folder, pools.read(folder), device
        different = dict.fromkeys([*names, "objects"])
        self._files = {name: pools.array(folder, self.pool, name) for name in different}
        kinds = {name: torch.int16 if name == "objects" else torch.uint8 for name in different}
        self.most = min(limit or self.pool.count, self.pool.count)
        self.held = {
            name: torch.empty((self.most, *self.pool.shape(name)[1:]), dtype=kinds[name], device=device)
            for name in different
        }
        self.count = 0

    def grow(self) -> int:
        """Load new scenes; returns the number of scenes now."""
        ready = min(self.most, pools.ready(self.folder, self.pool))
        for start in range(self.count, ready, _AT_ONCE):
            end = min(start + _AT_ONCE, ready)
            for name, held in self.held.items():
                held[start:end].copy_(torch.from_numpy(self._files[name][start:end]))
        if ready > self.count and self.device.type == "cuda":
            torch.cuda.synchronize()  # trainings on other streams read them
        self.count = ready
        return ready

    def wait(self, count: int, seconds: float = 3600.0) -> None:
        """Wait until at least `count` scenes are loaded, or all of a smaller pool."""
        until = time.monotonic() + seconds
        while self.grow() < min(count, self.most):
            if time.monotonic() > until:
                raise TimeoutError(f"{self.folder}: {self.count} scenes after {seconds:.0f} s, not {count}.")
            time.sleep(0.5)


class Scenes:
    """What one training sees of a pool: images from some sources, and some kinds of truth."""

    def __init__(
        self, arrays: Arrays, sources: Sequence[Source], truths: Sequence[str], limit: int = 0
    ) -> None:
        self.arrays, self.sources = arrays, sources
        self._truths, self._limit = (*truths, "objects"), limit or arrays.most

    @property
    def count(self) -> int:
        return min(self.arrays.count, self._limit)

    @property
    def device(self) -> torch.device:
        return self.arrays.device

    def take(self, indices: Tensor, source: str = pools.CLEAN) -> dict[str, Tensor]:
        """The scenes at some indices: `images` from a source, and the truth."""
        held = self.arrays.held
        return {"images": held[source][indices], **{name: held[name][indices] for name in self._truths}}

    def mixed(self, indices: Tensor) -> dict[str, Tensor]:
        """The scenes at some indices, with images from every source in proportion to its share."""
        taken = self.take(indices, self.sources[0].array)
        total, begin = sum(s.share for s in self.sources), 0.0
        for source in self.sources:
            rows = slice(*(round(end / total * len(indices)) for end in (begin, begin + source.share)))
            begin += source.share
            if source is not self.sources[0]:
                taken["images"][rows] = self.arrays.held[source.array][indices[rows]]
        return taken
