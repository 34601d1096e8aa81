"""Weather: snow, frost on the window, fog, spatter on the lens, bright light."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from math import ceil, cos, radians, sin

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.corruptions import textures as frost_textures
from stormproof.corruptions.corruption import constant, corruption, ladder
from stormproof.corruptions.recipes.blur import motion_path

weather = partial(corruption, family="weather", cite="hendrycks2019")

_WATER = (175.0, 238.0, 238.0)  # pale turquoise
_MUD = (63.0, 42.0, 20.0)
_SNOWFALL = 0.27  # image widths a second: 1 m/s (Locatelli & Hobbs 1974), 3 m from a lens of 0.8 widths
_BREEZE = 0.04  # image widths a second and m/s of wind: clouds 20 m from such a lens


@weather(
    owner="scene",
    density=ladder(0.1, 0.2, 0.55, 0.55, 0.55, low=-5, high=5, unit="of full scale"),
    spread=ladder(0.3, 0.3, 0.3, 0.3, 0.3, low=0, high=5, unit="of full scale"),
    flake=ladder(3.0, 2, 4, 4.5, 2.5, low=1, high=100, unit="px"),
    threshold=ladder(0.5, 0.5, 0.9, 0.85, 0.85, low=0, high=5, unit="of full scale"),
    radius=ladder(10, 12, 12, 12, 12, low=0, high=200, unit="px"),
    sigma=ladder(4.0, 4, 8, 8, 12, low=0.01, high=500, unit="px"),
    keep=ladder(0.8, 0.7, 0.7, 0.65, 0.55, low=0, high=1, unit="weight"),
)
def snow(
    image: Image,
    draw: Draw,
    *,
    density: float,
    spread: float,
    flake: float,
    threshold: float,
    radius: int,
    sigma: float,
    keep: float,
) -> Image:
    """Falling snow: bright streaks over a whitened image, `flake` pixels in size at any image size.

    Noise N(density, spread²) is enlarged `flake` times, set to 0 below `threshold`, blurred along a steep
    path (`radius` and σ as for motion_blur), rounded to 8 bits, and added together with itself rotated by
    180°. The image below it is keep·v + (1 − keep)·max(v, 1.5·grey + 0.5), on a scale of 0 to 1. In a clip,
    flakes fall along their streaks by 0.27 image widths a second, and come again from the other side.
    """
    height, width = image.shape[:2]
    seeds = draw.normal_field("flakes", imaging.crop_for_zoom((height, width), flake), density, spread)
    angle = draw.each_uniform("angle", -135, -45)
    fall = motion_path(imaging.enlarged_size(seeds.shape, flake), radius, sigma, angle)
    layer = imaging.both_ways(imaging.snowfall(seeds, flake, threshold, fall, (height, width)))
    if draw.time:
        layer = imaging.drift(layer, *draw.each(lambda own: _fallen(own, width)))
    return imaging.whiten(image, layer, keep)


def _fallen(draw: Draw, width: int) -> tuple[int, int]:
    """By how many pixels flakes have moved down and across since the clip began."""
    angle, way = radians(draw.uniform("angle", -135, -45)), _SNOWFALL * width * draw.time
    return round(-way * sin(angle)), round(-way * cos(angle))


def _cover(texture: tuple[int, ...], image: tuple[int, ...]) -> tuple[int, int]:
    """The size of a texture that covers an image with a tenth to spare for a random crop.

    A texture large enough to cover the image keeps its scale, so frost is fine on small images and coarse on
    large ones, as in the reference.
    """
    scale = 1.1 * np.maximum(np.maximum(image[0] / texture[0], image[1] / texture[1]), 1.0)
    return ceil(texture[0] * scale), ceil(texture[1] * scale)


@weather(
    owner="camera",
    picture=ladder(1.0, 0.8, 0.7, 0.65, 0.6, low=0, high=2, unit="weight"),
    ice=ladder(0.4, 0.6, 0.7, 0.7, 0.75, low=0, high=2, unit="weight"),
    textures=constant("built-in"),
    version=3,
)
def frost(image: Image, draw: Draw, *, picture: float, ice: float, textures: str) -> Image:
    """A frozen window: picture·image + ice·texture, at a random place of a random texture.

    `textures` is "built-in" (made by Stormproof), a folder of images, or "imagecorruptions" for the
    photographs of an installed imagecorruptions package, which the published scores used.
    """
    choices = frost_textures.load(textures)
    height, width, channels = image.shape
    sizes = [_cover(texture.shape, (height, width)) for texture in choices]
    which = draw.each_integer("texture", len(choices))
    rows = imaging.picked([tall - height for tall, _ in sizes], which)
    columns = imaging.picked([wide - width for _, wide in sizes], which)
    corner = draw.each_integer("top", rows), draw.each_integer("left", columns)
    ice_here = imaging.enlarged_part(choices, sizes, which, corner, (height, width))
    ice_here = imaging.grey_of(ice_here) if channels == 1 else ice_here
    return imaging.mix(image, picture, ice_here, ice)


def plasma(draw: Draw, size: tuple[int, int], part: tuple[int, int], decay: float) -> imaging.Field:
    """Part of a fractal cloud from 0 to 1 that covers an image of `size`: its upper left.

    The reference multiplies its uniform draws from (−w, w) by w again, so amplitudes grow with w² and
    fall by decay² per level.
    """

    def levels() -> Iterator[tuple[float, Iterator[imaging.Field]]]:
        w, n = 100.0, 1
        while True:
            parts = ("centre", "row", "column")
            yield w, (draw.uniform_field(f"wobble{n}{part}", (n, n), -w, w) for part in parts)
            w, n = w / decay, 2 * n

    return imaging.plasma(levels(), imaging.cloud_side(size), part)


@weather(
    owner="scene",
    amount=ladder(1.5, 2.0, 2.5, 2.5, 3.0, low=0, high=100, unit="of full scale"),
    decay=ladder(2.0, 2.0, 1.7, 1.5, 1.4, low=1, high=100, unit="× per octave"),
)
def fog(image: Image, draw: Draw, *, amount: float, decay: float) -> Image:
    """Patchy fog: a fractal cloud is added, and the sum scaled back to the image's own maximum.

    A value v becomes (v + amount·cloud) · m/(m + amount), on a scale of 0 to 1, where m is the image's
    maximum. The cloud is a plasma fractal from 0 to 1, whose detail shrinks by `decay` as its size halves.
    In a clip it drifts across in a wind of up to 2 m/s, by 0.04 image widths a second for each m/s.
    """
    height, width = image.shape[:2]
    top = image.max() / 255
    gain = top / np.maximum(top + amount, imaging.TINY)  # a black image stays black
    grey = (255.0,) * image.shape[2]
    if draw.time:
        blown = draw.each(lambda own: (0, round(_BREEZE * width * own.uniform("wind", -2, 2) * own.time)))
        whole = (imaging.cloud_side((height, width)),) * 2
        cloud = imaging.drift(plasma(draw, (height, width), whole, decay), *blown)[:height, :width]
    else:
        cloud = plasma(draw, (height, width), (height, width), decay)
    return imaging.add_layer(image, cloud, gain=gain, scale=gain * amount, offset=0, colour=grey)


@weather(
    owner="camera",
    density=ladder(0.65, 0.65, 0.65, 0.65, 0.67, low=-5, high=5, unit="of full scale"),
    spread=ladder(0.3, 0.3, 0.3, 0.3, 0.4, low=0, high=5, unit="of full scale"),
    sigma=ladder(4.0, 3, 2, 1, 1, low=0, high=100, unit="px"),
    threshold=ladder(0.69, 0.68, 0.68, 0.65, 0.65, low=0, high=5, unit="of full scale"),
    strength=ladder(0.6, 0.6, 0.5, 1.5, 1.5, low=0, high=20, unit="of full scale; px of mud"),
    liquid=ladder("water", "water", "water", "mud", "mud", choices=("water", "mud")),
    version=2,
)
def spatter(
    image: Image,
    draw: Draw,
    *,
    density: float,
    spread: float,
    sigma: float,
    threshold: float,
    strength: float,
    liquid: str,
) -> Image:
    """Drops on the lens: glinting water, or opaque mud.

    Drops are where noise N(density, spread²), smoothed by a Gaussian of σ pixels, exceeds `threshold`.
    `strength` is how bright water glints, or how many pixels the mud's rim is softened by.
    """
    layer = draw.normal_field("drops", image.shape[:2], density, spread)
    layer = imaging.gaussian_field(layer, (sigma, sigma), truncate=4, rule="nearest")
    layer[layer < threshold] = 0
    if liquid == "mud":
        opacity = imaging.gaussian_field(
            (layer > threshold).astype(np.float32), (strength, strength), truncate=4, rule="nearest"
        )
        opacity[opacity < 0.8] = 0
        return imaging.cover(image, opacity, imaging.in_channels(_MUD, image.shape[2]))
    drops = np.clip(layer * 255, 0, 255).astype(np.uint8)
    glint = drops * imaging.relief(drops)
    brightest = np.maximum(glint.max(), 1)  # where no drop fell, the reference divides by 0
    water = imaging.in_channels(_WATER, image.shape[2])
    scale = strength / brightest.astype(np.float64)
    return imaging.add_layer(image, glint, gain=1, scale=scale, offset=0, colour=water)


_CUT = 1e-9  # added before truncation, so that rounding noise cannot lower a whole value


@lru_cache(maxsize=16)
def _brighter(amount: float) -> npt.NDArray[np.uint8]:
    """table[V, v]: v in a pixel whose brightest channel is V, after raising the HSV value by `amount`."""
    v = np.arange(256) / 255
    value = np.clip(v + amount, 0, 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.where(v[:, None] > 0, (v[:, None] - v) / v[:, None], 0)
        table = np.clip(value * (1 - saturation) * 255, 0, 255)
    return np.asarray(table + _CUT, np.uint8)


@weather(amount=ladder(0.1, 0.2, 0.3, 0.4, 0.5, low=0, high=1, unit="of full scale"))
def brightness(image: Image, *, amount: float) -> Image:
    """Bright daylight: the HSV value is raised by a fraction of full scale; hue and saturation are kept.

    V, the brightest channel on a scale of 0 to 1, becomes min(V + amount, 1), and the others grow with it.
    """
    return imaging.by_brightest(image, _brighter(amount))
