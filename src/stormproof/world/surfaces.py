"""Triangles with all that shading needs to know about them, laid out to be fetched at once."""

from __future__ import annotations

from typing import Any, NamedTuple

from stormproof.core.kernels import kernel

# Columns of `Surfaces.facts`: one triangle's 32 numbers lie together, so that shading fetches them at once.
_ORIGIN, _DUALS, _NORMALS, _TEXTURE, MATERIAL, SLOT, PLACE = 0, 3, 9, 18, 27, 28, 29


class Surfaces(NamedTuple):
    """Every triangle of a scene, and what the placements they belong to look like."""

    facts: Any  # n×32: first corner, gradients of the others' weights, normals, texture, what it is
    palette: Any  # placements×8×3
    params: Any  # placements×8
    seed: Any  # placements


@kernel(allocates=False)
def gather(corners: Any, normals: Any, texture: Any, facts: Any) -> None:
    """Fill all columns of `facts` that follow from a triangle's shape.

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
