"""Looking at a scene: the image, and for every pixel what is seen there and how far away it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Camera, Image
from stormproof.world.classes import SKY
from stormproof.world.mesh import Corners
from stormproof.world.raster import OFFSETS, cover, fill, project
from stormproof.world.scene import Scene, camera_at
from stormproof.world.shade import Sight, shade

PLANES = np.array([(0.0, 0.0), *OFFSETS])


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One look at a scene, all maps H×W."""

    depth: npt.NDArray[np.float32]  # metres along the optical axis, infinite for the sky
    instance: npt.NDArray[np.int32]  # 0 for none
    semantic: npt.NDArray[np.uint8]
    # Per instance, pixels it would cover on a frame three times as wide and high.
    whole: npt.NDArray[np.int64]
    framed: npt.NDArray[np.int64]  # per instance, pixels it would cover in the frame with nothing before it
    camera: Camera
    image: Image | None  # none for a scene without shadows


def _projected(
    scene: Scene, camera: Corners, width: int, height: int
) -> tuple[Corners, npt.NDArray[np.int32], int]:
    corners = scene.stage.corners
    screen = np.empty((2 * len(corners), 3, 3))
    source = np.empty(2 * len(corners), np.int32)
    window = np.array([-width, -height, 2 * width, 2 * height], np.float64)
    return (
        screen,
        source,
        project(
            corners, scene.stage.two_sided, camera, window, screen, source, np.empty((3, 3)), np.empty((4, 3))
        ),
    )


@kernel(allocates=False)
def _resolve(
    winners: Any, nearness: Any, owner: Any, classes: Any, depth: Any, instance: Any, semantic: Any
) -> None:
    """What the winning triangle of every pixel says about it."""
    height, width = winners.shape
    for y in range(height):
        for x in range(width):
            hit = winners[y, x]
            depth[y, x] = np.float32(1.0) / nearness[y, x] if hit >= 0 else np.float32(np.inf)
            instance[y, x] = owner[hit] if hit >= 0 else 0
            semantic[y, x] = classes[hit] if hit >= 0 else SKY


def look(scene: Scene, width: int, height: int, *, shift: float = 0.0) -> View:
    """See the scene from its camera, or from `shift` metres to the right of it.

    A scene without shadows is measured, not painted.
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
            camera,
            eye,
            scene.stage.surfaces,
            scene.plan.light,
            scene.shadows,
            scene.plan.street.marks,
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
    return View(depth, instance, semantic, whole, framed, pinhole, image)
