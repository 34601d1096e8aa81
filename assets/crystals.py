"""Ice crystals, drawn stroke by stroke.

A crystal is a slightly bent spindle with one bright and one dark facet. Strokes branch into ferns, stars
and feathers and are painted grain by grain, one over the other, on a canvas of twice the size. Everything
is integer hashing and IEEE add, multiply, divide and square root in a fixed order, so a drawing has the
same bytes wherever it is made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stormproof.core.randomness import Draw
from stormproof.core.sample import Ints
from stormproof.imaging import Field
from stormproof.imaging.cpu.fields import subdivide
from stormproof.imaging.cpu.warps import enlarge

Size = tuple[int, int]

HALF, QUARTER = np.float32(0.5), np.float32(0.25)
_STREAM = 200_000  # grains that share a random stream
_AT_ONCE = 20_000  # grains whose coordinates are in memory together


class Strokes(NamedTuple):
    """Crystals, one per element; lengths in pixels; a higher rank is painted over a lower one."""

    y: Field
    x: Field
    dy: Field
    dx: Field
    bend: Field  # curvature, 1 / pixels
    length: Field
    width: Field  # half of it, at the belly
    light: Field  # 0 for clear dark glass, 1 for white ice
    facet: Field  # what one side gains in light and the other loses
    density: Field  # share of the ground that its grains hide
    rank: Field

    def pick(self, index: Ints) -> Strokes:
        return Strokes(*(column[index] for column in self))


def _heading(turns: Field) -> tuple[Field, Field]:
    """Unit vector (y, x) of an angle in turns, by a parabola: library sines differ between machines."""

    def sine(t: Field) -> Field:
        t = (t - np.floor(t + HALF)) * 2
        arc: Field = 4 * t * (1 - np.abs(t))
        bow: Field = arc * np.abs(arc) - arc
        return arc + np.float32(0.225) * bow

    y, x = sine(turns), sine(turns + QUARTER)
    norm: Field = np.sqrt(y * y + x * x)
    return y / norm, x / norm


def cloud(draw: Draw, name: str, size: Size, finest: int, persistence: float) -> Field:
    """Fractal noise about zero with an extreme of 1, without detail below `finest` pixels."""
    plasma, amplitude = draw.uniform_field(name, (2, 2), -1, 1), 1.0
    while len(plasma) * finest < max(size) + finest:
        wobble = draw.uniform_field(f"{name}{len(plasma)}", (3, *plasma.shape), -1, 1)
        plasma, amplitude = subdivide(plasma, wobble, amplitude), amplitude * persistence
    plasma = enlarge(plasma, finest)[: size[0], : size[1]]
    return plasma / np.float32(np.abs(plasma).max())


def seeds(draw: Draw, name: str, size: Size, pitch: float, copies: int = 1) -> tuple[Field, Field]:
    """Points on a jittered grid that reaches a cell beyond the image, in random order."""
    rows, columns = int(size[0] / pitch) + 2, int(size[1] / pitch) + 2
    jitter = draw.uniform_field(name, (2, rows, columns), -1, 0)
    y = ((np.arange(rows, dtype=np.float32)[:, None] + jitter[0]) * np.float32(pitch)).reshape(-1)
    x = ((np.arange(columns, dtype=np.float32) + jitter[1]) * np.float32(pitch)).reshape(-1)
    order = np.argsort(draw.words(f"{name} order", y.size), kind="stable")
    return np.repeat(y[order], copies), np.repeat(x[order], copies)


def at(field: Field, y: Field, x: Field) -> Field:
    """The field's value at points, some of which lie beyond its edge."""
    rows = np.clip(y, 0, field.shape[0] - 1).astype(np.int64)
    return field[rows, np.clip(x, 0, field.shape[1] - 1).astype(np.int64)]


def strokes(
    y: Field, x: Field, turns: Field, bend: Field, length: Field, light: Field, *, width: float, facet: float
) -> Strokes:
    rank = np.arange(y.size, dtype=np.float32)
    wide, shaded = np.full_like(y, width), np.full_like(y, facet)
    return Strokes(y, x, *_heading(turns), bend, length, wide, light, shaded, np.ones_like(y), rank)


