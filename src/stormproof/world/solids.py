"""Objects as boxes in space, in camera coordinates: x right, y down, z ahead, metres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2

from stormproof.world.scene import Scene, camera_at, extent
from stormproof.world.stage import Placement


@dataclass(frozen=True, slots=True)
class Solid:
    """An upright box: height, width, length; the middle of its bottom; its turn about the vertical axis.

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
        """The angle it is seen under: its turn less the direction it lies in."""
        angle = self.turn - atan2(self.at[0], self.at[2])
        return (angle + 3.141592653589793) % 6.283185307179586 - 3.141592653589793


def solids(scene: Scene, placements: Sequence[Placement]) -> tuple[Solid, ...]:
    """The box of each placement; small rolls and pitches of the camera are part of its position only."""
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
                (high[2] - low[2]) * sz,
                (high[0] - low[0]) * sx,
                (high[1] - low[1]) * sy,
                (at[0], at[1], at[2]),
                -atan2(along, across),
            )
        )
    return tuple(out)
