"""Digital processing: warping, pixelation, compression."""

from __future__ import annotations

from stormproof import imaging
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.corruptions.registry import corruption, ladder


def elastic_field(
    size: tuple[int, int], draw: Draw, *, strength: float
) -> tuple[imaging.Field, imaging.Field]:
    """(dy, dx): uniform noise smoothed over 1 % of each side, both amplitudes by the height."""
    dx, dy = (_waves(draw, axis, *size, strength) for axis in ("dx", "dy"))
    return dy, dx


@corruption(
    family="digital",
    cite="michaelis2019",
    moves=elastic_field,
    strength=ladder(12.5, 16.25, 21.25, 25.0, 30.0, low=0, high=1000, unit="×"),
)
def elastic_transform(image: Image, draw: Draw, *, strength: float) -> Image:
    """The image stretched and squeezed like a rubber sheet, by about 1 to 2 pixels.

    Displacements are uniform noise of ±0.5 % of the height, smoothed over 1 % of each side, × `strength`.
    Both amplitudes go by the height, as in the reference. As there, labels stay where they are;
    `labels=moved` moves them too.
    """
    height, width = image.shape[:2]
    return imaging.displace(image, *elastic_field((height, width), draw, strength=strength))


def _waves(draw: Draw, axis: str, height: int, width: int, strength: float) -> imaging.Field:
    noise = draw.uniform_field(axis, (height, width), -0.005 * height, 0.005 * height)
    field = imaging.gaussian_field(noise, (0.01 * height, 0.01 * width), truncate=3, rule="reflect")
    field *= strength
    return field


@corruption(
    family="digital",
    cite="hendrycks2019",
    factor=ladder(0.6, 0.5, 0.4, 0.3, 0.25, low=0, high=1, unit="× each side"),
)
def pixelate(image: Image, *, factor: float) -> Image:
    """Too few pixels: averaged into blocks, then enlarged by repetition.

    Each side shrinks to `factor` times its pixels and grows back to its own size.
    """
    height, width = (max(int(side * factor), 1) for side in image.shape[:2])
    return imaging.pixelate(image, (height, width))


@corruption(
    family="digital", cite="hendrycks2019", quality=ladder(25, 18, 15, 10, 7, low=1, high=100, unit="of 100")
)
def jpeg_compression(image: Image, *, quality: int) -> Image:
    """JPEG at low quality with 4:2:0 chroma.

    The image is encoded and decoded; `quality` scales the quantisation tables as libjpeg does.
    """
    return imaging.jpeg(image, quality)
