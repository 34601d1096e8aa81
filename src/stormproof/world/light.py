"""Sun, sky and shadow: the time of day, the light on a surface, and the look of the sky.

Colours are linear light; an image's grey level is its square root, because square roots are the same
on every machine and powers are not.
"""

from __future__ import annotations

import math
from math import sqrt
from typing import Any, NamedTuple

from stormproof.core.kernels import kernel
from stormproof.world.dice import Dice, smooth
from stormproof.world.materials import Colour, tone


class Light(NamedTuple):
    """The light at a time of day. Directions are unit vectors in the world: x right, y ahead, z up."""

    sun: Colour  # direction towards the sun
    lean: tuple[float, float]  # horizontal metres of its rays per metre of height
    beam: Colour  # light of the sun on a surface that faces it
    zenith: Colour
    horizon: Colour
    ambient: Colour  # light of the whole sky on a surface that faces up
    bounce: Colour  # light of the ground on a surface that faces down
    clouds: float  # fraction of the sky that they cover
    glow: float  # brightness of lamps and lit windows
    exposure: float
    seed: int


class Shadows(NamedTuple):
    """Height of the first surface that the sun's rays, or vertical rays, hit, on square cells of the ground.

    `near` and `far` are sun maps, `above` looks straight down. For each of the three, `frames` has the ground
    position (x, y) of its first cell and the number of cells per metre.
    """

    near: Any
    far: Any
    above: Any
    frames: Any


@kernel(inline=True)
def sky(dx: float, dy: float, dz: float, light: Light) -> Colour:
    """The clear sky in a direction: pale at the horizon, deep overhead, bright around the sun."""
    up = min(1.0, max(0.0, dz))
    k = (1.0 - up) * (1.0 - up)
    k = k * k * (0.6 + 0.4 * k)
    toward = max(0.0, dx * light.sun[0] + dy * light.sun[1] + dz * light.sun[2])
    halo = toward * toward
    halo = halo * halo
    halo = halo * halo
    wide = 0.10 * toward * toward + 0.35 * halo
    r = light.zenith[0] * (1.0 - k) + light.horizon[0] * k + wide * light.beam[0] * 0.30
    g = light.zenith[1] * (1.0 - k) + light.horizon[1] * k + wide * light.beam[1] * 0.28
    b = light.zenith[2] * (1.0 - k) + light.horizon[2] * k + wide * light.beam[2] * 0.25
    return r, g, b


@kernel(allocates=False)
def cloudy_sky(dx: float, dy: float, dz: float, light: Light) -> Colour:
    """The sky with its clouds, which lie on a plane far above."""
    r, g, b = sky(dx, dy, dz, light)
    if dz <= 0.015 or light.clouds <= 0.0:
        return r, g, b
    wide = 1.0 / (dz + 0.12)
    u, v = dx * wide, dy * wide
    form = 0.55 * smooth(u * 1.3, v * 1.3, light.seed) + 0.28 * smooth(u * 3.1, v * 3.1, light.seed + 1)
    form += 0.17 * smooth(u * 7.9, v * 7.9, light.seed + 2)
    cover = min(1.0, max(0.0, (form - (0.78 - 0.62 * light.clouds)) * 4.0))
    cover *= min(1.0, dz * 9.0)
    shade = 1.0 - 0.5 * min(1.0, max(0.0, (form - 0.45) * 2.2))
    lit = 0.55 + 0.6 * shade
    white = (light.ambient[0] + light.ambient[1] + light.ambient[2]) * 0.34
    cr, cg, cb = (
        (white + 0.30 * light.beam[0]) * lit,
        (white + 0.28 * light.beam[1]) * lit,
        (white + 0.27 * light.beam[2]) * lit,
    )
    return r + (cr - r) * cover, g + (cg - g) * cover, b + (cb - b) * cover


@kernel(inline=True)
def _blocked(heights: Any, u: float, v: float, z: float) -> float:
    """The fraction of the four cells around (u, v) that rise above z, weighted by proximity."""
    i, j = math.floor(v), math.floor(u)
    if i < 0 or j < 0 or i + 1 >= heights.shape[0] or j + 1 >= heights.shape[1]:
        return -1.0
    a, b = v - i, u - j
    total = (1.0 - a) * (1.0 - b) if heights[i, j] > z else 0.0
    total += (1.0 - a) * b if heights[i, j + 1] > z else 0.0
    total += a * (1.0 - b) if heights[i + 1, j] > z else 0.0
    return total + (a * b if heights[i + 1, j + 1] > z else 0.0)


