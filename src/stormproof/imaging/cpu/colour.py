"""Point operations: look-up tables, layers over the image, changes of HSV and YCrCb."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.layouts import by_pixel, by_row, by_value
from stormproof.imaging.plans import GUARD, LUMA, Field


def channel_means(image: Image) -> npt.NDArray[np.float64]:
    """Mean of each channel, in grey levels."""
    sums = np.array(cv2.sumElems(image)[: image.shape[2]], np.float64)
    sums /= image.shape[0] * image.shape[1]
    return sums


@kernel
def _look_up(pixels: Any, tables: Any, out: Any) -> None:
    if pixels.shape[1] == 3:
        for i in range(pixels.shape[0]):
            out[i, 0] = tables[0, pixels[i, 0]]
            out[i, 1] = tables[1, pixels[i, 1]]
            out[i, 2] = tables[2, pixels[i, 2]]
    else:
        for i in range(pixels.shape[0]):
            out[i, 0] = tables[0, pixels[i, 0]]


def look_up(image: Image, tables: npt.NDArray[np.uint8]) -> Image:
    """Replace v in channel c by tables[c, v]."""
    return by_pixel(_look_up, image, np.ascontiguousarray(tables))


@kernel
def _level(value: Any) -> Any:
    """A float as a grey level: clipped, then truncated."""
    return np.uint8(min(max(value + GUARD, np.float32(0)), np.float32(255)))


@kernel
def spread_out(row: Any, channels: Any, out: Any) -> None:
    """Repeat one value per pixel for each channel, so that the next loop runs over a plain row."""
    if channels == 3:
        for x in range(row.shape[0]):
            value = row[x]
            out[3 * x] = value
            out[3 * x + 1] = value
            out[3 * x + 2] = value
    else:
        for x in range(row.shape[0]):
            out[x] = row[x]


@kernel
def _add_layer(image: Any, layer: Any, gain: Any, scale: Any, offset: Any, colour: Any, out: Any) -> None:
    n = image.shape[1]
    width = layer.shape[1]
    light = np.empty(n, np.float32)
    for y in range(image.shape[0]):
        spread_out(layer[y], n // width, light)
        source, target = image[y], out[y]
        for x in range(n):
            target[x] = _level(gain * source[x] + (scale * light[x] + offset) * colour[x])


def add_layer(
    image: Image, layer: Field, *, gain: float, scale: float, offset: float, colour: tuple[float, ...]
) -> Image:
    """gain·image + (scale·layer + offset)·colour, saturated and truncated; `layer` is H×W, colour 0..255."""
    height, width = image.shape[:2]
    tint = np.tile(np.array(colour, np.float32), width)
    return by_row(
        _add_layer, image, layer[:height, :width], *np.array([gain, scale, offset], np.float32), tint
    )


@kernel
def _add_pattern(image: Any, pattern: Any, gain: Any, scale: Any, out: Any) -> None:
    for i in range(image.shape[0]):
        out[i] = _level(gain * image[i] + scale * pattern[i])


def add_pattern(image: Image, pattern: Field, *, gain: float, scale: float) -> Image:
    """gain·image + scale·pattern, saturated and truncated; `pattern` has the image's shape."""
    return by_value(_add_pattern, image, np.ravel(pattern), np.float32(gain), np.float32(scale))


@kernel
def _cover(image: Any, layer: Any, colour: Any, out: Any) -> None:
    height, width, channels = image.shape
    for y in range(height):
        for x in range(width):
            m = layer[y, x]
            for c in range(channels):
                out[y, x, c] = _level(image[y, x, c] * (np.float32(1) - m) + m * colour[c])


def cover(image: Image, layer: Field, colour: tuple[float, ...]) -> Image:
    """Paint `colour` (0..255) over the image with opacity `layer` (H×W, 0..1)."""
    out = np.empty_like(image, order="C")
    _cover(np.ascontiguousarray(image), layer, np.array(colour, np.float32), out)
    return out


@kernel
def _mix(image: Any, other: Any, a: Any, b: Any, out: Any) -> None:
    for i in range(image.shape[0]):
        # Doubles and no guard: weights like 0.7 make many exact ties, which must truncate as in the
        # reference.
        out[i] = np.uint8(min(a * image[i] + b * other[i], 255.0))


