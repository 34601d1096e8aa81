"""A scene is a pure function of (seed, split, index) and time: the same place at every image size.

A view of it is the image, and for every pixel the object seen there and its distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.randomness import Draw
from stormproof.core.sample import Camera, Image
from stormproof.world import roadside, traffic
from stormproof.world.classes import SKY
from stormproof.world.dice import Dice
from stormproof.world.light import Shadows
from stormproof.world.materials import LEAF, tones
from stormproof.world.mesh import Corners, Floats, Mesh
from stormproof.world.plan import StreetPlan, plan_street
from stormproof.world.raster import OFFSETS, cover, fill, project, project_parallel
from stormproof.world.shade import Sight, shade
from stormproof.world.stage import Placement, Stage, assemble
from stormproof.world.street import ground

SLABS = tones("9a9690 a8a298 8a8884 b4aca0 7c7a78 a89888")
KERBS = tones("b0aca4 9a9892 c4c0b8")
YARDS = tones("8c8880 9c9080 77746e a89c8c")
FIELDS = tones("56683c 626f42 4c5e38 70724c 666844 5c6440")


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A furnished street and its shadows, ready to be viewed."""

    plan: StreetPlan
    stage: Stage
    shadows: Shadows | None
    tracks: npt.NDArray[np.int64]  # of the objects on the stage: the same number at all times of a clip


def furnish(draw: Draw, plan: StreetPlan) -> list[Placement]:
    """All objects of the scene."""
    things, taken = list[Placement](), list[traffic.Spot]()
    for side, name in ((-1, "left"), (1, "right")):
        things += roadside.plots(Dice(draw, f"plots-{name}"), plan, side)
        things += roadside.kerbside(Dice(draw, f"kerb-{name}"), plan, side)
    things += roadside.skyline(Dice(draw, "skyline"), plan)
    things += roadside.junction(Dice(draw, "junction"), plan)
    things += roadside.signs(Dice(draw, "signs"), plan)
    vehicles = Dice(draw, "traffic")
    things += traffic.moving(vehicles, plan, taken)
    things += traffic.parked(vehicles, plan, taken)
    things += traffic.crossing(vehicles, plan, taken)
    people = Dice(draw, "people")
    things += traffic.cyclists(people, plan, taken)
    things += traffic.walkers(people, plan)
    things += traffic.crossers(people, plan)
    things += traffic.racks(people, plan)
    return things


def floor(draw: Draw, plan: StreetPlan) -> list[Placement]:
    """The ground everything stands on."""
    dice = Dice(draw, "ground")
    return [
        *ground(
            plan.street, dice.pick(SLABS), dice.pick(KERBS), dice.pick(FIELDS), dice.pick(YARDS),
            dice.between(0.3, 1.0), dice.integer(1 << 20),
        )
    ]  # fmt: skip


@lru_cache(maxsize=1024)
def extent(mesh: Mesh) -> tuple[list[float], list[float]]:
    """The smallest and largest coordinates of a mesh."""
    corners = mesh.corners.reshape(-1, 3)
    return corners.min(axis=0).tolist(), corners.max(axis=0).tolist()


@lru_cache(maxsize=1024)
def _reach(mesh: Mesh) -> float:
    """How far a mesh extends from its origin, along any axis."""
    low, high = extent(mesh)
    return max(-min(low), max(high))


def in_sight(things: list[Placement], plan: StreetPlan) -> list[Placement]:
    """The placements that may be visible or cast a shadow into the image, at any image size."""
    camera = camera_at(plan, 2, 2).tolist()
    (ex, ey), (rx, ry), (fx, fy) = camera[0:2], camera[3:5], camera[9:11]
    slope = 0.5 / plan.lens.focal
    kept = []
    for p in things:
        x, y, reach = p.at[0] - ex, p.at[1] - ey, 1.5 * _reach(p.mesh) * max(p.scale)
        ahead, aside = x * fx + y * fy, abs(x * rx + y * ry)
        if ahead > -reach - 6.0 and aside < slope * max(0.0, ahead) + reach + 9.0:
            kept.append(p)
    return kept


def _map(
    stage: Stage,
    rows: int,
    columns: int,
    frame: tuple[float, float, float],
    lean: tuple[float, float],
    left_out: int = -1,
) -> Floats:
    """Height of the first surface that parallel rays hit, on a grid of the ground."""
    flat = np.empty((len(stage.corners) + 1, 3, 3))
    count = project_parallel(stage.corners, *lean, *frame, flat, stage.material, left_out)
    heights = np.full((1, rows, columns), -100.0, np.float32)
    fill(flat, count, np.zeros((1, 2)), heights, np.empty((1, rows, columns), np.int32))
    return np.ascontiguousarray(heights[0])


def cast(plan: StreetPlan, stage: Stage) -> Shadows:
    """Sun maps, fine near the camera and coarse beyond, and a map from above."""
    lean = plan.light.lean
    sunny = plan.light.beam[0] > 0.0
    x, y, _ = plan.street.point(plan.lens.s, plan.lens.t)
    # First cell (x, y) and cells per metre.
    near, far, above = (x - 20.0, y - 4.0, 17.0), (x - 75.0, y - 20.0, 4.0), (x - 36.0, y - 4.0, 4.0)
    none = np.full((1, 1), -100.0, np.float32)
    return Shadows(
        _map(stage, 640, 680, near, lean) if sunny else none,
        _map(stage, 560, 600, far, lean) if sunny else none,
        _map(stage, 400, 290, above, (0.0, 0.0), LEAF),
        np.array([near, far, above]),
    )