@kernel(inline=True)
def shadow(
    x: float, y: float, z: float, nx: float, ny: float, nz: float, light: Light, maps: Shadows
) -> float:
    """The fraction of the sun that is hidden from a surface with the given normal."""
    lx, ly = light.lean
    frames = maps.frames
    off = 0.09
    px, py, pz = x + nx * off, y + ny * off, z + nz * off
    u, v = (px - lx * pz - frames[0, 0]) * frames[0, 2], (py - ly * pz - frames[0, 1]) * frames[0, 2]
    hidden = _blocked(maps.near, u, v, pz + 0.03)
    if hidden >= 0.0:
        return hidden
    off = 0.4
    px, py, pz = x + nx * off, y + ny * off, z + nz * off
    u, v = (px - lx * pz - frames[1, 0]) * frames[1, 2], (py - ly * pz - frames[1, 1]) * frames[1, 2]
    return max(0.0, _blocked(maps.far, u, v, pz + 0.10))


@kernel(inline=True)
def openness(x: float, y: float, z: float, nx: float, ny: float, maps: Shadows) -> float:
    """The fraction of the sky that is visible from a place: 1 in the open, less under and beside objects."""
    above, frames = maps.above, maps.frames
    rows, columns = above.shape
    closed = 0.0
    u, v = (x + 0.35 * nx - frames[2, 0]) * frames[2, 2], (y + 0.35 * ny - frames[2, 1]) * frames[2, 2]
    for k in range(6):
        # The distance in cells, and how strongly higher cells hide the sky.
        reach, steep = (1.2, 2.2) if k < 3 else (-5.2, 0.5)
        ox, oy = 0.0, reach
        if k % 3 > 0:
            ox, oy = (0.866 if k % 3 == 1 else -0.866) * reach, -0.5 * reach
        j, i = int(u + ox), int(v + oy)
        if 0 <= i < rows and 0 <= j < columns:
            closed += min(1.0, max(0.0, (above[i, j] - z - 0.12) * steep))
    return 1.0 - 0.11 * closed


def _unit(x: float, y: float, z: float) -> Colour:
    size = sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size


def _scaled(code: str, k: float) -> Colour:
    r, g, b = tone(code)
    return r * k, g * k, b * k


# Time of day: the sun's height per metre of ground; beam, zenith, horizon, ambient and bounce, each as
# colour and strength; the range of cloud cover.
# fmt: off
_HOURS = {
    "noon": ((1.0, 2.2), "fff4e2", 2.3, "5a8fd0", 0.75, "c4d8ee", 0.95, "b4cbea", 0.75,
        "a49a88", 0.40, (0.0, 0.65)),
    "morning": ((0.5, 0.9), "ffe6c0", 2.1, "6f9fd6", 0.75, "e2e0da", 0.95, "b0c4e4", 0.62,
        "a8967c", 0.36, (0.0, 0.6)),
    "golden": ((0.28, 0.45), "ffc680", 2.2, "6c8fc4", 0.62, "f4cf9c", 0.95, "a8b4d2", 0.50,
        "a88868", 0.34, (0.1, 0.7)),
    "overcast": ((1.0, 1.6), "ffffff", 0.0, "b4bcc6", 0.85, "ced3d8", 0.90, "d8dee6", 1.10,
        "a8a6a0", 0.55, (0.75, 1.0)),
    "bright": ((0.7, 1.4), "fffaf0", 0.9, "9cb4d2", 0.85, "dfe4e8", 0.95, "cdd6e2", 0.95,
        "aaa69c", 0.5, (0.5, 0.9)),
    "dusk": ((0.3, 0.5), "ffb070", 0.40, "4c6a9c", 0.60, "f2c096", 0.75, "96a0b6", 0.55,
        "7c7268", 0.30, (0.2, 0.7)),
}
# fmt: on
_WHEN = ("noon", "noon", "morning", "morning", "golden", "overcast", "overcast", "bright", "bright", "dusk")


def make_light(dice: Dice) -> Light:
    """A time of day, a position of the sun, some clouds."""
    hour = dice.pick(_WHEN)
    rise, beam, bk, zenith, zk, horizon, hk, ambient, ak, bounce, gk, clouds = _HOURS[hour]
    # The sun may stand in any direction, at a height of `rise` per metre of ground.
    x, y = dice.between(-1, 1), dice.between(-1, 1)
    flat = sqrt(x * x + y * y) + 1e-3
    up = dice.between(*rise)
    sun = _unit(x / flat, y / flat, up)
    warm = dice.between(0.92, 1.08)
    beam_at = _scaled(beam, bk * dice.between(0.8, 1.1))
    return Light(
        sun, (sun[0] / sun[2], sun[1] / sun[2]), (beam_at[0] * warm, beam_at[1], beam_at[2] / warm),
        _scaled(zenith, zk), _scaled(horizon, hk), _scaled(ambient, ak), _scaled(bounce, gk),
        dice.between(*clouds), 1.0 if hour == "dusk" else 0.25,
        dice.between(1.1, 1.65) * (1.7 if hour == "dusk" else 1.0), dice.integer(1 << 20),
    )  # fmt: skip
