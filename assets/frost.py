"""Draws the five images of ice that `frost` ships with.

    python assets/frost.py    writes src/stormproof/corruptions/frost/*.webp

The images are a build product that is kept: a worker that drew them itself would need forty megabytes
and most of a second for it. tests/corruptions/test_textures.py draws them again and compares the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image

from crystals import HALF, QUARTER, Size, at, cloud, ferns, paint, seeds, strokes
from stormproof import imaging
from stormproof.core.randomness import Draw
from stormproof.core.sample import Floats, Image
from stormproof.corruptions.textures import BUILT_IN
from stormproof.imaging import Field

Colour = tuple[float, float, float]


def _ground(draw: Draw, size: Size, base: float, patches: float, film: float) -> Field:
    """What shows between the crystals: broad clear and dull patches under a film of fine frozen mist."""
    broad = cloud(draw, "patches", size, 4, 0.55)
    fine = cloud(draw, "film", size, 1, 0.8)
    specks = draw.uniform_field("specks", size, -0.5, 0.5)
    return np.float32(base) + np.float32(patches) * broad + np.float32(film) * (fine + specks)


def _rim(size: Size) -> Field:
    """1 on the frame of the window, 0 at its centre."""
    y = np.abs(np.arange(size[0], dtype=np.float32) * np.float32(2 / (size[0] - 1)) - 1)
    x = np.abs(np.arange(size[1], dtype=np.float32) * np.float32(2 / (size[1] - 1)) - 1)
    nearer: Field = np.maximum(y[:, None], x)
    return nearer


def _frame(draw: Draw, size: Size, count: int) -> tuple[Field, Field, Field]:
    """Points on the left, upper, right and lower edge in turn, and the direction into the image."""
    side = np.arange(count) % 4
    along = draw.uniform_field("frame", (count,), 0, 1)
    y = np.choose(side, [along, np.zeros_like(along), along, np.ones_like(along)]) * np.float32(size[0])
    x = np.choose(side, [np.zeros_like(along), along, np.ones_like(along), along]) * np.float32(size[1])
    return y, x, side.astype(np.float32) * QUARTER


def _spread(draw: Draw, name: str, like: Field, low: float, high: float) -> Field:
    return draw.uniform_field(name, like.shape, low, high)


def _bundles(draw: Draw, name: str, like: Field, blades: int, low: float, high: float) -> Field:
    """A random number that the blades of a bundle share."""
    return np.repeat(draw.uniform_field(name, (like.size // blades,), low, high), blades)


def _feathers(draw: Draw, size: Size) -> Field:
    """Long curling feathers of clear ice over a crumpled sheet, seen by the light on their relief."""
    folds = np.abs(cloud(draw, "folds", size, 2, 0.68)) + np.abs(cloud(draw, "creases", size, 1, 0.72))
    slope = np.zeros(size, np.float32)
    slope[1:, 1:] = folds[1:, 1:] - folds[:-1, :-1]
    ground = _ground(draw, size, 0.4, 0.45, 0.06) + np.clip(2 * slope, -0.4, 0.6)
    y, x = seeds(draw, "feathers", size, 44)
    stems = strokes(
        y, x, _spread(draw, "turn", y, 0, 1), _spread(draw, "bend", y, -0.014, 0.014),
        _spread(draw, "length", y, 40, 150), at(ground, y, x) + _spread(draw, "light", y, 0.1, 0.8),
        width=0.8, facet=0.3,
    )  # fmt: skip
    drawn = ferns(draw, "feather", stems, pitch=4.5, lean=0.1, ratio=0.28, sheet=0.35)
    return paint(draw, "feather", ground, drawn) + np.clip(2 * slope, -0.25, 0.4)


def _sheaves(draw: Draw, size: Size) -> Field:
    """Sheaves of long flat needles, lying thick over one another."""
    blades = 9
    ground = _ground(draw, size, 0.5, 0.3, 0.2)
    y, x = seeds(draw, "sheaves", size, 17, blades)
    turns = _bundles(draw, "turn", y, blades, 0, 1) + _spread(draw, "fan", y, -0.04, 0.04)
    y, x = y + _spread(draw, "down", y, -9, 9), x + _spread(draw, "across", x, -9, 9)
    light = _spread(draw, "light", y, 0.6, 0.95) + np.float32(0.4) * at(ground, y, x) - np.float32(0.2)
    needles = strokes(
        y, x, turns, _spread(draw, "bend", y, -0.003, 0.003), _spread(draw, "length", y, 12, 62),
        light, width=1.6, facet=0.14,
    )  # fmt: skip
    return paint(draw, "needle", ground, needles)


def _stars(draw: Draw, size: Size) -> Field:
    """Needle stars of many sizes, frozen into dense white hoar with clearer patches."""
    arms = 7
    ground = _ground(draw, size, 0.55, 0.35, 0.25)
    y, x = seeds(draw, "stars", size, 24, arms)
    sixths = np.tile(np.arange(arms, dtype=np.float32) * np.float32(1 / 6), y.size // arms)
    turns = sixths + _bundles(draw, "turn", y, arms, 0, 1) + _spread(draw, "skew", y, -0.03, 0.03)
    light = HALF * at(ground, y, x) + _bundles(draw, "light", y, arms, 0.25, 0.55)
    stems = strokes(
        y, x, turns, _spread(draw, "bend", y, -0.004, 0.004),
        _bundles(draw, "length", y, arms, 6, 50) * _spread(draw, "arm", y, 0.3, 1.1),
        light, width=1.0, facet=0.15,
    )  # fmt: skip
    drawn = ferns(draw, "star", stems, pitch=4, lean=1 / 6, ratio=0.36, sheet=0.5)
    return paint(draw, "star", ground, drawn)


def _rime(draw: Draw, size: Size) -> Field:
    """Granular rime, run down the pane in drips, with tufts of small leaves and clear gaps."""
    ground = _ground(draw, size, 0.4, 0.4, 0.2)
    noise = draw.uniform_field("drips", size, -2, 2)
    ground += imaging.gaussian_field(noise, (18.0, 1.2), truncate=2.0, rule="reflect")
    y, x = seeds(draw, "grains", size, 3.4)
    here = at(ground, y, x)
    grains = strokes(
        y, x, _spread(draw, "turn", y, 0, 1), np.zeros_like(y), _spread(draw, "size", y, 1, 6) + 6 * here,
        here + _spread(draw, "light", y, -0.2, 0.45), width=1.1, facet=0.3,
    )  # fmt: skip
    canvas = paint(draw, "grain", ground, grains)
    leaves = 12
    y, x = seeds(draw, "tufts", size, 20, leaves)
    turns = _bundles(draw, "tuft turn", y, leaves, 0, 1) + _spread(draw, "fan", y, -0.3, 0.3)
    y, x = y + _spread(draw, "down", y, -3, 3), x + _spread(draw, "across", x, -3, 3)
    tufts = strokes(
        y, x, turns, _spread(draw, "leaf bend", y, -0.02, 0.02),
        _bundles(draw, "tuft", y, leaves, -22, 34) * _spread(draw, "leaf", y, 0.3, 1),
        at(ground, y, x) + _spread(draw, "leaf light", y, -0.35, 0.55), width=1.5, facet=0.25,
    )  # fmt: skip
    return paint(draw, "leaf", canvas, tufts)


def _edge_ferns(draw: Draw, size: Size) -> Field:
    """Fronds that grow in from the frame, over small ferns that leave the middle of the pane dark."""
    thick = cloud(draw, "thickness", size, 4, 0.6) * HALF + _rim(size) - np.float32(0.55)
    ground = _ground(draw, size, 0.22, 0.12, 0.1) + np.float32(0.12) * thick
    y, x = seeds(draw, "ferns", size, 21)
    here = at(thick, y, x)
    stems = strokes(
        y, x, _spread(draw, "turn", y, 0, 1), _spread(draw, "bend", y, -0.006, 0.006),
        _spread(draw, "length", y, 20, 70) * (1 + HALF * here),
        np.float32(0.4) * here + _spread(draw, "light", y, 0.25, 0.65), width=0.7, facet=0.1,
    )  # fmt: skip
    drawn = ferns(draw, "fern", stems, pitch=3.4, lean=0.15, ratio=0.36, sheet=0.14)
    canvas = paint(draw, "fern", ground, drawn)
    y, x, turns = _frame(draw, size, 56)
    fronds = strokes(
        y, x, turns + _spread(draw, "slant", y, -0.12, 0.12), _spread(draw, "curl", y, -0.008, 0.008),
        _spread(draw, "reach", y, 40, 170), _spread(draw, "frond light", y, 0.5, 0.9), width=1.0, facet=0.15,
    )  # fmt: skip
    drawn = ferns(draw, "frond", fronds, pitch=4, lean=0.14, ratio=0.3, sheet=0.14)
    return paint(draw, "frond", canvas, drawn)


class Look(NamedTuple):
    """An image's subject and size; what the lens makes of it; each channel's mean, deviation, and share of
    colour patches in it.
    """

    subject: Callable[[Draw, Size], Field]
    size: Size
    lens: tuple[float, float]  # the weights of pixels one and two away
    mean: Colour
    sd: Colour
    tint: Colour = (0.07, 0.0, -0.05)


# Sizes, means and deviations are the statistics of the images the published scores were made with, so
# that ours cover an image as brightly and as busily; lenses are fitted to their spectra (docs/adr/0001).
LOOKS = (
    Look(_feathers, (600, 900), (0.12, -0.12), (77.7, 149.1, 165.7), (26.9, 16.5, 15.3), (0.84, 0.6, 0.0)),
    Look(_sheaves, (315, 560), (0.08, -0.01), (200.8, 205.4, 214.5), (21.4, 22.1, 22.6)),
    Look(_stars, (315, 560), (0.15, -0.06), (200.8, 205.4, 214.5), (21.4, 22.1, 22.6)),
    Look(_rime, (350, 527), (0.04, -0.07), (137.6, 152.8, 165.2), (28.5, 28.5, 29.9)),
    Look(_edge_ferns, (495, 660), (0.05, -0.1), (112.4, 123.4, 134.8), (44.4, 43.3, 41.7)),
)


def _photographed(tone: Field, lens: tuple[float, float]) -> Field:
    """As lens, sensor and sharpening leave it: less of the finest detail, more of what is a bit coarser."""
    near, far = np.float32(lens[0]), np.float32(lens[1])
    for _ in range(2):  # down, then across
        wide = np.pad(tone, ((2, 2), (0, 0)), mode="symmetric")
        beside, beyond = wide[1:-3] + wide[3:-1], wide[:-4] + wide[4:]
        tone = ((1 - 2 * near - 2 * far) * tone + near * beside + far * beyond).T
    return tone


def _standard(field: Field) -> Floats:
    """Mean 0, variance 1; through whole numbers, whose sums do not depend on the order of adding."""
    whole = np.rint(field * np.float32(4096)).astype(np.int64).reshape(-1)
    count, total, squares = whole.size, int(whole.sum()), int(whole @ whole)
    whole *= count
    whole -= total
    centred: Floats = whole.astype(np.float64).reshape(field.shape)
    centred /= sqrt(squares * count - total * total)
    return centred


def _coloured(tone: Field, tint: Field, look: Look) -> Image:
    """Light and dark, and patches of colour, as RGB with the look's means and deviations."""
    light, colour = _standard(tone), _standard(tint)
    out = np.empty((*look.size, 3), np.uint8)
    for c, (mean, sd, share) in enumerate(zip(look.mean, look.sd, look.tint, strict=True)):
        mixed = _standard((sqrt(1 - share * share) * light + share * colour).astype(np.float32))
        out[..., c] = np.clip(np.rint(mean + sd * mixed), 0, 255)
    return out


def drawn(index: int) -> Image:
    """The image of `LOOKS[index]`."""
    draw, look = Draw.keyed(0, "frost", index), LOOKS[index]
    tone = look.subject(draw, look.size)
    tone += np.where(draw.uniform_field("sparkle", look.size, 0, 1) < 0.002, np.float32(0.3), np.float32(0))
    return _coloured(_photographed(tone, look.lens), cloud(draw, "tint", look.size, 8, 0.5), look)


def main() -> None:
    for index, look in enumerate(LOOKS):
        path = Path(BUILT_IN) / f"{index + 1}-{look.subject.__name__.strip('_').replace('_', '-')}.webp"
        # Lossless: two thirds of the size of the PNG.
        PIL.Image.fromarray(drawn(index)).save(path, lossless=True, quality=100, method=6, exact=True)
        print(path)


if __name__ == "__main__":
    main()
