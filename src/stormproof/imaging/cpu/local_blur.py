"""Blur that changes over the image: a kernel for each patch, a Gaussian for each pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.convolution import pad, symmetric_sum
from stormproof.imaging.plans import (
    FINE,
    NARROW,
    PATCH,
    SCATTER_CUT,
    SHARP,
    Field,
    border,
    half_gaussian,
    sampled_variances,
    scatter_layers,
)


@kernel
def _patch(
    source: Any, taps: Any, reach: Any, top: Any, start: Any, wide: Any, deep: Any, step: Any, out: Any
) -> None:
    """One patch: rows top … top + deep, values start … start + wide of a padded float image."""
    radius = taps.shape[0] // 2
    line = np.empty(wide, np.float32)
    for y in range(deep):
        line[:] = 0
        for i in range(taps.shape[0]):
            row = source[top + y + reach - radius + i]
            for j in range(taps.shape[1]):
                w = taps[i, j]
                offset = start + (reach - radius + j) * step
                values = row[offset : offset + wide]
                for x in range(wide):
                    line[x] += w * values[x]
        target = out[top + y, start : start + wide]
        for x in range(wide):
            target[x] = np.uint8(min(line[x] + np.float32(0.5), np.float32(255)))


@kernel
def _patches(source: Any, kernels: Any, radii: Any, reach: Any, channels: Any, size: Any, out: Any) -> None:
    height, n = out.shape
    width = n // channels
    for i in range(kernels.shape[0]):
        for j in range(kernels.shape[1]):
            r = radii[i, j]
            taps = kernels[i, j, reach - r : reach + r + 1, reach - r : reach + r + 1]
            top, left = i * size, j * size
            deep, wide = min(size, height - top), min(size, width - left) * channels
            _patch(source, taps, reach, top, left * channels, wide, deep, channels, out)


@kernel
def _splat(cos: Any, sin: Any, radial: Any, tangential: Any, nodes: Any, weights: Any, out: Any) -> None:
    """Distribute each node of a Gaussian linearly over the four pixels around it."""
    reach = np.float64(out.shape[0] // 2)
    for a in range(nodes.shape[0]):
        for b in range(nodes.shape[0]):
            if nodes[a] ** 2 + nodes[b] ** 2 > nodes[0] ** 2:
                continue
            along, across = radial * nodes[a], tangential * nodes[b]
            y = reach + sin * along + cos * across
            x = reach + cos * along - sin * across
            i, j = int(y), int(x)
            f, g = y - i, x - j
            w = weights[a] * weights[b]
            out[i, j] += w * (1 - f) * (1 - g)
            out[i, j + 1] += w * (1 - f) * g
            out[i + 1, j] += w * f * (1 - g)
            out[i + 1, j + 1] += w * f * g


@kernel
def _splat_all(angle: Any, radial: Any, tangential: Any, nodes: Any, weights: Any, out: Any) -> None:
    for i in range(angle.shape[0]):
        for j in range(angle.shape[1]):
            cos, sin = np.cos(angle[i, j]), np.sin(angle[i, j])
            _splat(cos, sin, radial[i, j], tangential[i, j], nodes, weights, out[i, j])


def spread_kernels(
    angle: npt.NDArray[np.float64], radial: npt.NDArray[np.float64], tangential: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Kernels of Gaussians with standard deviations along and across a direction, and their radii.

    Pixels are squares that emit and receive light evenly, so a Gaussian much narrower than a pixel still
    moves some light across its borders, in proportion to its width.
    """
    nodes = np.linspace(-3, 3, 25)
    weights = np.exp(-0.5 * nodes**2)
    radii = np.ceil(nodes[-1] * np.maximum(radial, tangential)).astype(np.int64) + 1
    side = 2 * int(radii.max()) + 1
    kernels = np.zeros((*angle.shape, side, side), np.float32)
    _splat_all(angle, radial, tangential, nodes, weights, kernels)
    kernels /= kernels.sum(axis=(2, 3), keepdims=True)
    return kernels, radii


def blur_patches(image: Image, kernels: npt.NDArray[np.float32], radii: npt.NDArray[np.int64]) -> Image:
    """Correlate each 16×16 patch with its own odd square kernel; edges repeated, rounded.

    `kernels` is rows × columns of patches × k × k, zero outside its `radii`.
    """
    height, width, channels = image.shape
    reach = kernels.shape[2] // 2
    rows, columns = border(height, reach, "nearest"), border(width, reach, "nearest")
    padded = np.ascontiguousarray(image[rows][:, columns], np.float32).reshape(len(rows), -1)
    out = np.empty((height, width * channels), np.uint8)
    _patches(padded, kernels, radii, reach, channels, PATCH, out)
    return out.reshape(image.shape)


