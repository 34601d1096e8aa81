"""Shading: the colour of each pixel, given the triangle that it shows.

The colour of a surface depends on its position in the world, not in the image, and mirrored sky is computed
for one eye; so both images of a stereo pair show the same surfaces.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.world.light import Light, Shadows, cloudy_sky, openness, shadow, sky
from stormproof.world.looks import Marks, appearance
from stormproof.world.materials import LEAF
from stormproof.world.stage import MATERIAL, PLACE, SLOT, Surfaces


class Sight(NamedTuple):
    """Everything that determines the colour of a sample: camera, surfaces and light."""

    camera: Any  # 16 numbers, see `raster.project`
    eye: Any  # the position from which mirrored sky is seen
    surfaces: Surfaces
    light: Light
    maps: Shadows
    marks: Marks


@kernel(allocates=False)
def _mirrored(x: float, y: float, z: float, sunlit: float, light: Light) -> tuple[float, float, float]:
    """What a glossy surface reflects in a direction: the sky, the sun, or the other side of the street."""
    r, g, b = sky(x, y, z, light)
    dim = min(1.0, max(0.12, 0.35 + 2.5 * z))
    spot = max(0.0, x * light.sun[0] + y * light.sun[1] + z * light.sun[2])
    spot = spot * spot
    spot = spot * spot
    spot = spot * spot
    spot = 1.5 * spot * spot * spot * sunlit
    return r * dim + spot * light.beam[0], g * dim + spot * light.beam[1], b * dim + spot * light.beam[2]


@kernel(inline=True)
def _surface(t: int, x: float, y: float, nearness: float, sight: Sight) -> tuple[float, float, float]:
    """The light that triangle t sends along the ray through image position (x, y)."""
    camera, eye, surfaces, light, maps, marks = sight
    facts = surfaces.facts
    depth = 1.0 / nearness
    wide = depth * camera[15]
    a, c = (x - camera[13]) * wide, (y - camera[14]) * wide
    px = camera[0] + a * camera[3] + c * camera[6] + depth * camera[9]
    py = camera[1] + a * camera[4] + c * camera[7] + depth * camera[10]
    pz = camera[2] + a * camera[5] + c * camera[8] + depth * camera[11]
    ox, oy, oz = px - facts[t, 0], py - facts[t, 1], pz - facts[t, 2]
    b1 = ox * facts[t, 3] + oy * facts[t, 4] + oz * facts[t, 5]
    b2 = ox * facts[t, 6] + oy * facts[t, 7] + oz * facts[t, 8]
    b0 = 1.0 - b1 - b2
    nx = b0 * facts[t, 9] + b1 * facts[t, 12] + b2 * facts[t, 15]
    ny = b0 * facts[t, 10] + b1 * facts[t, 13] + b2 * facts[t, 16]
    nz = b0 * facts[t, 11] + b1 * facts[t, 14] + b2 * facts[t, 17]
    size = 1.0 / (math.sqrt(nx * nx + ny * ny + nz * nz) + 1e-9)
    nx, ny, nz = nx * size, ny * size, nz * size
    u = b0 * facts[t, 18] + b1 * facts[t, 21] + b2 * facts[t, 24]
    v = b0 * facts[t, 19] + b1 * facts[t, 22] + b2 * facts[t, 25]
    w = b0 * facts[t, 20] + b1 * facts[t, 23] + b2 * facts[t, 26]
    vx, vy, vz = px - eye[0], py - eye[1], pz - eye[2]
    size = 1.0 / math.sqrt(vx * vx + vy * vy + vz * vz)
    vx, vy, vz = vx * size, vy * size, vz * size
    facing = -(vx * nx + vy * ny + vz * nz)
    material = int(facts[t, MATERIAL])
    if material == LEAF and facing < 0.0 and nx * light.sun[0] + ny * light.sun[1] + nz * light.sun[2] < 0.0:
        nx, ny = -0.5 * nx, -0.5 * ny
    sharp = camera[12] * nearness
    along = sharp * max(0.02, abs(facing))
    place = int(facts[t, PLACE])
    r, g, b, gloss, glow = appearance(
        material, u, v, w, place, int(facts[t, SLOT]), surfaces, marks, sharp, along
    )
    free = openness(px, py, pz, nx, ny, maps) if material != LEAF and depth < 70.0 else 1.0
    direct = nx * light.sun[0] + ny * light.sun[1] + nz * light.sun[2]
    if material == LEAF:
        direct = 0.25 + 0.75 * direct  # light passes through leaves
    if direct > 0.0 and light.beam[0] > 0.0:
        direct *= 1.0 - shadow(px, py, pz, nx, ny, nz, light, maps)
    direct = max(0.0, direct)
    up = 0.5 + 0.5 * nz
    shine = glow * light.glow
    out_r = r * (
        direct * light.beam[0] + free * (up * light.ambient[0] + (1.0 - up) * light.bounce[0]) + shine * 1.6
    )
    out_g = g * (
        direct * light.beam[1] + free * (up * light.ambient[1] + (1.0 - up) * light.bounce[1]) + shine * 1.4
    )
    out_b = b * (
        direct * light.beam[2] + free * (up * light.ambient[2] + (1.0 - up) * light.bounce[2]) + shine * 1.0
    )
    if gloss > 0.0:
        mx, my, mz = vx + 2.0 * facing * nx, vy + 2.0 * facing * ny, vz + 2.0 * facing * nz
        grazing = 1.0 - min(1.0, max(0.0, facing))
        mirror = gloss * (0.10 + 0.90 * grazing * grazing * grazing) * (0.4 + 0.6 * free)
        mr, mg, mb = _mirrored(mx, my, mz, min(1.0, direct * 4.0), light)
        out_r, out_g, out_b = out_r + mirror * mr, out_g + mirror * mg, out_b + mirror * mb
    return out_r, out_g, out_b


@kernel(inline=True)
def _same_surface(one: int, two: int, source: Any, facts: Any) -> bool:
    """Whether two screen triangles belong to one smooth surface, without a visible edge between them."""
    if one == two:
        return True
    if one < 0 or two < 0:
        return False
    a, b = source[one], source[two]
    if (
        facts[a, PLACE] != facts[b, PLACE]
        or facts[a, MATERIAL] != facts[b, MATERIAL]
        or facts[a, SLOT] != facts[b, SLOT]
    ):
        return False
    if facts[a, MATERIAL] == LEAF:
        return True
    return bool(facts[a, 9] * facts[b, 9] + facts[a, 10] * facts[b, 10] + facts[a, 11] * facts[b, 11] > 0.9)


@kernel(inline=True)
def _sample(
    hit: int, x: float, y: float, nearness: float, source: Any, sight: Sight
) -> tuple[float, float, float]:
    """The displayed colour, from 0 to 1, at one image position."""
    camera, light = sight.camera, sight.light
    if hit >= 0:
        r, g, b = _surface(source[hit], x, y, nearness, sight)
    else:
        a, c = (x - camera[13]) * camera[15], (y - camera[14]) * camera[15]
        dx, dy, dz = (
            a * camera[3] + c * camera[6] + camera[9],
            a * camera[4] + c * camera[7] + camera[10],
            a * camera[5] + c * camera[8] + camera[11],
        )
        size = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz)
        r, g, b = cloudy_sky(dx * size, dy * size, dz * size, light)
    # Reinhard's curve with white at 2.5, applied to the strongest channel, so that hue is kept.
    most = max(r, g, b) * light.exposure
    k = light.exposure * (1.0 + most * 0.16) / (1.0 + most)
    return math.sqrt(min(1.0, r * k)), math.sqrt(min(1.0, g * k)), math.sqrt(min(1.0, b * k))


@kernel(allocates=False)
def _edges(winners: Any, source: Any, facts: Any, work: Any) -> int:
    """List the samples to shade as (plane, row, column): all centres, and all planes where surfaces meet."""
    planes, height, width = winners.shape
    count = 0
    for y in range(height):
        for x in range(width):
            last = 1
            for k in range(1, planes):
                if last == 1 and not _same_surface(winners[0, y, x], winners[k, y, x], source, facts):
                    last = planes
            for k in range(last):
                work[count, 0], work[count, 1], work[count, 2] = k, y, x
                count += 1
    return count


@kernel(allocates=False)
def _paint(
    work: Any, count: int, winners: Any, nearness: Any, source: Any, offsets: Any, sight: Sight, out: Any
) -> None:
    """Shade the samples in order; a pixel is the mean of its samples."""
    r, g, b, n = 0.0, 0.0, 0.0, 0
    for i in range(count):
        k, y, x = work[i, 0], work[i, 1], work[i, 2]
        p, q, s = _sample(
            winners[k, y, x], x + offsets[k, 0], y + offsets[k, 1], nearness[k, y, x], source, sight
        )
        r, g, b, n = r + p, g + q, b + s, n + 1
        if i + 1 == count or work[i + 1, 0] == 0:
            out[y, x, 0] = int(r / n * 255.0 + 0.5)
            out[y, x, 1] = int(g / n * 255.0 + 0.5)
            out[y, x, 2] = int(b / n * 255.0 + 0.5)
            r, g, b, n = 0.0, 0.0, 0.0, 0


def shade(winners: Any, nearness: Any, source: Any, offsets: Any, sight: Sight) -> Any:
    """Paint the image: plane 0 has the pixel centres; where other planes differ, all are averaged."""
    work = np.empty((winners.size, 3), np.int16)
    count = _edges(winners, source, sight.surfaces.facts, work)
    out = np.empty((*winners.shape[1:], 3), np.uint8)
    _paint(work, count, winners, nearness, source, offsets, sight, out)
    return out