def mix(image: Image, a: float, other: Image, b: float) -> Image:
    """a·image + b·other, saturated and truncated."""
    return by_value(_mix, image, np.ravel(other), np.float64(a), np.float64(b))


@kernel
def _whiten(image: Any, layer: Any, keep: Any, luma: Any, out: Any) -> None:
    n = image.shape[1]
    width = layer.shape[1]
    rest = np.float32(1) - keep
    bright = np.empty(width, np.float32)
    target_light, light = np.empty(n, np.float32), np.empty(n, np.float32)
    for y in range(image.shape[0]):
        source, target = image[y], out[y]
        for x in range(width):
            if n == width:
                grey = np.float32(source[x])
            else:
                grey = luma[0] * source[3 * x] + luma[1] * source[3 * x + 1] + luma[2] * source[3 * x + 2]
            bright[x] = np.float32(1.5) * grey + np.float32(127.5)
        spread_out(bright, n // width, target_light)
        spread_out(layer[y], n // width, light)
        for x in range(n):
            v = np.float32(source[x])
            target[x] = _level(keep * v + rest * max(v, target_light[x]) + light[x])


def whiten(image: Image, layer: Field, keep: float) -> Image:
    """Pull each pixel a share 1 − keep towards 1.5·grey + ½ (never darker), then add `layer` (0..255)."""
    return by_row(_whiten, image, layer, np.float32(keep), np.array(LUMA, np.float32))


@kernel
def _by_brightest(pixels: Any, table: Any, out: Any) -> None:
    for i in range(pixels.shape[0]):
        r, g, b = pixels[i, 0], pixels[i, 1], pixels[i, 2]
        row = table[max(r, max(g, b))]
        out[i, 0] = row[r]
        out[i, 1] = row[g]
        out[i, 2] = row[b]


def by_brightest(image: Image, table: npt.NDArray[np.uint8]) -> Image:
    """Replace v by table[V, v], where V is the pixel's brightest channel, as any change of HSV value does."""
    if image.shape[2] == 1:
        return look_up(image, np.diagonal(table)[None])
    return by_pixel(_by_brightest, image, table)


@kernel
def _resaturate(pixels: Any, spread: Any, tint: Any, guard: Any, out: Any) -> None:
    for i in range(pixels.shape[0]):
        r, g, b = np.int32(pixels[i, 0]), np.int32(pixels[i, 1]), np.int32(pixels[i, 2])
        top = max(r, max(g, b))
        low = min(r, min(g, b))
        if top == low:  # no hue, which HSV treats as red
            shade = np.uint8(np.float32(top) * tint + guard)
            out[i, 0] = top
            out[i, 1] = shade
            out[i, 2] = shade
        else:
            share = spread[top, low]
            v = np.float32(top) + guard
            out[i, 0] = np.uint8(v - share * np.float32(top - r))
            out[i, 1] = np.uint8(v - share * np.float32(top - g))
            out[i, 2] = np.uint8(v - share * np.float32(top - b))


def resaturate(image: Image, spread: Field, tint: float) -> Image:
    """Scale each channel's distance from the brightest by spread[max, min]; greys get G = B = V·tint."""
    return by_pixel(_resaturate, image, spread, np.float32(tint), GUARD)


def grey_of(image: Image) -> Image:
    """Luma of an RGB image as H×W×1; a grey image is returned unchanged."""
    if image.shape[2] == 1:
        return image
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None].astype(np.uint8, copy=False)


def transform_colours(image: Image, matrix: npt.NDArray[np.float64]) -> Image:
    """matrix · (R, G, B, 1) for every pixel, rounded and saturated; `matrix` is 3×4, grey levels."""
    out = cv2.transform(np.ascontiguousarray(image), matrix.astype(np.float32))
    return np.asarray(out, np.uint8)


def to_yuv(image: Image) -> Image:
    """RGB as Y, Cr, Cb of ITU-R BT.601 over the full 8 bits, chroma centred on 128; grey stays Y."""
    if image.shape[2] == 1:
        return image.copy()
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb), np.uint8)


def from_yuv(image: Image) -> Image:
    """The inverse of `to_yuv`."""
    if image.shape[2] == 1:
        return image.copy()
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_YCrCb2RGB), np.uint8)
