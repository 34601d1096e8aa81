"""The look of each material at a point, without light.

The functions take a point on the surface and the resolution at which it is seen, in pixels per metre, and
return a factor or a colour. Patterns finer than a pixel fade to their mean, so that distant surfaces do not
flicker.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from stormproof.core.kernels import kernel
from stormproof.world.dice import band, chance, past, smooth, visible
from stormproof.world.facade import Look, facade
from stormproof.world.lettering import poster, sign
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
    Colour,
)
from stormproof.world.stage import Surfaces


class Marks(NamedTuple):
    """Road markings; lengths in metres, t to the right of the middle, s along the street."""

    half: float  # half the carriageway
    middle: float  # where the opposite directions meet
    lane: float  # lane width
    left: int  # lanes on the left of `middle`
    right: int
    centre: int  # 0 dashed, 1 solid, 2 double, 3 none
    edge: float  # 1 if a line runs along the kerb
    parking: float  # width of the parking strips, 0 for none
    crossing: float  # s of the cross street's middle, far away if there is none
    crossing_half: float
    zebra: float  # s of a pedestrian crossing, far away if there is none
    stripes: float  # 1 if crossings are striped, 0 if they are two thin lines
    tint: float  # brightness of the asphalt
    worn: float  # fraction of the paint that is worn off
    yellow: float  # 1 if the middle line is yellow
    bike: float  # width of bicycle lanes, 0 for none
    seed: int


@kernel(allocates=False)
def _zebra(s: float, t: float, at: float, reach: float, m: Marks, ds: float, dt: float) -> float:
    """A pedestrian crossing of a road: `s` runs along that road, `t` across it."""
    if abs(s - at) > 2.5 or abs(t) > reach:
        return 0.0
    if m.stripes > 0.5:
        stripe = t - math.floor(t)
        return band(s, at - 1.6, at + 1.6, ds) * band(stripe, 0.22, 0.72, dt)
    return band(s, at - 1.6, at - 1.4, ds) + band(s, at + 1.4, at + 1.6, ds)


@kernel(allocates=False)
def _lines(s: float, t: float, m: Marks, ds: float, dt: float) -> tuple[float, float]:
    """Lines along the road: paint coverage of all lines, and of the middle line."""
    dash = band(s - 9.0 * math.floor(s * (1.0 / 9.0)), 0.0, 3.5, ds)
    paint = 0.0
    for k in range(1, m.right):
        paint += dash * band(t - (m.middle + k * m.lane), -0.06, 0.06, dt)
    for k in range(1, m.left):
        paint += dash * band(t - (m.middle - k * m.lane), -0.06, 0.06, dt)
    if m.edge > 0.5:
        paint += band(abs(t) - (m.half - m.parking - 0.25), -0.06, 0.06, dt)
    if m.bike > 0.0:
        paint += band(abs(t) - (m.half - m.parking - m.bike), -0.07, 0.07, dt)
    if m.parking > 0.0:
        bay = abs(s - 6.0 * math.floor(s / 6.0) - 3.0)
        paint += band(bay, 0.0, 0.05, ds) * past(abs(t), m.half - m.parking, dt)
    middle = 0.0
    if m.left > 0 and m.right > 0:
        if m.centre == 0:
            middle = dash * band(t - m.middle, -0.07, 0.07, dt)
        elif m.centre == 1:
            middle = band(t - m.middle, -0.07, 0.07, dt)
        elif m.centre == 2:
            middle = band(abs(t - m.middle), 0.08, 0.20, dt)
    return paint, middle


@kernel(allocates=False)
def road(s: float, t: float, m: Marks, ds: float, dt: float) -> Colour:
    """Asphalt with patches, tracks, covers and paint."""
    sharp = min(ds * 2.5, dt)
    coarse = smooth(s * 0.23, t * 0.35, m.seed) - 0.5
    tone = m.tint * (1.0 + 0.30 * coarse)
    keep = visible(0.11, sharp)
    if keep > 0.0:
        fine = smooth(s * 9.0, t * 9.0, m.seed + 1) - 0.5
        grain = (chance(math.floor(s * 45.0), math.floor(t * 45.0), m.seed) - 0.5) * visible(0.03, sharp)
        crack = abs(smooth(s * 0.35 + 0.2 * fine, t * 1.1 + 0.3 * fine, m.seed + 5) - 0.5)
        tone *= 1.0 + keep * (
            0.16 * fine + 0.25 * grain - 0.18 * visible(0.05, sharp) * max(0.0, 1.0 - crack * 110.0)
        )
    pu, pv = s * 0.137, t * 0.37 + 0.4
    px, py = math.floor(pu), math.floor(pv)
    if chance(px, py, m.seed + 2) < 0.10:
        inset = band(pu - px, 0.15, 0.8, ds * 7.3) * band(pv - py, 0.1, 0.75, dt * 2.7)
        tone *= 1.0 - 0.28 * inset
    across = abs(s - m.crossing) < m.crossing_half
    if not across:
        lanes = (t - m.middle) / m.lane
        lane_at = abs(lanes - math.floor(lanes) - 0.5)
        tone *= 1.0 - 0.10 * max(0.0, 1.0 - abs(lane_at - 0.25) * 8.0)
    cx, cy = s - 31.0 * math.floor(s * (1.0 / 31.0)) - 12.0, t - m.middle - 0.45 * m.lane
    if abs(cy) < 0.4 and abs(cx) < 0.4 and cx * cx + cy * cy < 0.1225:
        tone *= 0.62
    paint, middle = 0.0, 0.0
    if across:
        if abs(t) > m.half:
            paint = _zebra(abs(t), s - m.crossing, m.half + 3.0, m.crossing_half, m, dt, ds)
            dash = band(t - 9.0 * math.floor(t / 9.0), 0.0, 3.5, dt)
            if abs(t) > m.half + 6.0:
                paint += dash * band(s - m.crossing, -0.07, 0.07, ds)
    else:
        free = abs(s - m.crossing) > m.crossing_half + 6.0
        if abs(t) < m.half:
            if free and abs(s - m.zebra) > 3.2:
                paint, middle = _lines(s, t, m, ds, dt)
            paint += _zebra(s, t, m.zebra, m.half, m, ds, dt)
            paint += _zebra(abs(s - m.crossing), t, m.crossing_half + 2.6, m.half, m, ds, dt)
            stop = abs(s - m.crossing) - (m.crossing_half + 5.4)
            if (s < m.crossing) == (t > m.middle):
                paint += band(stop, -0.2, 0.2, ds)
    if paint + middle <= 0.0:
        return tone, tone, tone * 1.03
    wear = smooth(s * 3.1, t * 3.1, m.seed + 3)
    strength = min(1.0, max(0.0, 1.0 - m.worn * (0.35 + 1.3 * wear)))
    paint, middle = min(1.0, paint) * strength, min(1.0, middle) * strength
    white = 0.62
    r = tone * (1.0 - paint - middle) + white * (paint + middle)
    g = tone * (1.0 - paint - middle) + white * (paint + middle * (1.0 - 0.35 * m.yellow))
    b = tone * 1.03 * (1.0 - paint - middle) + white * (paint + middle * (1.0 - 0.85 * m.yellow))
    return r, g, b


@kernel(allocates=False)
def paving(s: float, t: float, sharp: float, slab: float, seed: int) -> float:
    """Slabs with joints: a factor around 1."""
    row = math.floor(s / slab)
    shift = 0.5 * (row - 2.0 * math.floor(row / 2.0))
    column = math.floor(t / slab + shift)
    u, v = s / slab - row, t / slab + shift - column
    keep = visible(slab * 0.5, sharp)
    tone = 1.0 + 0.16 * keep * (chance(int(row), int(column), seed) - 0.5)
    joint = max(band(u, 0.0, 0.035, sharp * slab), band(v, 0.0, 0.035, sharp * slab))
    tone *= 1.0 - 0.35 * joint * visible(0.17, sharp)
    return tone * (1.0 + 0.25 * (smooth(s * 0.4, t * 0.4, seed + 1) - 0.5))


@kernel(allocates=False)
def grass(s: float, t: float, sharp: float, seed: int) -> float:
    """Lawn and rough ground: a factor around 1."""
    tone = 1.0 + 0.5 * (smooth(s * 0.35, t * 0.5, seed) - 0.5)
    keep = visible(0.25, sharp)
    if keep > 0.0:
        tone += 0.5 * keep * (smooth(s * 3.0, t * 4.0, seed + 1) - 0.5)
        tone += 0.7 * visible(0.05, sharp) * (smooth(s * 17.0, t * 23.0, seed + 2) - 0.5)
    return tone


@kernel(allocates=False)
def hedge(x: float, y: float, z: float, sharp: float, seed: int) -> float:
    """Dense clipped leaves: a factor around 1, with dark gaps."""
    u, v = x + 0.6 * y, z + 0.3 * y
    tone = 0.85 + 0.7 * visible(0.3, sharp) * (smooth(u * 2.7, v * 2.7, seed) - 0.5)
    tone += 1.0 * visible(0.1, sharp) * (smooth(u * 9.0, v * 9.0, seed + 1) - 0.5)
    return max(0.15, tone + 0.25 * (smooth(u * 0.2, v * 0.3, seed + 2) - 0.5))


@kernel(allocates=False)
def cloth(x: float, z: float, sharp: float, pattern: int) -> float:
    """Plain, striped across, striped down or checked clothing: 0 for the first colour, 1 for the second."""
    if pattern == 1:
        return band(z * 9.0 - math.floor(z * 9.0), 0.0, 0.5, sharp * (1.0 / 9.0))
    if pattern == 2:
        return band(x * 14.0 - math.floor(x * 14.0), 0.0, 0.4, sharp * (1.0 / 14.0))
    if pattern == 3:
        a = band(z * 8.0 - math.floor(z * 8.0), 0.0, 0.5, sharp * 0.125)
        b = band(x * 8.0 - math.floor(x * 8.0), 0.0, 0.5, sharp * 0.125)
        return a + b - 2.0 * a * b
    return 0.0


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
    """The colour, gloss and glow of a surface.

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
        row = w * 3.2
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
