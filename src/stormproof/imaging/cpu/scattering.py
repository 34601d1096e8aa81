"""Scattered light: every pixel spreads its own light by its own Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.imaging.cpu.gaussian import Field, gaussian_field
from stormproof.imaging.cpu.kernel import kernel
from stormproof.sample import Image

_SHARP = 0.2  # px; a narrower Gaussian leaves less than 1e-5 of the light outside its pixel
_RATIO = 1.2  # from one layer's σ to the next: a blend of two neighbours is within half a grey level
_CUT = 4.0  # σ


def layers(low: float, high: float) -> npt.NDArray[np.float64]:
    """The σ that stand for all those between `low` and `high`; alone if there is but one.

    >>> layers(2.5, 2.5).tolist(), layers(0.0, 0.1).tolist()
    ([2.5], [0.0])
    """
    if high < _SHARP:
        return np.zeros(1)
    start = max(low, _SHARP)
    count = int(np.ceil(np.log(high / start) / np.log(_RATIO) - 1e-9))
    rungs = np.geomspace(start, high, count + 1) if count > 0 else np.array([high])
    return np.concatenate(([0.0], rungs)) if low < _SHARP else rungs


@kernel
def _share_out(sigma: Any, sigmas: Any, layer: Any, upper: Any) -> None:
    """For each pixel its layer k and the share of its light that goes to layer k + 1."""
    last = sigmas.shape[0] - 1
    for i in range(sigma.shape[0]):
        s = sigma[i]
        k = 0
        while k < last - 1 and sigmas[k + 1] <= s:
            k += 1
        if last == 0:
            layer[i] = 0
            upper[i] = 0
            continue
        # Variances add, so the blend with the right variance is linear in σ².
        a, b = sigmas[k], sigmas[k + 1]
        share = (s * s - a * a) / (b * b - a * a)
        layer[i] = k
        upper[i] = min(max(share, np.float32(0)), np.float32(1))


@kernel
def _lift(image: Any, layer: Any, upper: Any, k: Any, top: Any, left: Any, out: Any) -> None:
    """One layer's light, weighted, and the weights as a last channel."""
    height, width, last = out.shape[0], out.shape[1], out.shape[2] - 1
    for y in range(height):
        for x in range(width):
            at = layer[top + y, left + x]
            w = np.float32(0)
            if at == k:
                w = np.float32(1) - upper[top + y, left + x]
            elif at == k - 1:
                w = upper[top + y, left + x]
            for c in range(last):
                out[y, x, c] = w * np.float32(image[top + y, left + x, c])
            out[y, x, last] = w


@kernel
def _extent(layer: Any, upper: Any, count: Any, out: Any) -> None:
    """For each layer the rows and columns (first, last) that hold any of its light; last < first if none."""
    height, width = layer.shape
    for k in range(count):
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = height, -1, width, -1
    for y in range(height):
        for x in range(width):
            k = layer[y, x]
            share = upper[y, x]
            for step in range(2):
                if (step == 0 and share < 1) or (step == 1 and share > 0):
                    box = out[k + step]
                    box[0] = min(box[0], y)
                    box[1] = max(box[1], y)
                    box[2] = min(box[2], x)
                    box[3] = max(box[3], x)


@kernel
def _gather(total: Any, out: Any) -> None:
    channels = out.shape[2]
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            weight = total[y, x, channels]
            for c in range(channels):
                level = total[y, x, c] / weight + np.float32(0.5)
                out[y, x, c] = np.uint8(min(max(level, np.float32(0)), np.float32(255)))


def scatter_gaussian(image: Image, sigma: Field) -> Image:
    """Σ_y I(y)·g(x; y, σ(y)) / Σ_y g(x; y, σ(y)): each pixel y spreads its light by its own σ, in pixels.

    Each g sums to one. Pixels are sorted into layers of equal σ; light between two layers is shared so
    that its variance is right. Beyond the frame the edge goes on, as it does for a plain Gaussian blur.
    """
    sigmas = layers(float(sigma.min()), float(sigma.max()))
    layer = np.empty(sigma.shape, np.int32)
    upper = np.empty(sigma.shape, np.float32)
    _share_out(np.ravel(sigma), sigmas.astype(np.float32), layer.reshape(-1), upper.reshape(-1))
    extents = np.empty((len(sigmas), 4), np.int64)
    _extent(layer, upper, len(sigmas), extents)
    total = np.zeros((*image.shape[:2], image.shape[2] + 1), np.float32)
    for k, s in enumerate(sigmas):
        _add_layer(image, layer, upper, k, float(s), extents[k], total)
    out = np.empty_like(image, order="C")
    _gather(total, out)
    return out


def _add_layer(
    image: Image,
    layer: npt.NDArray[np.int32],
    upper: Field,
    k: int,
    sigma: float,
    extent: npt.NDArray[np.int64],
    total: Field,
) -> None:
    """Blur one layer within the rectangle it can reach and add it to the total."""
    height, width = layer.shape
    first, last, left, right = (int(edge) for edge in extent)
    if last < first:
        return
    reach = int(_CUT * sigma + 0.5) if sigma >= _SHARP else 0
    first, left = max(first - reach, 0), max(left - reach, 0)
    last, right = min(last + reach + 1, height), min(right + reach + 1, width)
    light = np.empty((last - first, right - left, total.shape[2]), np.float32)
    _lift(np.ascontiguousarray(image), layer, upper, k, first, left, light)
    if reach:
        light = gaussian_field(light, (sigma, sigma), truncate=_CUT, rule="nearest")
    total[first:last, left:right] += light
