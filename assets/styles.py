"""Draws the style images that `stormproof stylize` ships with.

    python assets/styles.py    writes src/stormproof/style/images/*.jpg

Each is a way to put colour on a surface (strokes, dots, tiles, veins, threads) and a palette. They are a
build product that is kept; tests/style/test_sources.py checks that they are there, and small.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from pathlib import Path

import cv2
import numpy as np
import PIL.Image

from brushes import Field, Palette, cells, cloud, draws, relief, strokes, tint
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image

Style = Callable[[Draw, Palette, int], Field]

FOLDER = Path(__file__).parents[1] / "src/stormproof/style/images"
SIZE = 384  # pixels a side
QUALITY = 54


def swirl(draw: Draw, palette: Palette, size: int) -> Field:
    """Long curved strokes that circle through a sky."""
    level = cloud(draw, "level", size, 150)
    colours = tint(palette, level)
    flow = cloud(draw, "flow", size, 170, 2) * 3 * pi
    return strokes(draw, colours.copy(), colours, flow, count=3600, length=30, width=4, bend=1.2)


def dabs(draw: Draw, palette: Palette, size: int) -> Field:
    """Short thick dabs of a loaded brush."""
    colours = tint(palette, cloud(draw, "level", size, 110, 5, 0.6))
    angle = cloud(draw, "flow", size, 60, 2) * pi
    return strokes(draw, colours.copy(), colours, angle, count=3000, length=17, width=7, bend=0.3)


def crayon(draw: Draw, palette: Palette, size: int) -> Field:
    """Thin parallel crayon lines on rough paper."""
    colours = tint(palette, cloud(draw, "level", size, 120, 3))
    paper = np.full((size, size, 3), 236, np.float32)
    angle = np.floor(cloud(draw, "hand", size, 140, 1) * 4) * 0.6 + 0.3
    drawn = strokes(draw, paper, colours, angle, count=6500, length=40, width=1, bend=0.15)
    grain = draw.normal_field("grain", (size, size), 0, 1)
    return drawn + 14 * cv2.GaussianBlur(grain, (0, 0), 0.8)[..., None]


def dots(draw: Draw, palette: Palette, size: int) -> Field:
    """Round dots of pure colour, side by side."""
    level = cloud(draw, "level", size, 130, 3)
    canvas = np.full((size, size, 3), 228, np.float32)
    count = 9000
    ys, xs = draws(draw, "y", count, 0, size), draws(draw, "x", count, 0, size)
    radii, strays = draws(draw, "radius", count, 2.2, 4.2), draws(draw, "stray", count, -0.3, 0.3)
    for y, x, radius, stray in zip(ys, xs, radii, strays, strict=True):
        here = level[min(int(y), size - 1), min(int(x), size - 1)]
        colour = tint(palette, np.array(here + stray)).tolist()
        cv2.circle(canvas, (int(x * 8), int(y * 8)), int(radius * 8), colour, -1, cv2.LINE_AA, 3)
    return canvas


def hatch(draw: Draw, palette: Palette, size: int) -> Field:
    """Ink lines in up to three directions; the darker, the more."""
    dark = 1 - cloud(draw, "tone", size, 120, 3)
    y, x = np.indices((size, size), dtype=np.float32)
    wave = cloud(draw, "wave", size, 90, 3) * 9
    ink = np.zeros((size, size), np.float32)
    for turn, start, pitch in ((0.6, 0.15, 6.0), (-0.7, 0.45, 5.0), (0.05, 0.7, 4.0)):
        phase = (x * np.sin(turn) + y * np.cos(turn) + wave) / pitch * 2 * pi
        line = np.clip((np.cos(phase) - 0.75 + 0.5 * (dark - start)) * 4, 0, 1)
        ink = np.maximum(ink, line * (dark > start))
    return np.asarray(palette[-1] * (1 - ink[..., None]) + palette[0] * ink[..., None])


def woodcut(draw: Draw, palette: Palette, size: int) -> Field:
    """Gouged bands that follow the form, in few flat colours."""
    form = cloud(draw, "form", size, 190, 2, 0.35)
    bands = np.cos(form * 2 * pi * 17 + cloud(draw, "knife", size, 20, 2) * 1.6)
    flat = palette[
        np.minimum((cloud(draw, "flat", size, 160, 2) * len(palette)).astype(int), len(palette) - 1)
    ]
    cut = np.clip((bands - 0.1 + form * 0.6) * 4, 0, 1)[..., None]
    return np.asarray((palette[0] * 0.6) * (1 - cut) + flat * cut)


def mosaic(draw: Draw, palette: Palette, size: int) -> Field:
    """Small square-ish stones set in grout."""
    which, edge = cells(draw, size, 14, 0.22)
    level = cloud(draw, "level", size, 130, 3)
    means = np.bincount(which.ravel(), level.ravel()) / np.maximum(np.bincount(which.ravel()), 1)
    stones = tint(palette, means + draws(draw, "stone", len(means), -0.16, 0.16))[which]
    stones = stones + draws(draw, "light", len(means), -18, 18)[which][..., None]
    grout = np.clip(edge - 0.6, 0, 1)[..., None]
    bed = np.array((92, 86, 80), np.float32) * (1 - grout)
    return np.asarray(stones * grout + bed + relief(np.minimum(edge, 3), 0.5))


def glass(draw: Draw, palette: Palette, size: int) -> Field:
    """Panes of coloured glass in lead."""
    which, edge = cells(draw, size, 44, 0.48)
    pane = draws(draw, "pane", int(which.max()) + 1)
    shine = cloud(draw, "shine", size, 60, 4)[..., None] * 70 - 35
    lead = np.clip(edge - 2.2, 0, 1)[..., None]
    dark = np.array((16, 16, 20), np.float32) * (1 - lead)
    return np.asarray((tint(palette, pane)[which] + shine) * lead + dark)


def marble(draw: Draw, palette: Palette, size: int) -> Field:
    """Veins folded through stone."""
    y, x = np.indices((size, size), dtype=np.float32)
    fold = cloud(draw, "fold", size, 160, 6, 0.55)
    vein = np.abs(np.sin((x * 0.6 + y) * 0.018 + fold * 14))
    fine = np.abs(np.sin((x - y) * 0.03 + cloud(draw, "fine", size, 90, 6, 0.6) * 20))
    return tint(palette, 0.75 * vein**0.6 + 0.25 * fine**0.4)


def watercolour(draw: Draw, palette: Palette, size: int) -> Field:
    """Washes with dark rims that run into one another on grainy paper."""
    canvas = np.full((size, size, 3), 244, np.float32)
    for k in range(6):
        wash = cloud(draw, f"wash {k}", size, 120, 6, 0.55) - 0.68
        inside = np.clip(wash * 60, 0, 1)
        rim = np.exp(-((wash * 42) ** 2)) * 0.55
        colour = tint(palette, np.array(draw.uniform(f"colour {k}")))
        pigment = ((inside * (0.45 + 0.3 * cloud(draw, f"pool {k}", size, 70, 3)) + rim).clip(0, 1))[
            ..., None
        ]
        canvas = canvas * (1 - pigment * (1 - colour / 255))
    grain = cv2.GaussianBlur(draw.normal_field("grain", (size, size), 0, 1), (0, 0), 1.1)
    return canvas + 16 * grain[..., None]


def facets(draw: Draw, palette: Palette, size: int) -> Field:
    """Overlapping planes, each shaded from edge to edge."""
    canvas = tint(palette, cloud(draw, "ground", size, 200, 2))
    y, x = np.indices((size, size), dtype=np.float32)
    for k in range(130):
        cy, cx, turn = (draw.uniform(f"{part} {k}") for part in ("y", "x", "turn"))
        reach = size * (0.05 + 0.13 * draw.uniform(f"reach {k}"))
        corners = turn * 2 * pi + np.cumsum(0.7 + 1.6 * draw.uniforms(f"corners {k}", 4))
        ring = np.stack([cx * size + reach * np.cos(corners), cy * size + reach * np.sin(corners)], 1)
        plane = np.zeros((size, size), np.uint8)
        cv2.fillPoly(plane, [np.round(ring).astype(np.int32)], 1)
        ramp = ((x - cx * size) * np.cos(turn * 7) + (y - cy * size) * np.sin(turn * 7)) / reach
        colour = tint(palette, np.array(draw.uniform(f"colour {k}"))) + 46 * ramp[..., None]
        canvas = np.where(plane[..., None] > 0, 0.8 * colour + 0.2 * canvas, canvas)
        cv2.polylines(
            canvas, [np.round(ring).astype(np.int32)], True, (palette[0] * 0.5).tolist(), 1, cv2.LINE_AA
        )
    return canvas


def weave(draw: Draw, palette: Palette, size: int) -> Field:
    """Threads of a tapestry, over and under."""
    y, x = np.indices((size, size))
    thread = 5
    over = ((x // thread) + (y // thread)) % 2 == 0
    level = cv2.resize(
        cv2.resize(cloud(draw, "level", size, 120, 3), (size // thread,) * 2),
        (size, size),
        interpolation=cv2.INTER_NEAREST,
    )
    strays = draw.uniform_field("thread", (2, size), -0.18, 0.18)
    tone = np.where(over, strays[0][(x // thread) * thread], strays[1][(y // thread) * thread])
    roundness = np.where(
        over, np.sin((x % thread + 0.5) / thread * pi), np.sin((y % thread + 0.5) / thread * pi)
    )
    return tint(palette, level + tone) * (0.45 + 0.6 * roundness[..., None])


PALETTES: dict[str, tuple[str, ...]] = {
    "night": ("0b1d51", "1d4e89", "3f88c5", "7fb7be", "f2c14e", "ffe8a3"),
    "harvest": ("3b2314", "8c4a1c", "c97b2a", "e8b04b", "f3d98b", "8fae5d"),
    "garden": ("1f3b2c", "3e6b48", "7fa650", "c9c95a", "e58fa5", "f6e3d4"),
    "fire": ("2a0a12", "7a1020", "c8321f", "ee7b30", "f9c74f", "fff0c2"),
    "ink": ("15151d", "6b6459", "efe6d2"),
    "print": ("20242b", "b3402e", "e7d7b1", "4a7b8c"),
    "byzantine": ("12324a", "1f6f78", "b98b2f", "e3c565", "a33b32", "efe3c8"),
    "window": ("0d2c8c", "0f7a52", "c21d2b", "f2a71b", "6a1b8a", "35b6d6"),
    "quarry": ("23312d", "5b7065", "a9b5a2", "e9e6da", "fbfaf4"),
    "wash": ("27408b", "3f7cac", "5fa777", "d9a441", "c65b7c", "7a4b94"),
    "studio": ("2c2a29", "6d5b4b", "a58b6f", "8d99a6", "d8cdb8", "c4703d"),
    "loom": ("3d1326", "8c2f39", "d9803f", "ecd9a0", "2f6f6d", "173b45"),
}
STYLES: tuple[tuple[Style, str], ...] = (
    (swirl, "night"), (dabs, "harvest"), (crayon, "garden"), (dots, "fire"), (hatch, "ink"),
    (woodcut, "print"), (mosaic, "byzantine"), (glass, "window"), (marble, "quarry"),
    (watercolour, "wash"), (facets, "studio"), (weave, "loom"),
)  # fmt: skip


def palette(name: str) -> Palette:
    return np.array([list(bytes.fromhex(colour)) for colour in PALETTES[name]], np.float32)


def drawn(style: Style, colours: str, *, seed: int = 0, size: int = SIZE) -> Image:
    """One style in one palette."""
    field = style(Draw.keyed(seed, "style", style.__name__, colours), palette(colours), size)
    return np.clip(np.rint(field), 0, 255).astype(np.uint8)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for style, colours in STYLES:
        PIL.Image.fromarray(drawn(style, colours)).save(
            FOLDER / f"{style.__name__}.jpg", quality=QUALITY, optimize=True
        )


if __name__ == "__main__":
    main()
