"""Where the joints of people appear in a view: truth for key points, in COCO's order and with its flags."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stormproof.core.joints import COCO_JOINTS, COCO_SIGMAS
from stormproof.core.sample import Floats, Ints
from stormproof.world.scene import CameraView, Scene, camera_at
from stormproof.world.stage import Placement

SMALL = 32**2  # pixels: people who show fewer have no labelled joints, as in COCO
_DEEP = 0.3  # metres: a joint lies at most so far behind the surface of its own body
_FACE, _FLAT = 3, 0.1  # nose and eyes lie on the surface: farther behind it, they are on the other side
HIDDEN, VISIBLE = 1, 2


def joint_data(
    scene: Scene, view: CameraView, shown: Sequence[Placement], numbers: Ints, areas: Ints
) -> dict[str, Floats]:
    """The key points of the shown objects, n×17×3, and their σ.

    A joint is visible where its pixel shows its own person no farther than `_DEEP` in front of it, hidden
    elsewhere in the image, and not labelled outside it. The face of somebody seen from behind is not labelled
    either, as COCO's annotators do.
    """
    height, width = view.depth.shape
    camera = camera_at(scene.plan, width, height)
    points = np.zeros((len(shown), len(COCO_JOINTS), 3))
    for k, (thing, number, area) in enumerate(zip(shown, numbers.tolist(), areas.tolist(), strict=True)):
        if thing.mesh.places and area >= SMALL:
            places = _in_camera(thing, camera)
            points[k] = _labelled(places, camera, view, number)
    return {"points": points, "sigmas": np.tile(COCO_SIGMAS, (len(shown), 1))}


def _in_camera(thing: Placement, camera: Floats) -> Floats:
    """The joints of a placed person in camera coordinates: right, down, forward, in metres."""
    x, y, z = (np.asarray(thing.mesh.places) * thing.scale).T
    hx, hy = thing.ahead
    world = np.stack([x * hy + y * hx, -x * hx + y * hy, z + thing.tilt * y], axis=1) + thing.at
    seen: Floats = (world - camera[:3]) @ camera[3:12].reshape(3, 3).T
    return seen


def _labelled(places: Floats, camera: Floats, view: CameraView, number: int) -> Floats:
    """x, y in pixels and the flag of each joint; pixel (0, 0) spans 0 to 1."""
    height, width = view.depth.shape
    ahead = np.maximum(places[:, 2], 1e-6)
    x, y = (camera[13 + axis] + camera[12] * places[:, axis] / ahead for axis in (0, 1))
    column, row = np.round(x).astype(np.int64), np.round(y).astype(np.int64)
    inside = (places[:, 2] > 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    at = row.clip(0, height - 1), column.clip(0, width - 1)
    behind = places[:, 2] - view.depth[at]  # its own surface, or that of what hides it
    own = view.instance[at] == number
    flags = np.where(own & (behind < _DEEP), VISIBLE, HIDDEN)
    flags[:_FACE][own[:_FACE] & (behind[:_FACE] > _FLAT)] = 0
    points = np.column_stack([x + 0.5, y + 0.5, flags]) * (flags > 0)[:, None]
    return np.where(inside[:, None], points, 0.0)
