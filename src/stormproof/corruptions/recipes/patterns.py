"""ImageNet-C-bar (Mintun et al. 2021): patterns over the image, chosen to look unlike the common corruptions.

The ladders are those of the authors' `imagenet_c_bar`, written for squares of 224 pixels. Here lengths are
shares of the side of the square of equal area, √(height·width), so that a pattern covers the same share of an
image of any size. Two are in pixels at any size, as there: the grain of `blue_noise_sample` and the frequency
of `single_frequency_greyscale`. Patterns are drawn anew for every image. A grey image takes the luma of a
coloured pattern.
"""

from __future__ import annotations

from functools import partial
from math import ceil, cos, pi, sin, sqrt

import numpy as np

from stormproof import imaging
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import corruption, ladder

pattern = partial(corruption, family="pattern", cite="mintun2021")

_AUTHORS_SIDE = 224  # px of the authors' images
Size = tuple[int, int]


def _size(image: Image) -> Size:
    return image.shape[0], image.shape[1]


def _side(size: Size) -> float:
    """The side of the square of equal area, in pixels."""
    return sqrt(size[0] * size[1])


def _centre(draw: Draw, size: Size, low: float, high: float, number: int = 0) -> tuple[float, float]:
    row, column = draw.uniforms(f"centre{number}", 2)
    return size[0] * (low + (high - low) * row), size[1] * (low + (high - low) * column)


@pattern(
    owner="frame", threshold=ladder(-2.26, -2.02, -1.78, -1.3, -0.82, low=-6, high=6, unit="σ of the noise")
)
def blue_noise_sample(image: Image, draw: Draw, *, threshold: float) -> Image:
    """Evenly spread black pixels: those where blue noise lies below a threshold.

    Blue noise has amplitudes in proportion to frequency, so that its low values keep apart.
    """
    size = _size(image)

    def lost(own: Draw) -> imaging.Field:
        numbers = own.normal_field("noise", imaging.spectrum_shape(size), 0, 1)
        noise = imaging.coloured_noise(size, numbers, power=1, flat=0)
        return np.asarray(noise <= threshold, np.float32)

    return imaging.cover(image, draw.each(lost), (0.0,) * image.shape[2])


@pattern(owner="frame", intensity=ladder(6.4, 12.8, 19.2, 25.6, 32.0, low=0, high=1000, unit="grey levels"))
def brownish_noise(image: Image, draw: Draw, *, intensity: float) -> Image:
    """Coloured clouds: noise of mostly low frequencies in each channel, of deviation `intensity`.

    Amplitudes are proportional to 1/(f² + 1), f in cycles per side of the image. Each channel is also
    shifted at random. There are no waves shorter than a 112th of the side.
    """
    size, channels = _size(image), image.shape[2]
    step = max(_side(size) / _AUTHORS_SIDE, 1.0)

    def clouds(own: Draw) -> imaging.Field:
        shape = imaging.spectrum_shape(size, step)
        numbers = (own.normal_field(f"noise{c}", shape, 0, 1) for c in range(channels))
        made = [imaging.coloured_noise(size, one, power=-2, flat=1, step=step) for one in numbers]
        return np.stack(made, axis=2)

    return imaging.add_pattern(image, draw.each(clouds), gain=1, scale=intensity)


def caustic_field(
    size: Size, draw: Draw, *, lens: float, light: float = 0
) -> tuple[imaging.Field, imaging.Field]:
    """(dy, dx) of the rays that the glass bends."""
    dy, dx, _ = draw.each(lambda own: _glass(own, size, lens))
    return dy, dx


def _glass(draw: Draw, size: Size, lens: float) -> tuple[imaging.Field, imaging.Field, imaging.Field]:
    side = _side(size)
    period = draw.uniform("period", 0.75, 1.25) * side
    time = draw.uniform("time", 0.5, 2) + draw.time
    return imaging.caustic_lens(size, step=side / _AUTHORS_SIDE, period=period, time=time, lens=lens * side)