@kernel
def _share_out(sigma: Any, sigmas: Any, table: Any, layer: Any, upper: Any, extent: Any) -> None:
    """For each pixel its layer k and the share of its light that goes to layer k + 1.

    `extent` becomes the first and last row with light of each layer; last < first if there is none.
    """
    height, width = sigma.shape
    last = sigmas.shape[0] - 1
    extent[:, 0] = height
    extent[:, 1] = -1
    squares = sigmas * sigmas
    if squares[0] == 0 and last > 0 and sigmas[1] <= np.float32(NARROW):
        squares[1] = table[np.int64(sigmas[1] * np.float32(FINE))]
    k = 0
    for y in range(height):
        row, at, up = sigma[y], layer[y], upper[y]
        for x in range(width):
            s = row[x]
            while k < last - 1 and sigmas[k + 1] <= s:  # from the neighbour's layer, which is seldom far
                k += 1
            while k > 0 and sigmas[k] > s:
                k -= 1
            share = np.float32(0)
            if last > 0:  # variances add, so the share is linear in σ²
                v = table[np.int64(s * np.float32(FINE))] if s <= np.float32(NARROW) else s * s
                share = (v - squares[k]) / (squares[k + 1] - squares[k])
                share = min(max(share, np.float32(0)), np.float32(1))
            at[x] = k
            up[x] = share
            if share < 1:
                extent[k, 0] = min(extent[k, 0], y)
                extent[k, 1] = y
            if share > 0:
                extent[k + 1, 0] = min(extent[k + 1, 0], y)
                extent[k + 1, 1] = y


@kernel
def _lift(source: Any, at: Any, up: Any, k: Any, weights: Any, out: Any) -> Any:
    """The weighted light of one layer along a row, with each pixel's weight behind its channels.

    Returns whether there is any; if not, `out` is not filled.
    """
    width = at.shape[0]
    most = np.float32(0)
    for x in range(width):
        own = np.float32(1) - up[x] if at[x] == k else np.float32(0)
        weights[x] = up[x] if at[x] == k - 1 else own
        most = max(most, weights[x])
    if most == 0:
        return False
    if source.shape[1] == 3:
        for x in range(width):
            w = weights[x]
            out[4 * x] = w * np.float32(source[x, 0])
            out[4 * x + 1] = w * np.float32(source[x, 1])
            out[4 * x + 2] = w * np.float32(source[x, 2])
            out[4 * x + 3] = w
    else:
        for x in range(width):
            out[2 * x] = weights[x] * np.float32(source[x, 0])
            out[2 * x + 1] = weights[x]
    return True


_TILE = 128  # values; as many rows of a tile as a wide Gaussian spans stay in the cache


@kernel
def _any_lit(lit: Any, first: Any, last: Any) -> Any:
    found = False
    for r in range(first, last + 1):
        found = found or lit[r]
    return found


@kernel
def _two_rows(tile: Any, row: Any, lit: Any, half: Any, out: Any) -> None:
    """The weighted sums of the tile's rows around `row`, and around the row below it, to both rows of `out`.

    A pass adds four pairs to both, which takes ten rows instead of sixteen. The order of additions is that of
    `symmetric_sum`; rows without light are skipped, since 0 changes no sum.
    """
    centre = tile[row * _TILE : (row + 2) * _TILE]
    for x in range(2 * _TILE):
        out[x] = half[0] * centre[x]
    for j in range(1, half.shape[0], 4):
        if not (_any_lit(lit, row - j - 3, row - j + 1) or _any_lit(lit, row + j, row + j + 4)):
            continue
        o, p, q, r = half[j], half[j + 1], half[j + 2], half[j + 3]
        a = tile[(row - j - 3) * _TILE : (row - j + 2) * _TILE]
        b = tile[(row + j) * _TILE : (row + j + 5) * _TILE]
        for x in range(_TILE):
            a1, a2, a3 = a[x + _TILE], a[x + 2 * _TILE], a[x + 3 * _TILE]
            b1, b2, b3 = b[x + _TILE], b[x + 2 * _TILE], b[x + 3 * _TILE]
            first = (out[x] + o * (a3 + b[x])) + p * (a2 + b1)
            out[x] = (first + q * (a1 + b2)) + r * (a[x] + b3)
            second = (out[x + _TILE] + o * (a[x + 4 * _TILE] + b1)) + p * (a3 + b2)
            out[x + _TILE] = (second + q * (a2 + b3)) + r * (a1 + b[x + 4 * _TILE])


