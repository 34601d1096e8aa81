"""A pool: rendered scenes as plain arrays in a folder, which may be read while it grows."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

OBJECTS = 32  # most objects kept per scene; the largest
COLUMNS = 6  # of an object: x1, y1, x2, y2, class, and 1 (counts), -1 (too small to count) or 0 (no object)
CLEAN = "images"


@dataclass(frozen=True, slots=True)
class Pool:
    """Scenes 0 to `count` of a split. Worker w of `workers` renders scenes w, w + workers, …"""

    split: str
    count: int
    width: int
    height: int
    seed: int
    world: int  # the version of the world
    workers: int
    scenario: str = ""  # whose scenes these are; empty for all scenes

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array; arrays not listed here hold images."""
        plane = (self.count, self.height, self.width)
        shapes = {
            "semantic": plane,
            "instance": plane,
            "objects": (self.count, OBJECTS, COLUMNS),
            "done": (self.workers,),
        }
        return shapes.get(name, (*plane, 3))


_KINDS = {"objects": np.int16, "done": np.int64}


def create(folder: Path, pool: Pool) -> None:
    """Create an empty pool: all arrays at full size, no scene rendered."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (CLEAN, "semantic", "instance", "objects", "done"):
        array(folder, pool, name, "w+")
    # Last and atomically, so that the arrays exist for whoever reads it.
    part = folder / "pool.part"
    part.write_text(json.dumps(asdict(pool), indent=1) + "\n")
    part.replace(folder / "pool.json")


def read(folder: Path) -> Pool:
    return Pool(**json.loads((folder / "pool.json").read_text()))


def array(folder: Path, pool: Pool, name: str, mode: Any = "c") -> npt.NDArray[Any]:
    """An array of the pool, mapped from its file: `images` (clean), other images, or truth."""
    kind = _KINDS.get(name, np.uint8)
    return np.memmap(folder / f"{name}.raw", kind, mode, shape=pool.shape(name))


def ready(folder: Path, pool: Pool) -> int:
    """How many scenes are rendered, from the first on without a gap."""
    done = array(folder, pool, "done", "r")
    return min(pool.count, int(min(done * pool.workers + np.arange(pool.workers))))


def wait_for(folder: Path, pool: Pool, count: int) -> None:
    """Wait until the first `count` scenes are rendered."""
    while ready(folder, pool) < count:
        time.sleep(0.2)