def compose(seed: int, split: str, index: int, *, shadows: bool = True, time: float = 0.0) -> Scene:
    """The scene with this identity; without shadows if only its geometry is needed.

    `time` seconds into its clip, camera, vehicles and people have moved along the street. Vehicles on the
    cross street wait.
    """
    draw = Draw.keyed(seed, "world", split, index)
    plan = replace(plan_street(Dice(draw, "plan")), time=time)
    things = furnish(draw, plan)
    lens = plan.lens
    plan = replace(plan, lens=replace(lens, s=lens.s + lens.speed * time))
    stage = assemble(floor(draw, plan) + in_sight(things, plan))
    number = {id(thing): k for k, thing in enumerate(things)}
    tracks = [number[id(thing)] for thing in stage.placements if thing.label >= 0]
    return Scene(plan, stage, cast(plan, stage) if shadows else None, np.array(tracks, np.int64))


def camera_at(plan: StreetPlan, width: int, height: int, shift: float = 0.0) -> Corners:
    """The camera's 16 numbers (see `raster.project`), moved `shift` metres to its own right."""
    lens = plan.lens
    x, y, z = plan.street.point(lens.s, lens.t)
    hx, hy = plan.street.ahead(lens.s)
    fx, fy = hx + lens.yaw * hy, hy - lens.yaw * hx
    flat = sqrt(fx * fx + fy * fy)
    fx, fy = fx / flat, fy / flat
    size = sqrt(1.0 + lens.pitch * lens.pitch)
    forward = np.array([fx / size, fy / size, -lens.pitch / size])
    right = np.array([fy, -fx, 0.0])
    down = np.cross(forward, right)
    tilt = sqrt(1.0 + lens.roll * lens.roll)
    right, down = (right + lens.roll * down) / tilt, (down - lens.roll * right) / tilt
    eye = np.array([x, y, z + plan.street.ground(lens.t) + lens.height]) + shift * right
    return np.concatenate(
        [
            eye, right, down, forward,
            [lens.focal * width, (width - 1) / 2, (height - 1) / 2, 1.0 / (lens.focal * width)],
        ]
    )  # fmt: skip


PLANES = np.array([(0.0, 0.0), *OFFSETS])


@dataclass(frozen=True, slots=True, eq=False)
class CameraView:
    """One view of a scene; all maps are H×W."""

    depth: npt.NDArray[np.float32]  # metres along the optical axis, infinite for the sky
    instance: npt.NDArray[np.int32]  # 0 for none
    semantic: npt.NDArray[np.uint8]
    # Per instance, pixels it would cover on a frame three times as wide and high.
    whole: npt.NDArray[np.int64]
    framed: npt.NDArray[np.int64]  # per instance, pixels it would cover if nothing were in front of it
    camera: Camera
    image: Image | None  # none for a scene without shadows


def _projected(
    scene: Scene, camera: Corners, width: int, height: int
) -> tuple[Corners, npt.NDArray[np.int32], int]:
    corners = scene.stage.corners
    screen = np.empty((2 * len(corners), 3, 3))
    source = np.empty(2 * len(corners), np.int32)
    window = np.array([-width, -height, 2 * width, 2 * height], np.float64)
    view, cut = np.empty((3, 3)), np.empty((4, 3))
    count = project(corners, scene.stage.two_sided, camera, window, screen, source, view, cut)
    return screen, source, count


@kernel(allocates=False)
def _resolve(
    winners: Any, nearness: Any, owner: Any, classes: Any, depth: Any, instance: Any, semantic: Any
) -> None:
    """Depth, instance and class of the triangle that each pixel shows."""
    height, width = winners.shape
    for y in range(height):
        for x in range(width):
            hit = winners[y, x]
            depth[y, x] = np.float32(1.0) / nearness[y, x] if hit >= 0 else np.float32(np.inf)
            instance[y, x] = owner[hit] if hit >= 0 else 0
            semantic[y, x] = classes[hit] if hit >= 0 else SKY


def look(scene: Scene, width: int, height: int, *, shift: float = 0.0) -> CameraView:
    """View the scene from its camera, or from `shift` metres to the right of it.

    A scene without shadows gives the maps only, no image.
    """
    camera, eye = camera_at(scene.plan, width, height, shift), camera_at(scene.plan, width, height)[:3]
    screen, source, count = _projected(scene, camera, width, height)
    planes = 1 if scene.shadows is None else len(PLANES)
    nearness = np.zeros((planes, height, width), np.float32)
    winners = np.full((planes, height, width), -1, np.int32)
    fill(screen, count, PLANES, nearness, winners)
    image = None
    if scene.shadows is not None:
        sight = Sight(
            camera, eye, scene.stage.surfaces, scene.plan.light, scene.shadows, scene.plan.street.marks
        )
        image = shade(winners, nearness, source, PLANES, sight)
    place = scene.stage.place[source[:count]]
    owner = scene.stage.instance[place]
    whole, framed = np.zeros((2, int(scene.stage.instance.max(initial=0)) + 1), np.int64)
    stamp = np.zeros((3 * height, 3 * width), np.uint16)
    cover(screen, count, owner, stamp, width, height, whole, framed)
    depth, instance, semantic = (np.empty((height, width), kind) for kind in (np.float32, np.int32, np.uint8))
    _resolve(winners[0], nearness[0], owner, scene.stage.semantic[place], depth, instance, semantic)
    pinhole = Camera(float(camera[12]), float(camera[12]), float(camera[13]), float(camera[14]))
    return CameraView(depth, instance, semantic, whole, framed, pinhole, image)