@kernel
def _add_layer(
    image: Any, layer: Any, upper: Any, k: Any, half: Any, columns: Any, low: Any, high: Any, tiles: Any,
    total: Any,
) -> None:  # fmt: skip
    """Blur one layer, with light in rows low … high, and add it to `total`; `tiles` holds filtered rows."""
    height, width, channels = image.shape
    step = channels + 1
    n = width * step
    radius = half.shape[0] - 1
    reach = (radius + 3) // 4 * 4  # down, pairs come in fours; weights of 0 change no sum
    down = np.zeros(reach + 1, np.float32)
    down[: radius + 1] = half
    first, last = max(low - radius, 0), min(high + radius, height - 1)
    count = last - first + 1
    padded = np.empty(columns.shape[0] * step, np.float32)
    row, filtered = np.empty(n, np.float32), np.zeros(tiles.shape[0] * _TILE, np.float32)
    weights, lit = np.empty(width, np.float32), np.empty(count + 1 + 2 * reach, np.bool_)
    along = np.arange(2 * radius + 1) * step
    before = -1
    for r in range(count + 1 + 2 * reach):
        y = min(max(first + r - reach, 0), height - 1)
        if y == before:  # the edge, repeated
            lit[r] = lit[r - 1]
        else:
            lit[r] = low <= y <= high and _lift(image[y], layer[y], upper[y], k, weights, row)
            if lit[r]:
                pad(row, step, columns, padded)
                symmetric_sum(padded, along, half, filtered[:n])
            elif r == 0 or lit[r - 1]:
                filtered[:] = 0
        before = y
        for t in range(tiles.shape[0]):
            source, target = filtered[t * _TILE : (t + 1) * _TILE], tiles[t, r * _TILE : (r + 1) * _TILE]
            for x in range(_TILE):
                target[x] = source[x]
    two = np.empty(2 * _TILE, np.float32)
    for t in range(tiles.shape[0]):
        for r in range(0, count, 2):
            _two_rows(tiles[t], r + reach, lit, down, two)
            for i in range(min(count - r, 2)):
                target = total[first + r + i, t * _TILE : (t + 1) * _TILE]
                for x in range(target.shape[0]):
                    target[x] += two[i * _TILE + x]


@kernel
def _level(light: Any, weight: Any) -> Any:
    return np.uint8(min(max(light * weight + np.float32(0.5), np.float32(0)), np.float32(255)))


@kernel
def _gather(total: Any, out: Any) -> None:
    """Light over weight, rounded."""
    for y in range(out.shape[0]):
        source, target = total[y], out[y]
        if out.shape[2] == 3:
            for x in range(out.shape[1]):
                share = np.float32(1) / source[4 * x + 3]
                target[x, 0] = _level(source[4 * x], share)
                target[x, 1] = _level(source[4 * x + 1], share)
                target[x, 2] = _level(source[4 * x + 2], share)
        else:
            for x in range(out.shape[1]):
                target[x, 0] = _level(source[2 * x], np.float32(1) / source[2 * x + 1])


def scatter_gaussian(image: Image, sigma: Field) -> Image:
    """Σ_y I(y)·g(x; y, σ(y)) / Σ_y g(x; y, σ(y)): each pixel y spreads its light by its own σ, in pixels.

    Each g sums to one. Pixels are sorted into layers of equal σ; light between two layers is shared so that
    its variance is right. The edge is repeated outside the frame, as in a plain Gaussian blur.
    """
    height, width, channels = image.shape
    sigmas = scatter_layers(float(sigma.min()), float(sigma.max()))
    layer = np.empty(sigma.shape, np.int8)
    upper = np.empty(sigma.shape, np.float32)
    extent = np.empty((len(sigmas), 2), np.int64)
    _share_out(
        np.ascontiguousarray(sigma), sigmas.astype(np.float32), sampled_variances(), layer, upper, extent
    )
    pixels = np.ascontiguousarray(image)
    total = np.zeros((height, width * (channels + 1)), np.float32)
    most = int(SCATTER_CUT * sigmas[-1] + 0.5)
    rows = height + 1 + 2 * (most + 3)
    tiles = np.empty((-(-total.shape[1] // _TILE), rows * _TILE), np.float32)  # one layer's rows, filtered
    for k, s in enumerate(sigmas):
        reach = int(SCATTER_CUT * s + 0.5) if s >= SHARP else 0
        if extent[k, 0] <= extent[k, 1]:
            half, columns = half_gaussian(float(s), reach), border(width, reach, "nearest")
            low, high = extent[k]
            _add_layer(pixels, layer, upper, k, half, columns, low, high, tiles, total)
    out = np.empty_like(image, order="C")
    _gather(total, out)
    return out