def _barbs(
    draw: Draw, name: str, stems: Strokes, *, pitch: float, lean: float, ratio: float, width: float
) -> Strokes:
    """Branches on both sides of every stem, `lean` turns off its direction, shorter towards the tip."""
    nodes = (stems.length / np.float32(pitch)).astype(np.int64)
    owner = np.repeat(np.arange(nodes.size), 2 * nodes)
    place = np.arange(owner.size) - (np.cumsum(2 * nodes) - 2 * nodes)[owner]
    side = (place % 2 * 2 - 1).astype(np.float32)
    stem = stems.pick(owner)
    chance = draw.uniform_field(name, (4, owner.size), -1, 1)
    s = ((place // 2).astype(np.float32) + HALF + np.float32(0.3) * chance[0]) * np.float32(pitch)
    t, swing = s / stem.length, stem.bend * s
    ly, lx = _heading(side * np.float32(lean) * (1 + np.float32(0.15) * chance[1]))
    # the stem's own direction at s, to first order in its bend
    ty, tx = stem.dy + stem.dx * swing, stem.dx - stem.dy * swing
    norm = np.sqrt(ty * ty + tx * tx)
    dy, dx = (ty * lx + tx * ly) / norm, (tx * lx - ty * ly) / norm
    reach = np.float32(ratio) * (1 - t) * np.minimum(1, np.float32(0.35) + 4 * t)
    # light falls from the upper left: barbs that lie across it glint, barbs along it stay dim
    glint = np.float32(0.12) * (dy - dx) + np.float32(0.08) * chance[3]
    return stem._replace(
        y=stem.y + stem.dy * s + stem.dx * swing * s * HALF,
        x=stem.x + stem.dx * s - stem.dy * swing * s * HALF,
        dy=dy, dx=dx, bend=stem.bend * HALF - side * np.float32(0.004),
        length=stem.length * reach * (1 + np.float32(0.35) * chance[2]),
        width=np.full_like(dy, width), light=stem.light + glint,
    )  # fmt: skip


def ferns(
    draw: Draw, name: str, stems: Strokes, *, pitch: float, lean: float, ratio: float, sheet: float
) -> Strokes:
    """Stems, their barbs, the barbs' barbs, and beneath them a thin sheet of ice of that lightness."""
    barbs = _barbs(draw, f"{name} barb", stems, pitch=pitch, lean=lean, ratio=ratio, width=0.5)
    fringe = _visible(_barbs(draw, f"{name} fringe", barbs, pitch=2.2, lean=lean, ratio=0.36, width=0.2))
    under = stems._replace(
        width=stems.length * np.float32(0.4 * ratio),
        light=np.float32(sheet) + np.float32(0.2) * stems.light,
        facet=QUARTER * stems.facet,
        density=np.full_like(stems.light, 0.4),
    )
    groups = [_visible(group) for group in (under, fringe, barbs, stems)]
    order = np.argsort(np.concatenate([group.rank for group in groups]), kind="stable")
    return Strokes(*(np.concatenate(columns)[order] for columns in zip(*groups, strict=True)))


def _visible(strokes: Strokes) -> Strokes:
    """Those longer than a pixel."""
    seen = strokes.length > 1
    return strokes if seen.all() else strokes.pick(np.flatnonzero(seen))


def _portions(counts: Ints, most: int) -> list[Ints]:
    """Positions of consecutive elements, cut wherever their counts reach another `most`."""
    filled = np.cumsum(counts)
    cuts = np.searchsorted(filled, np.arange(0, filled[-1:].sum(), most))
    return np.split(np.arange(filled.size), cuts[1:])


def paint(draw: Draw, name: str, ground: Field, strokes: Strokes) -> Field:
    """Strokes over the ground, drawn grain by grain at twice the size, then halved."""
    height, width = ground.shape
    canvas = np.zeros((2 * height + 2, 2 * width + 2), np.float32)
    blocks = canvas[1:-1, 1:-1].reshape(height, 2, width, 2)
    blocks[...] = ground[:, None, :, None]
    strokes = _visible(strokes)
    rows = (strokes.length * np.float32(2.4)).astype(np.int64) + 1
    columns = (strokes.width * strokes.density * np.float32(4.6)).astype(np.int64) + 1
    for part, chosen in enumerate(_portions(rows * columns, _STREAM)):
        _grains(draw, f"{name}{part}", canvas, strokes.pick(chosen), rows[chosen], columns[chosen])
    return (blocks[:, 0, :, 0] + blocks[:, 1, :, 0] + blocks[:, 0, :, 1] + blocks[:, 1, :, 1]) * QUARTER


def _grains(draw: Draw, name: str, canvas: Field, strokes: Strokes, rows: Ints, columns: Ints) -> None:
    """Put rows × columns grains of every stroke on the canvas, later ones over earlier ones."""
    counts = rows * columns
    along, half = 2 * strokes.length, strokes.bend * strokes.length
    coefficients = np.stack([
        2 * strokes.y + 1, 2 * strokes.x + 1, strokes.dy * along, strokes.dx * along, half / 2,
        8 * strokes.width / along, strokes.light, strokes.facet, columns, 1 / rows.astype(np.float32),
    ]).astype(np.float32)  # fmt: skip
    jitter, first = draw.uniform_field(name, (int(counts.sum()),), 0, 1), np.cumsum(counts) - counts
    for chosen in _portions(counts, _AT_ONCE):
        each = counts[chosen]
        y, x, dy, dx, curve, belly, light, facet, wide, step = np.repeat(
            coefficients[:, chosen], each, axis=1
        )
        place = np.arange(y.size) - np.repeat(np.cumsum(each) - each, each)
        index = place.astype(np.float32) + HALF
        row = np.floor(index / wide)
        t = (row + HALF) * step
        v = (index - row * wide - HALF + jitter[np.repeat(first[chosen], each) + place]) / wide * 2 - 1
        aside = t * (curve * t + belly * v * (1 - t))
        i = np.clip(y + dy * t + dx * aside, 0, canvas.shape[0] - 1).astype(np.int32)
        j = np.clip(x + dx * t - dy * aside, 0, canvas.shape[1] - 1).astype(np.int32)
        canvas.reshape(-1)[i * np.int32(canvas.shape[1]) + j] = light + facet * v
