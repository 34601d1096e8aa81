"""Digital processing: contrast, saturation, warping, pixelation, compression."""

from __future__ import annotations

from functools import lru_cache, partial
from math import floor

import numpy as np

from stormproof import imaging
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import corruption, ladder

digital = partial(corruption, family="digital", cite="hendrycks2019")


@digital(factor=ladder(0.4, 0.3, 0.2, 0.1, 0.05, low=0, high=10, between="log", unit="×"))
def contrast(image: Image, *, factor: float) -> Image:
    """Reduced contrast around each channel's mean.

    A value v becomes mean + factor·(v − mean).
    """
    means = imaging.channel_means(image)[:, None] / 255
    levels = np.arange(256) / 255
    tables = np.clip((levels - means) * factor + means, 0, 1) * 255
    return imaging.look_up(image, tables.astype(np.uint8))


@lru_cache(maxsize=16)
def _spread(gain: float, offset: float) -> imaging.Field:
    """spread[V, m]: the factor for the distance to the brightest channel V, where m is the darkest."""
    top = np.arange(256)[:, None]
    low = np.minimum(np.arange(256), top)
    chroma = np.maximum(top - low, 1)  # greys are handled separately
    saturation = np.clip(gain * chroma / np.maximum(top, 1) + offset, 0, 1)
    return np.asarray(top * saturation / chroma, np.float32)


@digital(
    gain=ladder(0.3, 0.1, 2, 5, 20.0, low=0, high=1000, between="switch", unit="×"),
    offset=ladder(0, 0, 0, 0.1, 0.2, low=0, high=1, unit="of full saturation"),
)
def saturate(image: Image, *, gain: float, offset: float) -> Image:
    """HSV saturation scaled and shifted: 1 and 2 wash colours out, 3 to 5 exaggerate them.

    S becomes gain·S + offset, clipped to 0 … 1; hue and brightness are kept.
    A positive offset tints neutral pixels red, the hue that HSV gives to grey. A grey image has no
    colour to change and is returned unchanged.
    """
    if image.shape[2] == 1:
        return image.copy()
    return imaging.resaturate(image, _spread(gain, offset), 1 - offset)


def elastic_field(
    size: tuple[int, int], draw: Draw, *, strength: float
) -> tuple[imaging.Field, imaging.Field]:
    """(dy, dx): uniform noise smoothed over 1 % of each side, both amplitudes relative to the height."""
    dx, dy = (_waves(draw, axis, *size, strength) for axis in ("dx", "dy"))
    return dy, dx


@digital(
    cite="michaelis2019",
    owner="camera",
    moves=elastic_field,
    strength=ladder(12.5, 16.25, 21.25, 25.0, 30.0, low=0, high=1000, unit="×"),
)
def elastic_transform(image: Image, draw: Draw, *, strength: float) -> Image:
    """The image stretched and squeezed like a rubber sheet, by about 1 to 2 pixels.

    Displacements are uniform noise of ±0.5 % of the height, smoothed over 1 % of each side, × `strength`.
    Both amplitudes are relative to the height, and labels stay where they are, as in the reference;
    `labels=moved` moves them too.
    """
    height, width = image.shape[:2]
    return imaging.displace(image, *elastic_field((height, width), draw, strength=strength))


def _waves(draw: Draw, axis: str, height: int, width: int, strength: float) -> imaging.Field:
    noise = draw.uniform_field(axis, (height, width), -0.005 * height, 0.005 * height)
    sigma = 0.01 * height, 0.01 * width
    return imaging.gaussian_field(noise, sigma, truncate=3, rule="reflect", gain=strength)


@digital(cite="kar2022", bits=ladder(5, 4, 3, 2, 1, low=1, high=8, unit="bits per channel"))
def color_quant(image: Image, *, bits: int) -> Image:
    """Too few bits: each channel keeps its highest `bits`, and smooth shades become bands."""
    dropped = 8 - bits
    table = (np.arange(256) >> dropped << dropped).astype(np.uint8)
    return imaging.look_up(image, np.tile(table, (image.shape[2], 1)))


@digital(factor=ladder(0.6, 0.5, 0.4, 0.3, 0.25, low=0, high=1, unit="× each side"))
def pixelate(image: Image, *, factor: float) -> Image:
    """Too few pixels: averaged into blocks, then enlarged by repetition.

    Each side shrinks to `factor` times its pixels and grows back to its own size.
    """
    height, width = (max(floor(side * factor), 1) for side in image.shape[:2])
    return imaging.pixelate(image, (height, width))


@digital(quality=ladder(25, 18, 15, 10, 7, low=1, high=100, unit="of 100"))
def jpeg_compression(image: Image, *, quality: int) -> Image:
    """JPEG at low quality with 4:2:0 chroma.

    The image is encoded and decoded; `quality` scales the quantisation tables as libjpeg does.
    """
    return imaging.jpeg(image, quality)
