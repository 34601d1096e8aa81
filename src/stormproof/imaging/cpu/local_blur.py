"""Blur that changes over the image: a kernel for each patch, a Gaussian for each pixel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
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
    k, share, known = 0, np.float32(0), np.float32(-1)
    for y in range(height):
        row, at, up = sigma[y], layer[y], upper[y]
        for x in range(width):
            s = row[x]
            if s != known:  # many neighbours are equal: the sky, and whatever is clipped
                while k < last - 1 and sigmas[k + 1] <= s:  # from the neighbour's layer, which is seldom far
                    k += 1
                while k > 0 and sigmas[k] > s:
                    k -= 1
                share = np.float32(0)
                if last > 0:  # variances add, so the share is linear in σ²
                    v = table[np.int64(s * np.float32(FINE))] if s <= np.float32(NARROW) else s * s
                    share = (v - squares[k]) / (squares[k + 1] - squares[k])
                    share = min(max(share, np.float32(0)), np.float32(1))
                known = s
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

    Returns whether there is any; if not, `out` is not filled. `weights` become those of the pixels.
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


class _Space(NamedTuple):
    """Buffers for one layer, each in two views: single values, and all values of a pixel as one number.

    Moving a pixel as one number is four times as fast.
    """

    row: Any  # of the image
    row_pixels: Any
    lined: Any  # several rows of the image: pixels below, rows side by side
    lined_pixels: Any
    four: Any  # rows of a tile
    four_pixels: Any
    tiles: Any  # the layer, filtered along rows: columns of _TILE values
    tile_pixels: Any


def _space(height: int, width: int, channels: int, reach: int) -> _Space:
    step, rows = channels + 1, height + 2 * reach + 4
    shapes = (
        (1, width * step),
        (width + 2 * reach + 4, _TILE),
        (4, _TILE),
        (-(-width * step // _TILE), rows, _TILE),
    )
    number = np.complex128 if channels == 3 else np.float64
    made = [np.zeros(shape, np.float32) for shape in shapes]
    return _Space(*(view for values in made for view in (values, values.view(number))))


@kernel
def _running(lit: Any) -> Any:
    """The number of lit entries before each."""
    out = np.zeros(lit.shape[0] + 1, np.int64)
    for i in range(lit.shape[0]):
        out[i + 1] = out[i] + lit[i, 0]
    return out


@kernel
def _four_rows(tile: Any, row: Any, lit: Any, half: Any, n: Any, out: Any) -> None:
    """The weighted sums around a tile's `row` and around the three below it, n values of each, in `out`.

    A pass adds four pairs to all four, which takes 14 rows instead of 32. The order of additions is that of
    `symmetric_sum`; rows without light are skipped, since 0 changes no sum. `lit` is a result of `_running`.
    """
    centre = tile[row * _TILE : (row + 4) * _TILE]
    for x in range(4 * _TILE):
        out[x] = half[0] * centre[x]
    for j in range(1, half.shape[0], 4):
        above, below = row - j - 3, row + j
        if lit[above + 7] == lit[above] and lit[below + 7] == lit[below]:
            continue
        o, p, q, r = half[j], half[j + 1], half[j + 2], half[j + 3]
        a, b = tile[above * _TILE : (above + 7) * _TILE], tile[below * _TILE : (below + 7) * _TILE]
        for x in range(n):
            a1, a2, a3 = a[x + _TILE], a[x + 2 * _TILE], a[x + 3 * _TILE]
            a4, a5, b1 = a[x + 4 * _TILE], a[x + 5 * _TILE], b[x + _TILE]
            b2, b3, b4, b5 = b[x + 2 * _TILE], b[x + 3 * _TILE], b[x + 4 * _TILE], b[x + 5 * _TILE]
            e = (out[x] + o * (a3 + b[x])) + p * (a2 + b1)
            out[x] = (e + q * (a1 + b2)) + r * (a[x] + b3)
            f = (out[x + _TILE] + o * (a4 + b1)) + p * (a3 + b2)
            out[x + _TILE] = (f + q * (a2 + b3)) + r * (a1 + b4)
            g = (out[x + 2 * _TILE] + o * (a5 + b2)) + p * (a4 + b3)
            out[x + 2 * _TILE] = (g + q * (a3 + b4)) + r * (a2 + b5)
            h = (out[x + 3 * _TILE] + o * (a[x + 6 * _TILE] + b3)) + p * (a5 + b4)
            out[x + 3 * _TILE] = (h + q * (a4 + b5)) + r * (a3 + b[x + 6 * _TILE])


@kernel
def _repeat_edges(rows: Any, reach: Any, length: Any, end: Any) -> None:
    """Continue rows reach … reach + length by the first and the last, from 0 to `end`."""
    for r in range(reach):
        for x in range(rows.shape[1]):
            rows[r, x] = rows[reach, x]
    for r in range(reach + length, end):
        for x in range(rows.shape[1]):
            rows[r, x] = rows[reach + length - 1, x]


@kernel
def _across(
    image: Any, layer: Any, upper: Any, k: Any, half: Any, top: Any, rows: Any, start: Any, space: Any
) -> Any:
    """Filter some rows of a layer along the row, into rows of the tiles; returns whether they have light."""
    width, reach = image.shape[1], half.shape[0] - 1
    end, beside = width + 2 * reach + 4, space.lined_pixels.shape[1]
    weights, lit = np.empty(width, np.float32), np.zeros((end, 1), np.bool_)
    any_light = False
    for i in range(rows):
        y = top + i
        if _lift(image[y], layer[y], upper[y], k, weights, space.row[0]):
            any_light = True
        else:
            space.row[0, :] = 0
        for x in range(width):
            space.lined_pixels[reach + x, i] = space.row_pixels[0, x]
            lit[reach + x, 0] |= weights[x] > 0
    _repeat_edges(space.lined_pixels, reach, width, end)
    _repeat_edges(lit, reach, width, end)
    before, lined, four = _running(lit), space.lined.reshape(-1), space.four.reshape(-1)
    for x in range(0, width, 4):
        _four_rows(lined, x + reach, before, half, rows * (_TILE // beside), four)
        for p in range(x, min(x + 4, width)):
            column = space.tile_pixels[p // beside]
            for i in range(rows):
                column[start + i, p % beside] = space.four_pixels[p - x, i]
    return any_light


@kernel
def _add_sharp(image: Any, layer: Any, upper: Any, k: Any, low: Any, high: Any, row: Any, total: Any) -> None:
    """Add the light of a layer that is not blurred."""
    weights = np.empty(image.shape[1], np.float32)
    for y in range(low, high + 1):
        if _lift(image[y], layer[y], upper[y], k, weights, row):
            target = total[y]
            for x in range(row.shape[0]):
                target[x] += row[x]


@kernel
def _add_layer(
    image: Any, layer: Any, upper: Any, k: Any, half: Any, low: Any, high: Any, space: Any, total: Any
) -> None:
    """Blur one layer, with light in rows low … high, and add it to `total`."""
    height, beside, radius = image.shape[0], space.lined_pixels.shape[1], half.shape[0] - 1
    reach = (radius + 3) // 4 * 4  # pairs come in fours; weights of 0 change no sum
    weights = np.zeros(reach + 1, np.float32)
    weights[: radius + 1] = half
    first, last = max(low - radius, 0), min(high + radius, height - 1)
    count = last - first + 1
    end, start = count + 2 * reach + 4, low - first + reach  # of tiles, and of the layer's light in them
    lit = np.zeros((end, 1), np.bool_)
    for top in range(low, high + 1, beside):
        rows, place = min(beside, high + 1 - top), start + top - low
        lit[place : place + rows] = _across(image, layer, upper, k, weights, top, rows, place, space)
    _repeat_edges(lit, reach, count, end)
    before, four = _running(lit), space.four.reshape(-1)
    for t in range(space.tiles.shape[0]):
        pixels, tile = space.tile_pixels[t], space.tiles[t].reshape(-1)
        pixels[:start] = 0
        pixels[start + high + 1 - low : end] = 0
        _repeat_edges(pixels, reach, count, end)
        for r in range(0, count, 4):
            _four_rows(tile, r + reach, before, weights, _TILE, four)
            for i in range(min(count - r, 4)):
                target = total[first + r + i, t * _TILE : (t + 1) * _TILE]
                for x in range(target.shape[0]):
                    target[x] += four[i * _TILE + x]


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
    space = _space(height, width, channels, int(SCATTER_CUT * sigmas[-1] + 0.5) + 3)
    for k, s in enumerate(sigmas):
        reach = int(SCATTER_CUT * s + 0.5) if s >= SHARP else 0
        low, high = extent[k]
        if low <= high and reach == 0:
            _add_sharp(pixels, layer, upper, k, low, high, space.row[0], total)
        elif low <= high:
            _add_layer(pixels, layer, upper, k, half_gaussian(float(s), reach), low, high, space, total)
    out = np.empty_like(image, order="C")
    _gather(total, out)
    return out
