"""Shared by both sets of primitives: border rules, weights and taps. NumPy only; no pixels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float32]

LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601

# Added before a value is truncated, so that rounding noise cannot turn a flat 255 into 254.
GUARD = np.float32(2.0**-12)


TINY = float(np.finfo(np.float32).tiny)  # avoids a division by zero: 0 stays 0


def in_channels(colour: tuple[float, ...], channels: int) -> tuple[float, ...]:
    """An RGB colour for an image with that many channels: itself, or its luma."""
    return colour if channels == 3 else (sum(w * c for w, c in zip(LUMA, colour, strict=True)),)


def border(length: int, radius: int, rule: str) -> npt.NDArray[np.int64]:
    """Source index for positions −radius … length+radius−1.

    `nearest` repeats the edge, `reflect` mirrors and repeats the edge, `mirror` mirrors about the edge.

    >>> border(3, 2, "nearest").tolist(), border(3, 2, "reflect").tolist(), border(3, 2, "mirror").tolist()
    ([0, 0, 0, 1, 2, 2, 2], [1, 0, 0, 1, 2, 2, 1], [2, 1, 0, 1, 2, 1, 0])
    """
    index = np.arange(-radius, length + radius)
    if rule == "nearest" or length == 1:
        return np.clip(index, 0, length - 1)
    period = 2 * length if rule == "reflect" else 2 * length - 2
    index = index % period
    return np.minimum(index, period - index - (rule == "reflect"))


@lru_cache(maxsize=1024)
def half_gaussian(sigma: float, radius: int) -> Field:
    """Weights of a normalised Gaussian from its centre outwards."""
    x = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 / max(sigma, 1e-12) ** 2 * x**2)
    return np.asarray((weights / weights.sum())[radius:], np.float32)


FIXED = 22  # fractional bits of an integer kernel


def fixed_kernel(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """A kernel in integers of `FIXED` fractional bits."""
    radius = weights.shape[0] // 2
    fixed: npt.NDArray[np.int64] = np.rint(weights * 2**FIXED).astype(np.int64)
    fixed[radius, radius] += round(weights.sum() * 2**FIXED) - fixed.sum()  # a flat area keeps its value
    return fixed


def symmetric_runs(weights: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each kernel row from the centre down: (reach, weight) of the nested runs that add up to it."""
    radius = weights.shape[0] // 2
    fixed = fixed_kernel(weights)
    taps: list[tuple[int, int]] = []
    starts = [0]
    for dy in range(radius + 1):
        half = np.append(fixed[radius + dy, radius:], 0)
        taps += [
            (reach, int(half[reach] - half[reach + 1]))
            for reach in range(radius + 1)
            if half[reach] != half[reach + 1]
        ]
        starts.append(len(taps))
    return np.array(taps, np.int64).reshape(-1, 2), np.array(starts, np.int64)


def enlarged_size(size: tuple[int, ...], factor: float) -> tuple[int, int]:
    """The size of a field stretched by `factor`."""
    return round(size[0] * factor), round(size[1] * factor)


def crop_for_zoom(size: tuple[int, int], factor: float) -> tuple[int, int]:
    """The crop whose enlargement by `factor` covers `size`."""
    return ceil(size[0] / factor), ceil(size[1] / factor)