@pattern(
    owner="scene",
    moves=caustic_field,
    lens=ladder(0.1175, 0.16, 0.245, 0.33, 0.4575, low=0, high=5, unit="of the side"),
    light=ladder(0.47, 0.64, 0.98, 1.32, 1.83, low=0, high=20, unit="of full scale"),
)
def caustic_refraction(image: Image, draw: Draw, *, lens: float, light: float) -> Image:
    """Seen through wavy water: pixels are displaced by a rippled surface, and its slopes are lit.

    The surface has the shape of caustics, as light draws them on the bed of a pool. `lens` is its distance
    from the image, `light` how much brighter a slope of 45° becomes. Slopes are taken over two steps of a
    224th of the side. Labels stay where they are.
    """
    dy, dx, slope = draw.each(lambda own: _glass(own, _size(image), lens))
    bent = imaging.move(image, dy, dx)
    white = (255.0,) * image.shape[2]
    return imaging.add_layer(bent, slope, gain=1, scale=light, offset=0, colour=white)


_SQUARES = 128  # of a board's side before it repeats; an image of 4:3 spans at most 29


@pattern(owner="camera", share=ladder(0.2, 0.3, 0.4, 0.5, 0.6, low=0, high=1, unit="of the black squares"))
def checkerboard_cutout(image: Image, draw: Draw, *, share: float) -> Image:
    """Grey squares: a share of the black squares of a turned chess board, painted (128, 128, 128).

    Squares are 0.1 to 0.25 sides of the image wide.
    """
    size = _size(image)

    def squares(own: Draw) -> imaging.Field:
        chosen = own.uniform_field("squares", (_SQUARES, _SQUARES), 0, 1) < share
        cell = max(own.uniform("cell", 0.1, 0.25) * _side(size), 1)
        return imaging.board(size, cell, own.uniform("angle", 0, 2 * pi), chosen)

    return imaging.cover(image, draw.each(squares), (128.0,) * image.shape[2])


@pattern(
    owner="camera", intensity=ladder(38.4, 64.0, 102.4, 115.2, 128.0, low=0, high=1000, unit="grey levels")
)
def cocentric_sine_waves(image: Image, draw: Draw, *, intensity: float) -> Image:
    """Rings around a point: a saw-tooth of ±intensity/2 along the radius, which itself waves with the angle.

    Rings are up to 0.1 sides wide, and wave by up to as much, up to 10 times a turn. (The spelling is the
    authors'.)
    """
    size = _size(image)

    def pattern(own: Draw) -> imaging.Field:
        amplitude, width = own.uniforms("rings", 2) * 0.1 * _side(size)
        petals = own.uniform("petals", 0, 10)
        return imaging.rings(size, _centre(own, size, 0, 1), petals=petals, amplitude=amplitude, width=width)

    level = (1.0,) * image.shape[2]
    return imaging.add_layer(image, draw.each(pattern), gain=1, scale=intensity, offset=0, colour=level)


