"""Facades: storeys of windows in brick, plaster or panels, and shops on the ground floor."""

from __future__ import annotations

import math
from typing import Any

from stormproof.core.kernels import kernel
from stormproof.world.dice import band, chance, smooth, visible
from stormproof.world.lettering import word

# Columns of a building's parameters.
PITCH, STOREY, WIDE, TALL, GROUND, SHOP, STYLE, LIT = range(8)

Look = tuple[float, float, float, float, float]  # red, green, blue, gloss, glow


@kernel(allocates=False)
def _wall(u: float, z: float, params: Any, k: int, sharp: float, seed: int) -> float:
    """Bare wall: a factor around 1."""
    tone = 1.0 + 0.24 * (smooth(u * 0.9, z * 0.2, seed) - 0.5)
    if params[k, STYLE] == 1.0:  # brick
        row = math.floor(z / 0.09)
        shift = 0.5 * (row - 2.0 * math.floor(row / 2.0))
        column = math.floor(u / 0.26 + shift)
        keep = visible(0.08, sharp)
        joint = max(
            band(z / 0.09 - row, 0.0, 0.14, sharp * 0.09),
            band(u / 0.26 + shift - column, 0.0, 0.05, sharp * 0.26),
        )
        tone *= 1.0 + keep * (0.35 * (chance(int(row), int(column), seed) - 0.5) + 0.30 * joint)
    elif params[k, STYLE] == 2.0:  # panels
        joint = max(
            band(z % params[k, STOREY], 0.0, 0.05, sharp), band(u % params[k, PITCH], 0.0, 0.05, sharp)
        )
        tone *= 1.0 - 0.4 * joint
        tone *= 1.0 + 0.10 * (chance(int(u / params[k, PITCH]), int(z / params[k, STOREY]), seed) - 0.5)
    elif params[k, STYLE] == 4.0:  # boards
        joint = band(z / 0.22 - math.floor(z / 0.22), 0.0, 0.2, sharp * 0.22)
        tone *= 1.0 - 0.25 * joint * visible(0.15, sharp)
    return tone


@kernel(allocates=False)
def _shop(u: float, z: float, params: Any, palette: Any, k: int, sharp: float, seed: int) -> Look:
    """Ground floor: plinth, panes, a door, a name board above."""
    span = params[k, PITCH] * 3.0
    unit = math.floor(u / span)
    at = u - unit * span
    mine = seed + 31 * int(unit)
    r, g, b = palette[k, 2, 0], palette[k, 2, 1], palette[k, 2, 2]
    mix = chance(int(unit), 4, seed)
    if mix > 0.5:
        r, g, b = 0.25 * mix + 0.2 * g, 0.5 * r * mix + 0.05, 0.3 * b + 0.5 * (1 - mix)
    top = params[k, GROUND]
    if z > top - 0.75:
        if z > top - 0.08 or at < 0.06:
            return 0.08, 0.08, 0.08, 0.0, 0.0
        ink = word((at - span * 0.15) / (span * 0.7), (z - top + 0.62) / 0.42, 7, mine)
        keep = visible(0.12, sharp) * (1.0 if ink else 0.0) + (1.0 - visible(0.12, sharp)) * 0.25
        bright = 0.75 if r + g + b < 0.9 else 0.03
        return (
            r + (bright - r) * keep, g + (bright - g) * keep, b + (bright - b) * keep, 0.0,
            0.25 * params[k, LIT] * keep,
        )  # fmt: skip
    door = span * (0.38 + 0.3 * chance(int(unit), 5, seed))
    frame = (
        band(at, 0.0, 0.16, sharp)
        + band(at, door, door + 0.08, sharp)
        + band(at, door + 1.0, door + 1.08, sharp)
    )
    frame += band(at, span * 0.5, span * 0.5 + 0.06, sharp) + band(z, top - 0.85, top - 0.75, sharp)
    if not door < at < door + 1.0:
        frame += band(z, 0.0, 0.45, sharp)
    frame = min(1.0, frame)
    inside = 0.05 + 0.20 * smooth(at * 2.2, z * 2.2, mine) * chance(int(at * 1.5), int(z * 1.2), mine)
    glow = 0.5 * params[k, LIT] * (1.0 - frame)
    return (
        r * 0.7 * frame + inside * (1.0 - frame), g * 0.7 * frame + inside * 0.92 * (1.0 - frame),
        b * 0.7 * frame + inside * 0.8 * (1.0 - frame), 1.0 - frame, glow,
    )  # fmt: skip


@kernel(allocates=False)
def facade(u: float, z: float, params: Any, palette: Any, k: int, sharp: float, seed: int) -> Look:
    """The facade at u metres along and z metres up."""
    if params[k, SHOP] > 0.5 and z < params[k, GROUND]:
        return _shop(u, z, params, palette, k, sharp, seed)
    storey = math.floor((z - params[k, GROUND]) / params[k, STOREY])
    column = math.floor(u / params[k, PITCH])
    a, c = u - column * params[k, PITCH], z - params[k, GROUND] - storey * params[k, STOREY]
    wide, tall = params[k, WIDE] * params[k, PITCH], params[k, TALL] * params[k, STOREY]
    x0, z0 = 0.5 * (params[k, PITCH] - wide), 0.45 * (params[k, STOREY] - tall) + 0.1
    if storey < 0:  # a ground floor without shops has doors among its windows
        z0, tall = 0.9, params[k, GROUND] - 1.5
        c = z
        if chance(int(column), 9, seed) < 0.3:
            z0, tall = 0.1, params[k, GROUND] - 0.7
    opening = band(a, x0, x0 + wide, sharp) * band(c, z0, z0 + tall, sharp)
    border = band(a, x0 - 0.10, x0 + wide + 0.10, sharp) * band(c, z0 - 0.12, z0 + tall + 0.06, sharp)
    tone = _wall(u, z, params, k, sharp, seed)
    if params[k, STYLE] != 3.0 and visible(0.1, sharp) > 0.0:  # the shadow under each lintel
        opening_top = band(c, z0 + tall - 0.12, z0 + tall, sharp)
    else:
        opening_top = 0.0
    bars = band(a - x0 - 0.5 * wide, -0.03, 0.03, sharp) + band(c - z0 - 0.6 * tall, -0.03, 0.03, sharp)
    frame = min(1.0, bars + band(a - x0, 0.0, 0.06, sharp) + band(a - x0 - wide, -0.06, 0.0, sharp))
    who = chance(int(column), int(storey), seed + 7)
    drawn = 1.0 if (c - z0) > tall * (0.35 + 0.6 * who) and who < 0.75 else 0.0
    shade = 0.03 + 0.30 * drawn * chance(int(column), int(storey), seed + 8)
    glow = 0.6 * params[k, LIT] * (1.0 if chance(int(column), int(storey), seed + 9) < 0.4 else 0.0)
    pane = opening * (1.0 - frame)
    trim = max(0.0, border - opening) + opening * frame
    wall = max(0.0, 1.0 - pane - trim) * tone
    dim = 1.0 - 0.5 * opening_top
    return (
        wall * palette[k, 0, 0] + trim * palette[k, 1, 0] + pane * shade * dim,
        wall * palette[k, 0, 1] + trim * palette[k, 1, 1] + pane * shade * dim,
        wall * palette[k, 0, 2] + trim * palette[k, 1, 2] + pane * shade * 0.95 * dim,
        pane,
        glow * pane,
    )
