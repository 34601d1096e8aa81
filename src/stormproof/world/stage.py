"""Placed meshes, and all of them together as one list of triangles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.world.classes import VOID
from stormproof.world.materials import TWO_SIDED, Colour
from stormproof.world.mesh import Floats, Mesh

# Columns of `Surfaces.facts`: the 32 numbers of a triangle are contiguous, so that it is fetched at once.
_NORMALS, _TEXTURE, MATERIAL, SLOT, PLACE = 9, 18, 27, 28, 29


class Surfaces(NamedTuple):
    """Every triangle of a scene, and the look of the placements they belong to."""

    facts: Any  # n×32: first corner, gradients of the other corners' weights, normals, texture, identity
    palette: Any  # placements×8×3
    params: Any  # placements×8
    seed: Any  # placements


@kernel(allocates=False)
def gather(corners: Any, normals: Any, texture: Any, facts: Any) -> None:
    """Fill the columns of `facts` that depend on a triangle's shape.

    The gradients turn a point on the triangle into the weights of its second and third corner.
    """
    for t in range(corners.shape[0]):
        ax, ay, az = (
            corners[t, 1, 0] - corners[t, 0, 0],
            corners[t, 1, 1] - corners[t, 0, 1],
            corners[t, 1, 2] - corners[t, 0, 2],
        )
        bx, by, bz = (
            corners[t, 2, 0] - corners[t, 0, 0],
            corners[t, 2, 1] - corners[t, 0, 1],
            corners[t, 2, 2] - corners[t, 0, 2],
        )
        aa, ab, bb = ax * ax + ay * ay + az * az, ax * bx + ay * by + az * bz, bx * bx + by * by + bz * bz
        det = aa * bb - ab * ab
        det = 1.0 / det if det > 0.0 else 0.0
        p, q, r = bb * det, ab * det, aa * det
        facts[t, 0], facts[t, 1], facts[t, 2] = corners[t, 0, 0], corners[t, 0, 1], corners[t, 0, 2]
        facts[t, 3], facts[t, 4], facts[t, 5] = p * ax - q * bx, p * ay - q * by, p * az - q * bz
        facts[t, 6], facts[t, 7], facts[t, 8] = r * bx - q * ax, r * by - q * ay, r * bz - q * az
        for k in range(3):
            for axis in range(3):
                facts[t, _NORMALS + 3 * k + axis] = normals[t, k, axis]
                facts[t, _TEXTURE + 3 * k + axis] = texture[t, k, axis]


SLOTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """One mesh in the world: position, heading, scale, colours and classes.

    `ahead` is the unit direction of its y axis; `tilt` the slope of the ground in that direction. `label` is
    its object class, or -1; `group` joins a rider and a bicycle.
    """

    mesh: Mesh
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ahead: tuple[float, float] = (0.0, 1.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    colours: Sequence[Colour] = ()
    params: Sequence[float] = ()
    semantic: int = VOID
    label: int = -1
    tilt: float = 0.0
    seed: int = 0
    group: int = -1


@kernel(allocates=False)
def _put(mesh: Any, start: int, at: Any, ahead: Any, scale: Any, tilt: float, out: Any) -> None:
    """Write one placed mesh into the scene's arrays from triangle `start` on."""
    corners, normals, texture = mesh
    to_corners, to_normals, to_texture = out
    hx, hy = ahead
    sx, sy, sz = scale
    for t in range(corners.shape[0]):
        for k in range(3):
            x, y, z = corners[t, k, 0] * sx, corners[t, k, 1] * sy, corners[t, k, 2] * sz
            to_corners[start + t, k, 0] = at[0] + x * hy + y * hx
            to_corners[start + t, k, 1] = at[1] - x * hx + y * hy
            to_corners[start + t, k, 2] = at[2] + z + tilt * y
            to_texture[start + t, k, 0] = texture[t, k, 0] * sx
            to_texture[start + t, k, 1] = texture[t, k, 1] * sy
            to_texture[start + t, k, 2] = texture[t, k, 2] * sz
            x, y, z = normals[t, k, 0] / sx, normals[t, k, 1] / sy, normals[t, k, 2] / sz
            to_normals[start + t, k, 0] = x * hy + y * hx
            to_normals[start + t, k, 1] = -x * hx + y * hy
            to_normals[start + t, k, 2] = z


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Every triangle of a scene with its look, and the class of each placement."""

    corners: Floats  # n×3×3, metres
    material: npt.NDArray[np.uint8]
    place: npt.NDArray[np.int32]  # each triangle's placement
    surfaces: Surfaces
    two_sided: npt.NDArray[np.bool_]
    semantic: npt.NDArray[np.uint8]  # per placement
    instance: npt.NDArray[np.int32]  # per placement: 0 for none, else 1, 2, …
    placements: tuple[Placement, ...]


def assemble(placements: Sequence[Placement]) -> Stage:
    """All placements as one list of triangles, in order."""
    sizes = [len(p.mesh) for p in placements]
    total, count = sum(sizes), len(placements)
    solid = tuple(np.empty((total, 3, 3), np.float32) for _ in range(3))
    palette = np.zeros((count, SLOTS, 3), np.float32)
    params = np.zeros((count, SLOTS), np.float32)
    start = 0
    for k, p in enumerate(placements):
        _put((p.mesh.corners, p.mesh.normals, p.mesh.texture), start, p.at, p.ahead, p.scale, p.tilt, solid)
        start += sizes[k]
        if len(p.colours):
            palette[k, : len(p.colours)] = p.colours
        if len(p.params):
            params[k, : len(p.params)] = p.params
    facts = np.empty((total, 32), np.float32)
    gather(solid[0], solid[1], solid[2], facts)
    material = np.concatenate([p.mesh.material for p in placements])
    place = np.repeat(np.arange(count, dtype=np.int32), sizes)
    facts[:, MATERIAL], facts[:, PLACE] = material, place
    facts[:, SLOT] = np.concatenate([p.mesh.slot for p in placements])
    labels = np.array([p.label for p in placements])
    surfaces = Surfaces(facts, palette, params, np.array([p.seed for p in placements], np.int64))
    instance = np.where(labels >= 0, np.cumsum(labels >= 0), 0).astype(np.int32)
    return Stage(
        solid[0], material, place, surfaces, np.isin(material, TWO_SIDED),
        np.array([p.semantic for p in placements], np.uint8), instance, tuple(placements),
    )  # fmt: skip
