"""Road signs, shop names and posters, drawn in coordinates from -1 to 1."""

from __future__ import annotations

import math

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.world.dice import chance, visible
from stormproof.world.materials import Colour

# Three by five dots per letter, one octal digit per row: A to Z, then 0 to 9.
_ROWS = (
    "25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755 57775 25552 65644 25563 "
    "65655 34216 72222 55557 55552 55775 55255 55222 71247 75557 26227 71747 71717 55711 74717 74757 71111 "
    "75757 75717"
)
GLYPHS = np.array([[int(digit) for digit in glyph] for glyph in _ROWS.split()], np.int64)
_STOP = (18, 19, 14, 15)


@kernel(allocates=False)
def letter(glyph: int, u: float, v: float) -> bool:
    """Whether (u, v) in the unit square, v up, is part of a letter."""
    if u < 0.0 or u >= 1.0 or v < 0.0 or v >= 1.0:
        return False
    row, column = 4 - int(v * 5.0), int(u * 3.0)
    return bool((GLYPHS[glyph, row] >> (2 - column)) & 1)


@kernel(allocates=False)
def word(u: float, v: float, count: int, seed: int) -> bool:
    """Whether (u, v) is part of a random word of `count` letters that fills the unit square."""
    at = u * count
    k = math.floor(at)
    if k < 0 or k >= count:
        return False
    glyph = int(chance(int(k), 7, seed) * 26.0)
    return letter(glyph, (at - k - 0.12) / 0.76, v)


@kernel(allocates=False)
def _blend(ink: bool, keep: float, on: Colour, off: Colour, mean: float) -> Colour:
    a = keep * (1.0 if ink else 0.0) + (1.0 - keep) * mean
    return on[0] * a + off[0] * (1 - a), on[1] * a + off[1] * (1 - a), on[2] * a + off[2] * (1 - a)


@kernel(allocates=False)
def sign(kind: int, u: float, v: float, seed: int, sharp: float) -> Colour:
    """A traffic sign's face; kinds as in `models.furniture`."""
    red, white, blue = (0.48, 0.02, 0.025), (0.75, 0.75, 0.72), (0.02, 0.10, 0.42)
    black, yellow, green = (0.02, 0.02, 0.02), (0.75, 0.48, 0.02), (0.01, 0.20, 0.09)
    keep = visible(0.07, sharp)
    r2 = u * u + v * v
    if kind == 0:  # stop
        reach = max(max(abs(u), abs(v)), (abs(u) + abs(v)) * 0.7071)
        if reach > 0.83:
            return white if reach < 0.90 else red
        k = math.floor((u + 0.68) / 0.34)
        ink = 0 <= k < 4 and letter(
            _STOP[min(3, max(0, k))], ((u + 0.68) / 0.34 - k - 0.1) / 0.8, (v + 0.27) / 0.54
        )
        return _blend(ink, keep, white, red, 0.25) if abs(v) < 0.3 else red
    if kind == 1:  # speed limit
        if r2 > 0.58:
            return red
        tens = 3 + int(chance(1, 2, seed) * 6.0)
        ink = letter(26 + tens, (u + 0.55) / 0.5, (v + 0.42) / 0.84) or letter(
            26, (u - 0.05) / 0.5, (v + 0.42) / 0.84
        )
        return _blend(ink, keep, black, white, 0.35)
    if kind == 2 or kind == 4:  # warning, give way
        w = v if kind == 2 else -v
        inner = w > -0.30 and abs(u) < (0.62 - w) * 0.56
        if not inner:
            return red
        if kind == 2 and abs(u) < 0.09 and (-0.02 < w < 0.38 or -0.2 < w < -0.08):
            return _blend(True, keep, black, white, 0.4)
        return white if chance(3, 3, seed) < 0.6 or kind == 4 else yellow
    if kind == 3:  # parking
        ink = letter(15, (u + 0.3) / 0.6, (v + 0.45) / 0.9)
        return _blend(ink, keep, white, blue, 0.3)
    if kind == 5:  # direction
        ground = blue if chance(5, 5, seed) < 0.5 else green
        if abs(u) > 0.96 or abs(v) > 0.9:
            return white
        line = v > 0.0
        ink = word(
            (u + 0.8) / 1.3, ((v - 0.15) / 0.6) if line else ((v + 0.75) / 0.6), 7, seed + (1 if line else 2)
        )
        arrow = u > 0.62 and abs(v) < 0.5 - abs(u - 0.76) * 3.0
        return _blend(ink or arrow, keep, white, ground, 0.25)
    if kind == 6:  # no entry
        return white if abs(u) < 0.7 and abs(v) < 0.17 else red
    if kind == 7:  # pedestrian crossing
        inside = v > -0.5 and abs(u) < (0.55 - v) * 0.6
        figure = inside and abs(u - 0.1 * v) < 0.09 + 0.06 * (1 if v < -0.1 else 0) and v < 0.35
        return black if figure else (white if inside else blue)
    if abs(u) > 0.95 or abs(v) > 0.85:
        return white
    return _blend(
        word((u + 0.85) / 1.7, (v + 0.6) / 1.2, 8, seed), keep, white,
        blue if chance(8, 1, seed) < 0.5 else green, 0.3,
    )  # fmt: skip


@kernel(allocates=False)
def poster(u: float, v: float, seed: int, one: Colour, two: Colour, sharp: float) -> Colour:
    """A board or lorry side in metres: a ground colour, a stripe or panel, a line of lettering."""
    draw = chance(1, 1, seed)
    style = 0 if draw < 0.4 else 1 if draw < 0.48 else 2 if draw < 0.65 else 3
    grey = 0.5 * chance(2, 4, seed)  # of the lettering, which is rarely colourful
    third = (
        grey + 0.25 * chance(2, 1, seed),
        grey + 0.2 * chance(2, 2, seed),
        grey + 0.25 * chance(2, 3, seed),
    )
    colour = one
    if (style == 0 and 0.45 < v < 0.85) or (style == 1 and (u * 0.4 + v * 0.3) % 1.0 < 0.35):
        colour = two
    elif style == 2 and (u * 0.31 + 0.2) % 1.0 < 0.5 and 0.25 < v % 1.7 < 1.45:
        colour = third
    line = v % 1.9
    if 1.15 < line < 1.7 and style != 1:
        ink = word((u % 4.0 - 0.3) / 3.2, (line - 1.2) / 0.45, 6, seed + int(v / 1.9))
        return _blend(ink, visible(0.14, sharp), third if style != 2 else two, colour, 0.3)
    return colour
