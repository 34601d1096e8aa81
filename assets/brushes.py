"""What the drawn styles share: noise, tints, strokes, cells, relief."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.randomness import Draw

Field = npt.NDArray[np.floating]
Palette = npt.NDArray[np.floating]  # n × 3, RGB, dark to light


def cloud(draw: Draw, name: str, size: int, cell: float, octaves: int = 4, keep: float = 0.5) -> Field:
    """Fractal noise whose broadest patches measure `cell` pixels, stretched to 0..1 by rank."""
    total = np.zeros((size, size), np.float32)
    for k in range(octaves):
        n = max(int(size / cell * 2**k) + 3, 4)
        if n > size:
            break
        grid = draw.uniform_field(f"{name} {k}", (n, n), -1, 1)
        total += keep**k * cv2.resize(grid, (size, size), interpolation=cv2.INTER_CUBIC)
    ranks = np.empty(total.size, np.float32)
    ranks[np.argsort(total, axis=None, kind="stable")] = np.linspace(0, 1, total.size, dtype=np.float32)
    return ranks.reshape(total.shape)


def tint(palette: Palette, level: Field) -> Field:
    """Levels 0..1 along the palette, blended between neighbours."""
    at = np.clip(level, 0, 1) * (len(palette) - 1)
    low = np.minimum(at.astype(np.int64), len(palette) - 2)
    share = (at - low)[..., None]
    return np.asarray(palette[low] * (1 - share) + palette[low + 1] * share, np.float32)


def draws(draw: Draw, name: str, count: int, low: float = 0.0, high: float = 1.0) -> Field:
    return draw.uniform_field(name, (count,), low, high)


def strokes(
    draw: Draw,
    canvas: Field,
    colours: Field,
    angle: Field,
    *,
    count: int,
    length: float,
    width: int,
    bend: float,
) -> Field:
    """Strokes along `angle` (radians), each in the colour of its middle with a little of its own."""
    size = canvas.shape[0]
    ys, xs = draws(draw, "y", count, 0, size), draws(draw, "x", count, 0, size)
    lengths, shades = (
        draws(draw, "length", count, 0.5, 1.2),
        draw.uniform_field("shade", (count, 3), -16, 16),
    )
    turns, lights = draws(draw, "bend", count, -bend, bend), draws(draw, "light", count, -30, 30)
    for k in range(count):
        y, x = float(ys[k]), float(xs[k])
        row, column = min(int(y), size - 1), min(int(x), size - 1)
        a, colour = float(angle[row, column]), colours[row, column] + shades[k] + lights[k]
        points = []
        for step in np.linspace(-0.5, 0.5, 7):
            turned = a + float(turns[k]) * step
            points.append(
                (
                    x + np.cos(turned) * step * length * lengths[k],
                    y + np.sin(turned) * step * length * lengths[k],
                )
            )
        path = np.round(np.array(points) * 8).astype(np.int32)
        # A bristle of lighter paint along one side is what makes a stroke look laid on.
        cv2.polylines(canvas, [path], False, colour.tolist(), width, cv2.LINE_AA, 3)
        if width > 2:
            cv2.polylines(canvas, [path - width * 2], False, (colour + 26).tolist(), 1, cv2.LINE_AA, 3)
    return canvas


def cells(draw: Draw, size: int, pitch: float, wobble: float) -> tuple[npt.NDArray[np.int64], Field]:
    """Voronoi cells of jittered points: which cell each pixel is in, and its distance to the cell's edge."""
    n = int(size / pitch) + 3
    grid = (np.indices((n, n)).astype(np.float32) - 0.5) * pitch
    points = (grid + draw.uniform_field("jitter", (2, n, n), -wobble, wobble) * pitch).reshape(2, -1)
    y, x = np.indices((size, size), dtype=np.float32)
    near, second = np.full((size, size), 1e9, np.float32), np.full((size, size), 1e9, np.float32)
    which = np.zeros((size, size), np.int64)
    for k, (py, px) in enumerate(points.T):
        distance = np.hypot(y - py, x - px)
        second = np.minimum(second, np.maximum(near, distance))
        which = np.where(distance < near, k, which)
        near = np.minimum(near, distance)
    return which, (second - near) / 2


def relief(height: Field, strength: float) -> Field:
    """Light from the upper left on a rough surface, as grey levels to add."""
    slope = height - np.roll(height, (2, 2), (0, 1))
    return (np.clip(slope * strength, -1, 1) * 40)[..., None]
