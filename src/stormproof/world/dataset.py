"""The built-in street as a dataset: `world:val`, `world:train,count=2000,size=1024x512,stereo=true`; clips,
`world:test,clips=20,frames=30`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

from stormproof.core.errors import InvalidOption
from stormproof.core.identity import to_json
from stormproof.core.randomness import Frame
from stormproof.core.sample import Sample, Truth
from stormproof.datasets.dataset import Dataset
from stormproof.world.classes import COCO_IDS, OBJECTS, SEMANTIC
from stormproof.world.joints import joint_data
from stormproof.world.plan import find_scenario, scenes_of
from stormproof.world.samples import (
    BASELINE,
    SPLITS,
    VERSION,
    check_scene,
    frame_of,
    render,
    render_truth,
    scene_id,
)


class _Ids(Sequence[str]):
    """The ids of scenes, computed on demand: the training split has 2³¹."""

    def __init__(self, split: str, scenes: Sequence[int]) -> None:
        self._split, self._scenes = split, scenes

    def __len__(self) -> int:
        return len(self._scenes)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        chosen = self._scenes[index]
        if isinstance(chosen, int):
            return scene_id(self._split, chosen)
        return [scene_id(self._split, k) for k in chosen]


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
    per_clip: int = 0  # frames; 0 for single images
    scenario: str = ""  # empty for all scenes
    joints: bool = False  # whether people have key points

    @property
    def name(self) -> str:
        which = "-".join(filter(None, (self.split, self.scenario)))
        return f"world-{which}-{self.width}x{self.height}"

    @property
    def scenes(self) -> Sequence[int]:
        """The numbers of the scenes in their split."""
        if not self.scenario:
            return range(self.count)
        return scenes_of(self.scenario, self.seed, self.split, self.count)

    @property
    def ids(self) -> Sequence[str]:
        return [*self.frames] if self.per_clip else _Ids(self.split, self.scenes)

    @property
    def frames(self) -> Mapping[str, Frame]:
        return _frames(self.split, self.count, self.per_clip)

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
        if self.per_clip:
            identity.append(self.per_clip)
        if self.scenario:
            identity.append(self.scenario)
        if self.joints:
            identity.append("joints")
        return hashlib.sha256(to_json(identity).encode()).hexdigest()

    def __len__(self) -> int:
        return self.count * (self.per_clip or 1)

    def __getitem__(self, index: int) -> Sample:
        scene, frame = self._place(index)
        return render(
            self.seed, self.split, scene, width=self.width, height=self.height,
            stereo=self.stereo, baseline=self.baseline, frame=frame,
            arrays=joint_data if self.joints else None,
        ).sample  # fmt: skip

    def truth(self, index: int) -> Truth:
        scene, frame = self._place(index)
        return render_truth(
            self.seed,
            self.split,
            scene,
            width=self.width,
            height=self.height,
            frame=frame,
            arrays=joint_data if self.joints else None,
        )

    def size(self, index: int) -> tuple[int, int]:
        self._place(index)  # raises IndexError for an index beyond the split
        return self.height, self.width

    def _place(self, index: int) -> tuple[int, int | None]:
        """The scene of an image, and its number in the scene's clip."""
        index = range(len(self))[index]
        return divmod(index, self.per_clip) if self.per_clip else (self.scenes[index], None)


@lru_cache(maxsize=8)
def _frames(split: str, clips: int, per_clip: int) -> Mapping[str, Frame]:
    frames = (
        frame_of(split, clip, number)
        for clip in range(clips if per_clip else 0)
        for number in range(per_clip)
    )
    return {frame.id: frame for frame in frames}


MOST_FRAMES = 40  # of a clip: after 4 s the traffic has left the modelled street


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
    clips: int | None = None,
    frames: int = 30,
    scenario: str = "",
    joints: bool = False,
) -> Dataset:
    """Open a split: train (2³¹ scenes, or the first `count`), val (200 scenes) or test (500).

    `stereo` adds the right-hand image, `baseline` metres away, and the true disparity. `clips` makes clips of
    the first scenes, each of `frames` images at 10 a second: the camera drives, traffic and people move.
    `scenario` takes the first `count` scenes of one kind: 'town-by-day' or 'outskirts-at-dusk'. `joints` adds
    the key points of people.
    """
    width, height = parse_size(size)
    check_scene(main, 0, width, height, baseline)
    count = clips if count is None else count
    if clips is not None and count != clips:
        raise InvalidOption(f"clips={clips} and count={count}: give one of them.")
    if count is not None and not 0 < count <= SPLITS[main]:
        raise InvalidOption(f"Count {count}: split {main!r} has 1 to {SPLITS[main]} scenes.")
    if scenario:
        find_scenario(scenario)
        if count is None or clips is not None:
            raise InvalidOption(f"scenario={scenario}: give the number of scenes as count=, and no clips=.")
    if not 2 <= frames <= MOST_FRAMES:
        raise InvalidOption(f"frames={frames}: a clip has 2 to {MOST_FRAMES} frames.")
    return World(
        main, SPLITS[main] if count is None else count, width, height, seed, stereo, baseline,
        0 if clips is None else frames, scenario, joints,
    )  # fmt: skip