def zoom_crops(
    size: npt.ArrayLike, factors: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each factor the centre crop (rows, columns), and the span that it is stretched to.

    For several sizes, first those of the first size.
    """
    sizes = np.asarray(size, np.float64).reshape(-1, 1, 2)
    crops = np.ceil(sizes / factors[:, None]).astype(np.int64)
    spans = np.rint(crops * factors[:, None]).astype(np.int64)
    return crops.reshape(-1, 2), spans.reshape(-1, 2)


def cloud_side(size: tuple[int, int]) -> int:
    """The side of a cloud that covers an image: a power of two, at least 4.

    >>> [int(cloud_side(size)) for size in ((1, 2), (4, 5), (512, 300), (640, 480))]
    [4, 8, 512, 1024]
    """
    largest = np.maximum(np.maximum(*size), 3)
    return 1 << np.frexp(largest - 1)[1]  # type: ignore[no-any-return]


def picked(options: Sequence[Any], which: Any) -> Any:
    """options[which]; where an option has one value per image, that of the image.

    >>> picked([10, 20], np.array([1, 0, 1])).tolist()
    [20, 10, 20]
    >>> picked([np.array([10, 11, 12]), np.array([20, 21, 22])], np.array([1, 0, 1])).tolist()
    [20, 11, 22]
    """
    table = np.stack(options)
    return table[which] if table.ndim == 1 else table[which, np.arange(len(which))]


_A = -0.75  # the cubic's undershoot, as in OpenCV


def cubic_taps(
    length: int, target: int, start: int, count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """For each of `count` positions: the four pixels it is interpolated from, and their weights."""
    place = (np.arange(start, start + count) + 0.5) * (length / target) - 0.5
    whole = np.floor(place)
    t = place - whole
    weights = np.stack([_outer(t + 1), _inner(t), _inner(1 - t), _outer(2 - t)], axis=1)
    taps = whole.astype(np.int64)[:, None] + np.arange(-1, 3)
    return np.clip(taps, 0, length - 1), weights.astype(np.float32)


def _inner(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return ((_A + 2) * t - (_A + 3)) * t * t + 1


def _outer(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return ((t - 5) * t + 8) * t * _A - 4 * _A


def survey(field: Field, limit: float) -> tuple[float, int, int, int]:
    """The lowest value, and how many are known (not NaN), finite, and finite but beyond `limit`."""
    known, finite = ~np.isnan(field), np.isfinite(field)
    lowest = field[known].min(initial=np.inf)
    return float(lowest), int(known.sum()), int(finite.sum()), int((finite & (field > limit)).sum())


WHOLE = 1 << 11  # the sum of four bilinear weights in integers: exact to a quarter of a grey level
MOST_SAMPLES = 40  # of a streak; longer ones skip pixels
STREAK_BITS = 16  # fractional bits of a position along a streak
DEMOSAIC_REACH = 2  # sites that edge-aware interpolation looks at in each direction

PATCH = 16  # pixels a side; between neighbours a lens's blur changes by a few per cent


def patch_centres(size: tuple[int, int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Row and column of the centre of every patch, for an image of `size` (height, width)."""
    middles = [
        np.array([(start + min(start + PATCH, side) - 1) / 2 for start in range(0, side, PATCH)])
        for side in size
    ]
    return middles[0], middles[1]


SHARP = 0.2  # px; a narrower Gaussian leaves less than 1e-5 of the light outside its pixel
NARROW = 0.5  # px; up to here blending with the sharp image is as good as blurring
_RATIO = 1.25  # between the σ of layers: blending two neighbours is exact to a grey level
SCATTER_CUT = 3.5  # σ; the rest is an eighth of a grey level
FINE = 512  # steps per pixel of a table of variances


def scatter_layers(low: float, high: float) -> npt.NDArray[np.float64]:
    """The σ of the layers that represent all σ between `low` and `high`.

    >>> [scatter_layers(*span).tolist() for span in ((2.5, 2.5), (0.0, 0.1), (0.1, 0.4))]
    [[2.5], [0.0], [0.0, 0.4]]
    """
    if high < SHARP or low == high:
        return np.array([high if high >= SHARP else 0.0])
    start = min(max(low, NARROW), high)
    count = int(np.ceil(np.log(high / start) / np.log(_RATIO) - 1e-9))
    rungs = np.geomspace(start, high, count + 1)
    return np.concatenate(([0.0], rungs)) if low < NARROW else rungs


@lru_cache(maxsize=1)
def sampled_variances() -> Field:
    """The variance of a Gaussian sampled at whole pixels, for σ up to `NARROW`; it is less than σ²."""
    sigma = np.maximum(np.arange(int(NARROW * FINE) + 1) / FINE, 1e-3)
    neighbour = 2 * np.exp(-0.5 / sigma**2)
    return np.asarray(neighbour / (1 + neighbour), np.float32)


# The relief of drops: Canny's thresholds, the distance in pixels that counts as far, the emboss filter.
EDGES = (50, 150)
FAR = 20
EMBOSS = ((-2, -1, 0), (-1, 1, 1), (0, 1, 2))


# The functions below fill arrays in plain loops; the CPU set compiles them.


def box_edges(small: Any, large: Any, edges: Any) -> None:
    """First and past-last source pixel whose centre falls into each block.

    A centre on a boundary belongs to the block before. Rounding in this test decides single columns, so
    it is computed as Pillow computes it.
    """
    scale = large / small
    inverse = 1 / scale
    for i in range(small):
        centre = (i + 0.5) * scale
        first = max(int(centre - scale * 0.5 + 0.5), 0)
        last = min(int(centre + scale * 0.5 + 0.5), large)
        if last - first > 1 and not (first - centre + 0.5) * inverse > -0.5:
            first += 1
        if last - first > 1 and (last - 1 - centre + 0.5) * inverse > 0.5:
            last -= 1
        edges[i, 0], edges[i, 1] = first, last


def nearest_blocks(small: Any, large: Any, index: Any) -> None:
    """The block that each full-size pixel shows; positions accumulate as in Pillow, to round as it does."""
    step = small / large
    position = 0.5 * step
    for i in range(large):
        index[i] = min(int(position), small - 1)
        position += step


def block_factors(edges: Any, factors: Any) -> None:
    """1/count in 22-bit fixed point, for rounding to 8 bits after each pass as Pillow does."""
    for i in range(edges.shape[0]):
        factors[i] = np.uint32(0.5 + (1 << 22) / (edges[i, 1] - edges[i, 0]))


def corner_positions(count: Any, source: Any, span: Any, index: Any, fraction: Any) -> Any:
    """Corner-aligned sampling: output 0 on input 0, output span−1 on input source−1.

    Returns how many positions lie inside. At some sizes rounding puts the last one just outside, and
    SciPy, hence the reference, leaves that row or column black.
    """
    scale = (source - 1) / (span - 1) if span > 1 else 0.0
    for i in range(count):
        position = i * scale
        if position > source - 1:
            return i
        base = min(int(position), max(source - 2, 0))
        index[i] = base
        fraction[i] = position - base
    return count