def _ray_lengths(
    draw: Draw, number: int, mean: float, least: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Lengths in pixels of 50 to 199 rays, with a deviation of a quarter."""
    count = 50 + draw.integer(f"rays{number}", 150)
    spread = draw.normal_field(f"lengths{number}", (count,), 0, 0.25).astype(np.float64)
    return np.maximum(mean * (1 + spread), least)


_SPARKLES = 5


@pattern(owner="frame", radius=ladder(0.01, 0.02, 0.03, 0.05, 0.06, low=0, high=2, unit="of the side"))
def sparkles(image: Image, draw: Draw, *, radius: float) -> Image:
    """Five glints of many rays, whose light falls with the square of the distance.

    Rays have the length `radius`, with a deviation of a quarter, and are not shorter than a pixel.
    """
    size = _size(image)

    def dark(own: Draw) -> imaging.Field:
        centres = np.array([_centre(own, size, 0, 1, k) for k in range(_SPARKLES)])
        lengths = [_ray_lengths(own, k, radius * _side(size), 1.0) for k in range(_SPARKLES)]
        return 1 - imaging.stars(size, centres, lengths, 1.0)

    return imaging.cover(image, draw.each(dark), (255.0,) * image.shape[2])


@pattern(owner="frame", exponent=ladder(0.13, 0.26, 0.52, 1.17, 1.3, low=0, high=10, unit="exponent"))
def inverse_sparkles(image: Image, draw: Draw, *, exponent: float) -> Image:
    """White-out around a star-shaped hole: the image fades to white with the distance from a point.

    What is left of the image is (ray / distance)^(2·exponent), where rays are a quarter of the side long.
    """
    size = _size(image)

    def white(own: Draw) -> imaging.Field:
        centre = np.array([_centre(own, size, 0.25, 0.75)])
        return imaging.stars(size, centre, [_ray_lengths(own, 0, 0.25 * _side(size), -np.inf)], exponent)

    return imaging.cover(image, draw.each(white), (255.0,) * image.shape[2])


_OCTAVES = 5


@pattern(owner="scene", alpha=ladder(0.23, 0.26, 0.29, 0.38, 0.44, low=0, high=1, unit="weight"))
def perlin_noise(image: Image, draw: Draw, *, alpha: float) -> Image:
    """Smoke: blended with α of a turbulence of Perlin noise, light grey with brighter edges.

    The turbulence is ½ + ½·Σ|noise|/f over f = 1, 2, 4, 8, 16 lattice cells in a seventh of the side. In a
    clip it churns: gradients turn by f radians a second (flow noise, Perlin & Neyret 2001).
    """
    size = _size(image)
    cell = _side(size) / 7

    def smoke(own: Draw) -> imaging.Field:
        gradients = [
            _turned(
                own.uniform_field(f"gradients{k}", (2, *(ceil(n * 2**k / cell) + 2 for n in size)), -1, 1),
                own.time * 2**k,
            )
            for k in range(_OCTAVES)
        ]
        return np.asarray(np.minimum(0.5 * imaging.turbulence(size, cell, gradients) + 0.5, 1), np.float32)

    grey = (255.0,) * image.shape[2]
    return imaging.add_layer(image, draw.each(smoke), gain=1 - alpha, scale=alpha, offset=0, colour=grey)


def _turned(vectors: imaging.Field, angle: float) -> imaging.Field:
    """Vectors (down, across) turned by an angle in radians."""
    if angle == 0:
        return vectors
    down, across = vectors
    return np.stack((down * cos(angle) - across * sin(angle), down * sin(angle) + across * cos(angle)))


@pattern(owner="scene", intensity=ladder(30.4, 44.8, 54.4, 59.2, 64.0, low=0, high=255, unit="grey levels"))
def plasma_noise(image: Image, draw: Draw, *, intensity: float) -> Image:
    """A psychedelic swirl of colours, ±intensity, over an image dimmed by as much.

    A value v becomes (1 − intensity/255)·v + intensity·swirl, with details of 0.075 to 0.2 sides.
    """
    size, channels = _size(image), image.shape[2]

    def colours(own: Draw) -> imaging.Field:
        made = imaging.swirl(
            size,
            scale=own.uniform("scale", 0.075, 0.2) * _side(size),
            time=own.uniform("time", 0, 6 * pi) + own.time,
            octaves=4 + own.integer("octaves", 3),
            sharpness=own.uniform("sharpness", 0.5, 1),
        )
        return made if channels == 3 else (made @ np.array(imaging.LUMA, np.float32))[..., None]

    return imaging.add_pattern(image, draw.each(colours), gain=1 - intensity / 255, scale=intensity)


@pattern(owner="frame", intensity=ladder(19.6, 29.4, 39.2, 88.2, 98.0, low=0, high=1000, unit="grey levels"))
def single_frequency_greyscale(image: Image, draw: Draw, *, intensity: float) -> Image:
    """Stripes: one plane wave of random direction and frequency, of amplitude `intensity`, in all channels.

    Frequencies reach from 0 to half a wave per pixel, at any size of image.
    """
    size = _size(image)

    def stripes(own: Draw) -> imaging.Field:
        first = own.uniform("first", -pi, pi)
        second = own.uniform("second", -abs(first), abs(first))
        pair = (first, second) if own.integer("order", 2) else (second, first)
        return imaging.plane_wave(size, pair, own.uniform("phase", 0, 2 * pi))

    level = (1.0,) * image.shape[2]
    return imaging.add_layer(image, draw.each(stripes), gain=1, scale=intensity, offset=0, colour=level)
