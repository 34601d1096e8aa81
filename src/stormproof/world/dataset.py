"""The built-in street as a dataset: `world:val`, `world:train,count=2000,size=1024x512,stereo=true`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Sample, Truth
from stormproof.datasets.dataset import Dataset
from stormproof.world.classes import COCO_IDS, OBJECTS, SEMANTIC
from stormproof.world.samples import BASELINE, SPLITS, VERSION, check_scene, render, render_truth, scene_id


class _Ids(Sequence[str]):
    """The ids of a split, computed on demand: the training split has 2³¹."""

    def __init__(self, split: str, count: int) -> None:
        self._split, self._count = split, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        chosen = range(self._count)[index]
        if isinstance(chosen, int):
            return scene_id(self._split, chosen)
        return [scene_id(self._split, k) for k in chosen]

    def __iter__(self) -> Iterator[str]:
        return (scene_id(self._split, k) for k in range(self._count))


@dataclass(frozen=True, slots=True)
class World:
    """Scenes of one split at one size; every sample has boxes, masks, maps, depth and a camera."""

    split: str
    count: int
    width: int
    height: int
    seed: int
    stereo: bool
    baseline: float

    @property
    def name(self) -> str:
        return f"world-{self.split}-{self.width}x{self.height}"

    @property
    def ids(self) -> Sequence[str]:
        return _Ids(self.split, self.count)

    @property
    def classes(self) -> tuple[str, ...]:
        return OBJECTS

    @property
    def category_ids(self) -> tuple[int, ...]:
        return COCO_IDS

    @property
    def semantic_classes(self) -> tuple[str, ...]:
        return SEMANTIC

    @property
    def fingerprint(self) -> str:
        identity = ["world", VERSION, self.split, self.count, self.width, self.height, self.seed]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Sample:
        return render(
            self.seed, self.split, range(self.count)[index], width=self.width, height=self.height,
            stereo=self.stereo, baseline=self.baseline,
        ).sample  # fmt: skip

    def truth(self, index: int) -> Truth:
        return render_truth(
            self.seed, self.split, range(self.count)[index], width=self.width, height=self.height
        )

    def size(self, index: int) -> tuple[int, int]:
        range(self.count)[index]  # raises IndexError for an index beyond the split
        return self.height, self.width


def parse_size(text: str) -> tuple[int, int]:
    """Width and height from `512x320`."""
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*[x×]\s*([0-9]{1,9})\s*", text)
    if match is None:
        raise InvalidOption(
            f"Cannot read the size {text!r}; write width x height in pixels, for example 512x320."
        )
    return int(match[1]), int(match[2])


def open_world(
    main: str,
    *,
    size: str = "512x320",
    seed: int = 0,
    count: int | None = None,
    stereo: bool = False,
    baseline: float = BASELINE,
) -> Dataset:
    """Open a split: train (2³¹ scenes, or the first `count`), val (200 scenes) or test (500).

    `stereo` adds the right-hand image, `baseline` metres away, and the true disparity.
    """
    width, height = parse_size(size)
    check_scene(main, 0, width, height, baseline)
    if count is not None and not 0 < count <= SPLITS[main]:
        raise InvalidOption(f"Count {count}: split {main!r} has 1 to {SPLITS[main]} scenes.")
    return World(main, SPLITS[main] if count is None else count, width, height, seed, stereo, baseline)
