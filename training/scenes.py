"""A pool's scenes in the memory of the training device, which grow as they are rendered."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from training import pool as pools
from training.config import Source

_AT_ONCE = 256  # scenes copied at a time


class Scenes:
    """Images and truth as uint8 tensors; `grow` loads what has been rendered since."""

    def __init__(
        self,
        folder: Path,
        device: torch.device,
        sources: Sequence[Source],
        truths: Sequence[str],
        limit: int = 0,
    ) -> None:
        self.folder, self.pool, self.device = folder, pools.read(folder), device
        self.sources = sources
        names = dict.fromkeys([*(s.array for s in sources), *truths, "objects"])
        self._files = {name: pools.array(folder, self.pool, name) for name in names}
        kinds = {name: torch.int16 if name == "objects" else torch.uint8 for name in names}
        self.most = min(limit or self.pool.count, self.pool.count)
        self._held = {
            name: torch.empty((self.most, *self.pool.shape(name)[1:]), dtype=kinds[name], device=device)
            for name in names
        }
        self.count = 0

    def grow(self) -> int:
        """Load new scenes; returns the number of scenes now."""
        ready = min(self.most, pools.ready(self.folder, self.pool))
        for start in range(self.count, ready, _AT_ONCE):
            end = min(start + _AT_ONCE, ready)
            for name, held in self._held.items():
                held[start:end].copy_(torch.from_numpy(self._files[name][start:end]))
        self.count = ready
        return ready

    def wait(self, count: int, seconds: float = 3600.0) -> None:
        """Wait until at least `count` scenes are loaded, or all of a smaller pool."""
        until = time.monotonic() + seconds
        while self.grow() < min(count, self.most):
            if time.monotonic() > until:
                raise TimeoutError(f"{self.folder}: {self.count} scenes after {seconds:.0f} s, not {count}.")
            time.sleep(0.5)

    def take(self, indices: Tensor, source: str = pools.CLEAN) -> dict[str, Tensor]:
        """The scenes at some indices: `images` from a source, and all loaded truth."""
        arrays = {s.array for s in self.sources}
        truths = {name: held[indices] for name, held in self._held.items() if name not in arrays}
        return {"images": self._held[source][indices], **truths}

    def mixed(self, indices: Tensor) -> dict[str, Tensor]:
        """The scenes at some indices, with images from every source in proportion to its share."""
        taken = self.take(indices, self.sources[0].array)
        total, begin = sum(s.share for s in self.sources), 0.0
        for source in self.sources:
            rows = slice(*(round(end / total * len(indices)) for end in (begin, begin + source.share)))
            begin += source.share
            if source is not self.sources[0]:
                taken["images"][rows] = self._held[source.array][indices[rows]]
        return taken
