"""A rendered scene as a Sample: image, boxes, masks, maps, depth, camera, stereo partner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import atan2, pi
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.kernels import kernel
from stormproof.core.randomness import Frame
from stormproof.core.sample import RLE, Camera, Context, Floats, Instances, Ints, Sample, SemanticMap, Truth
from stormproof.world.classes import OBJECTS, SEMANTIC, VOID
from stormproof.world.scene import CameraView, Scene, camera_at, compose, extent, look
from stormproof.world.stage import Placement


@dataclass(frozen=True, slots=True)
class Solid:
    """An upright box in camera coordinates: size, centre of its bottom, and turn about the vertical axis.

    As in KITTI, `turn` is 0 for an object that heads along the camera's x axis, growing clockwise
    seen from above.
    """

    height: float
    width: float
    length: float
    at: tuple[float, float, float]
    turn: float

    @property
    def alpha(self) -> float:
        """The viewing angle: its turn minus the direction in which it is seen."""
        angle = self.turn - atan2(self.at[0], self.at[2])
        return (angle + pi) % (2 * pi) - pi


def solids(scene: Scene, placements: Sequence[Placement]) -> tuple[Solid, ...]:
    """The box of each placement; small rolls and pitches of the camera affect its position only."""
    camera = camera_at(scene.plan, 2, 2)
    eye, right, down, forward = (camera[k : k + 3].tolist() for k in (0, 3, 6, 9))
    out = []
    for p in placements:
        low, high = extent(p.mesh)
        sx, sy, sz = p.scale
        mx, my, mz = (low[0] + high[0]) / 2 * sx, (low[1] + high[1]) / 2 * sy, low[2] * sz
        hx, hy = p.ahead
        world = (
            p.at[0] + mx * hy + my * hx - eye[0],
            p.at[1] - mx * hx + my * hy - eye[1],
            p.at[2] + mz + p.tilt * my - eye[2],
        )
        at = tuple(world[0] * a[0] + world[1] * a[1] + world[2] * a[2] for a in (right, down, forward))
        across, along = hx * right[0] + hy * right[1], hx * forward[0] + hy * forward[1]
        out.append(
            Solid(
                (high[2] - low[2]) * sz, (high[0] - low[0]) * sx, (high[1] - low[1]) * sy,
                (at[0], at[1], at[2]), -atan2(along, across),
            )
        )  # fmt: skip
    return tuple(out)


# The number of scenes in each split. Random numbers are keyed by the split's name, so no two splits share a
# scene.
SPLITS: Mapping[str, int] = {"train": 2**31, "val": 200, "test": 500}
LAST = 2**31 - 1  # number of a scene, in a scenario of any split

VERSION = 1  # raised whenever a change to the renderer changes an image

MIN_SIDE, MAX_SIDE = 32, 4096  # pixels
FEW = 12  # objects with fewer visible pixels are marked `ignore`
BASELINE = 0.54  # metres between the two cameras, as in KITTI
# The id of a segment = (semantic class + 1) × 1000 + the object's number (0 for stuff), or 0 without a class.
SEGMENT_BASE = 1000
# Further arrays of the objects that a view shows: from these, their numbers in it and their areas in pixels.
ObjectArrays = Callable[[Scene, CameraView, Sequence[Placement], Ints, Ints], Mapping[str, Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class Rendered:
    """A sample, and further truth that only some formats can store."""

    sample: Sample
    instance: npt.NDArray[np.int32]  # per pixel: 0, or 1 + position in the sample's instances
    solids: tuple[Solid, ...]  # one per instance: its box in space
    groups: tuple[int, ...]  # one per instance: riders and their bicycles share a number, -1 for others


def scene_id(split: str, index: int) -> str:
    return f"world-{split}-{index:06d}"


HERTZ = 10.0  # frames of a clip per second, as in KITTI


def frame_of(split: str, index: int, number: int) -> Frame:
    """The identity of a frame of the clip that begins as a scene."""
    clip = scene_id(split, index)
    return Frame(f"{clip}-{number:04d}", clip, number / HERTZ)


def check_scene(split: str, index: int, width: int, height: int, baseline: float) -> None:
    """Refuse invalid options of a scene."""
    if split not in SPLITS:
        raise UnknownName("split of the world", split, SPLITS, f"Splits: {', '.join(SPLITS)}.")
    if not 0 <= index <= LAST:
        raise InvalidOption(f"Scene {index} of split {split!r}: give 0 to {LAST}.")
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE):
        raise InvalidOption(
            f"Size {width}x{height}: each side must be {MIN_SIDE} to {MAX_SIDE} pixels, for example 512x320."
        )
    if not 0.0 < baseline <= 5.0:
        raise InvalidOption(
            f"Baseline {baseline}: it must be more than 0 and at most 5 metres; KITTI's is {BASELINE}."
        )


def _instances(
    view: CameraView, labels: npt.NDArray[np.int64], tracks: npt.NDArray[np.int64]
) -> tuple[Instances, npt.NDArray[np.int64]]:
    """The visible objects, in scene order; and their numbers in the scene."""
    extent, visible = np.zeros((len(view.framed), 4), np.int64), np.zeros(len(view.framed), np.int64)
    _measure(view.instance, extent, visible)
    numbers = np.flatnonzero(visible)
    boxes, area = extent[numbers], visible[numbers]
    objects = list(zip(numbers.tolist(), boxes.tolist(), strict=True))
    masks = [_encode(view.instance, n, *box) for n, box in objects]
    framed, whole = view.framed[numbers], view.whole[numbers]
    return Instances(
        boxes.astype(np.float64), labels[numbers - 1], tuple(masks), ignore=area < FEW,
        ids=np.arange(1, len(numbers) + 1), occlusion=1 - area / framed, truncation=1 - framed / whole,
        distance=np.array([_distance(view, n, *box) for n, box in objects]), tracks=tracks[numbers - 1],
    ), numbers  # fmt: skip


@kernel(allocates=False)
def _measure(instance: Any, extent: Any, visible: Any) -> None:
    """Box (x1, y1, x2, y2; the ends exclusive) and visible pixels of every instance."""
    height, width = instance.shape
    for y in range(height):
        for x in range(width):
            n = instance[y, x]
            if n == 0:
                continue
            if visible[n] == 0:
                extent[n, 0], extent[n, 1], extent[n, 2] = x, y, x + 1
            visible[n] += 1
            extent[n, 0] = min(extent[n, 0], x)
            extent[n, 2] = max(extent[n, 2], x + 1)
            extent[n, 3] = y + 1


def _distance(view: CameraView, number: int, x1: int, y1: int, x2: int, y2: int) -> float:
    """The median depth of what is seen of an object."""
    inside = view.instance[y1:y2, x1:x2] == number
    return float(np.median(view.depth[y1:y2, x1:x2][inside]))


def _encode(instance: npt.NDArray[np.int32], number: int, x1: int, y1: int, x2: int, y2: int) -> RLE:
    """The mask of one instance, found inside its box."""
    height, width = instance.shape
    inside = np.zeros((x2 - x1, height), np.bool_)
    inside[:, y1:y2] = number == instance[y1:y2, x1:x2].T
    flat = inside.ravel()
    turns = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    edges = np.concatenate(([0] if flat[0] else [], turns, [flat.size] if flat[-1] else [])) + x1 * height
    runs = np.diff(np.concatenate(([0], edges, [height * width])))
    return RLE((height, width), runs.astype(np.uint32))


def _truth(
    scene: Scene, view: CameraView, arrays: ObjectArrays | None
) -> tuple[Truth, npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    things = [p for p in scene.stage.placements if p.label >= 0]
    instances, numbers = _instances(view, np.array([p.label for p in things], np.int64), scene.tracks)
    if arrays is not None:
        areas = np.array([mask.area for mask in instances.masks or ()], np.int64)
        data = arrays(scene, view, [things[n - 1] for n in numbers], numbers, areas)
        instances = replace(instances, data=data)
    renumber = np.zeros(len(view.framed), np.int32)
    renumber[numbers] = np.arange(1, len(numbers) + 1)
    instance = renumber[view.instance]
    ids = (view.semantic.astype(np.int32) + 1) * SEGMENT_BASE + instance
    segments = np.where(view.semantic == VOID, 0, ids).astype(np.int32)
    few = np.unique(segments[np.isin(instance, 1 + np.flatnonzero(instances.ignore))])
    # Of stuff there is one segment: a sign too small to count is part of it.
    crowds = tuple(int(n) for n in few if n and SEMANTIC[n // SEGMENT_BASE - 1] in OBJECTS)
    return Truth(instances, SemanticMap(view.semantic, VOID), segments, crowds), instance, numbers


def render(
    seed: int,
    split: str,
    index: int,
    *,
    width: int = 512,
    height: int = 320,
    stereo: bool = False,
    baseline: float = BASELINE,
    frame: int | None = None,
    arrays: ObjectArrays | None = None,
) -> Rendered:
    """Render a scene, or a frame of the clip that begins as this scene: the image and all truth, with
    further `arrays` of its objects if asked.

    >>> render(0, "val", 0, width=64, height=48).sample.image.shape
    (48, 64, 3)
    """
    check_scene(split, index, width, height, baseline)
    scene = compose(seed, split, index, time=(frame or 0) / HERTZ)
    view = look(scene, width, height)
    truth, instance, numbers = _truth(scene, view, arrays)
    assert view.image is not None
    right = disparity = None
    camera = view.camera
    if stereo:
        right = look(scene, width, height, shift=baseline).image
        disparity = (np.float32(camera.fx * baseline) / view.depth).astype(np.float32)
        camera = Camera(camera.fx, camera.fy, camera.cx, camera.cy, baseline)
    context = Context(view.depth, camera, right, disparity)
    named = Frame(scene_id(split, index)) if frame is None else frame_of(split, index, frame)
    sample = Sample(
        named.id, view.image, truth, context, OBJECTS, SEMANTIC, sequence=named.sequence, time=named.time
    )
    things = [p for p in scene.stage.placements if p.label >= 0]
    shown = [things[n - 1] for n in numbers]
    return Rendered(sample, instance, solids(scene, shown), tuple(p.group for p in shown))


def render_truth(
    seed: int, split: str, index: int, *, width: int, height: int, frame: int | None = None,
    arrays: ObjectArrays | None = None,
) -> Truth:  # fmt: skip
    """The truth alone, without rendering the image."""
    check_scene(split, index, width, height, BASELINE)
    scene = compose(seed, split, index, shadows=False, time=(frame or 0) / HERTZ)
    return _truth(scene, look(scene, width, height), arrays)[0]
