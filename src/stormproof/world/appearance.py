"""What each material looks like at a place on it, before any light falls there."""

from __future__ import annotations

import math

from stormproof.core.kernels import kernel
from stormproof.world.facade import Look, facade
from stormproof.world.lettering import poster, sign
from stormproof.world.looks import Marks, cloth, grass, hedge, paving, road
from stormproof.world.materials import (
    BARK,
    BOARD,
    CLOTH,
    FACADE,
    GLASS,
    GRASS,
    GRAVEL,
    HEDGE,
    LAMP,
    LEAF,
    PAINT,
    PAVING,
    ROAD,
    SIGN,
    TILES,
)
from stormproof.world.noise import band, chance, smooth, visible
from stormproof.world.surfaces import Surfaces


@kernel(inline=True)
def appearance(
    material: int,
    u: float,
    v: float,
    w: float,
    place: int,
    slot: int,
    surfaces: Surfaces,
    marks: Marks,
    sharp: float,
    along: float,
) -> Look:
    """A surface's own colour, gloss and glow.

    `sharp` is pixels per metre, `along` the same in the viewing direction on the ground.
    """
    palette, params = surfaces.palette, surfaces.params
    r, g, b = palette[place, slot, 0], palette[place, slot, 1], palette[place, slot, 2]
    seed = int(surfaces.seed[place])
    if material == ROAD:
        cr, cg, cb = road(u, v, marks, along, sharp)
        return cr, cg, cb, 0.0, 0.0
    if material == PAVING:
        k = paving(u, v, min(sharp, along * 2.0), params[place, 0], seed)
        return r * k, g * k, b * k, 0.0, 0.0
    if material in (GRASS, GRAVEL):
        k = grass(u, v, min(sharp, along * 2.5), seed)
        if material == GRAVEL:
            k = 1.0 + 0.4 * (k - 1.0)
            return r * k, g * k, b * k, 0.0, 0.0
        dry = smooth(u * 0.11, v * 0.13, seed + 4)
        return r * k * (0.8 + 0.8 * dry), g * k, b * k * (0.9 + 0.2 * dry), 0.0, 0.0
    if material == FACADE:
        return facade(u + v, w, params, palette, place, sharp, seed)
    if material == LEAF:
        k = (0.25 + 0.75 * u * u) * (0.65 + 0.7 * v) * (0.75 + 0.35 * w)
        return r * k * (0.85 + 0.3 * v), g * k, b * k, 0.0, 0.0
    if material == HEDGE:
        k = hedge(u, v, w, sharp, seed)
        return r * k, g * k, b * k, 0.0, 0.0
    if material == LAMP:
        return r, g, b, 0.15, 1.0
    if material == SIGN:
        cr, cg, cb = sign(int(params[place, 0]), u, v, seed, sharp)
        return cr, cg, cb, 0.02, 0.0
    if material == CLOTH:
        k = cloth(u + v, w, sharp, int(params[place, 0]) if slot == 2 else 0)
        fold = 0.88 + 0.26 * smooth(u * 11.0 + v * 7.0, w * 7.0, seed)
        r, g, b = (
            r + (palette[place, 6, 0] - r) * k,
            g + (palette[place, 6, 1] - g) * k,
            b + (palette[place, 6, 2] - b) * k,
        )
        return r * fold, g * fold, b * fold, 0.0, 0.0
    if material == BOARD:
        one = (float(r), float(g), float(b))
        two = (float(palette[place, 0, 0]), float(palette[place, 0, 1]), float(palette[place, 0, 2]))
        cr, cg, cb = poster(u + v + 50.0, w, seed, one, two, sharp)
        return cr, cg, cb, 0.02, 0.0
    if material == TILES:
        row = w * 3.2 + 0.0
        k = 1.0 - 0.35 * band(row - math.floor(row), 0.0, 0.3, sharp * 0.3125) * visible(0.2, sharp)
        k *= (
            0.85
            + 0.3 * smooth(u * 1.1 + w, v * 1.1, seed)
            + 0.25 * visible(0.2, sharp) * (chance(math.floor(row), math.floor((u + v) * 4.0), seed) - 0.5)
        )
        return r * k, g * k, b * k, 0.0, 0.0
    if material == GLASS:
        return r, g, b, 1.0, 0.0
    if material == PAINT:
        dirt = 0.8 + 0.2 * min(1.0, max(0.0, w * 1.5))
        return r * dirt, g * dirt, b * dirt, 0.35, 0.0
    k = 1.0
    if material == BARK:
        k = 0.6 + 0.8 * smooth((u + v) * 14.0, w * 2.5, seed)
    elif sharp > 8.0:
        k = 0.92 + 0.16 * smooth((u + v) * 3.0, w * 3.0, seed)
    return r * k, g * k, b * k, 0.0, 0.0
