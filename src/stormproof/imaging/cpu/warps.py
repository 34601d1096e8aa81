"""Resampling: zooms, displacement fields, scattered pixels, bicubic enlargement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.layouts import by_pixel, by_value
from stormproof.imaging.plans import (
    GUARD,
    MOST_SAMPLES,
    STREAK_BITS,
    WHOLE,
    Field,
    corner_positions,
    cubic_taps,
    enlarged_size,
    zoom_crops,
)

_positions = kernel(corner_positions)


@kernel
def _enlarge_row(
    a: Any, b: Any, f: Any, index: Any, fraction: Any, channels: Any, line: Any, out: Any
) -> None:
    """Add one bilinear row to `out`: blend rows a and b, then sample along the blend."""
    for x in range(a.shape[0]):
        p = np.float32(a[x])
        line[x] = p + f * (np.float32(b[x]) - p)
    last = line.shape[0] - channels
    if channels == 3:
        for x in range(index.shape[0]):
            i = index[x] * 3
            j = min(i + 3, last)
            g = fraction[x]
            out[3 * x] += line[i] + g * (line[j] - line[i])
            out[3 * x + 1] += line[i + 1] + g * (line[j + 1] - line[i + 1])
            out[3 * x + 2] += line[i + 2] + g * (line[j + 2] - line[i + 2])
    else:
        for x in range(index.shape[0]):
            i = index[x]
            j = min(i + 1, last)
            out[x] += line[i] + fraction[x] * (line[j] - line[i])


@kernel
def _zoom_mean(image: Any, crops: Any, spans: Any, guard: Any, out: Any) -> None:
    height, width, channels = image.shape
    layers = crops.shape[0]
    rows = np.empty((layers, height), np.int32)
    down = np.empty((layers, height), np.float32)
    columns = np.empty((layers, width), np.int32)
    across = np.empty((layers, width), np.float32)
    inside = np.empty((layers, 2), np.int64)
    for k in range(layers):
        inside[k, 0] = _positions(height, crops[k, 0], spans[k, 0], rows[k], down[k])
        inside[k, 1] = _positions(width, crops[k, 1], spans[k, 1], columns[k], across[k])
    total = np.empty(width * channels, np.float32)
    share = np.float32(1) / np.float32(layers + 1)
    for y in range(height):
        source = image[y].reshape(-1)
        for x in range(total.shape[0]):
            total[x] = source[x]
        for k in range(layers):
            if y >= inside[k, 0]:
                continue
            left = (width - crops[k, 1]) // 2
            top = (height - crops[k, 0]) // 2 + rows[k, y]
            line = np.empty(crops[k, 1] * channels, np.float32)
            a = image[top, left : left + crops[k, 1]].reshape(-1)
            b = image[min(top + 1, height - 1), left : left + crops[k, 1]].reshape(-1)
            _enlarge_row(a, b, down[k, y], columns[k, : inside[k, 1]], across[k], channels, line, total)
        target = out[y].reshape(-1)
        for x in range(total.shape[0]):
            target[x] = np.uint8(min(total[x] * share + guard, np.float32(255)))


def zoom_mean(image: Image, factors: npt.NDArray[np.float64]) -> Image:
    """Mean of the image and its central enlargements by each factor, truncated.

    An enlargement by z is the centre crop of ⌈side/z⌉ stretched to round(crop·z), cut top left.
    """
    height, width = image.shape[:2]
    crops, spans = zoom_crops((height, width), factors)
    out = np.empty_like(image, order="C")
    _zoom_mean(np.ascontiguousarray(image), crops, spans, GUARD, out)
    return out


@kernel
def _enlarge(field: Any, out: Any) -> None:
    height, width = out.shape
    rows = np.empty(height, np.int32)
    down = np.empty(height, np.float32)
    columns = np.empty(width, np.int32)
    across = np.empty(width, np.float32)
    deep = _positions(height, field.shape[0], height, rows, down)
    wide = _positions(width, field.shape[1], width, columns, across)
    line = np.empty(field.shape[1], np.float32)
    out[:] = 0
    for y in range(deep):
        below = min(rows[y] + 1, field.shape[0] - 1)
        _enlarge_row(field[rows[y]], field[below], down[y], columns[:wide], across, 1, line, out[y])


def enlarge(field: Field, factor: float) -> Field:
    """Stretch a field by `factor`, corners on corners, linearly between samples."""
    out = np.empty(enlarged_size(field.shape, factor), np.float32)
    _enlarge(np.ascontiguousarray(field), out)
    return out


@kernel
def _fold(position: Any, length: Any) -> Any:
    """Mirror an integer position into 0..length−1, repeating the edge."""
    period = 2 * length
    position = position % period
    return position if position < length else period - 1 - position


@kernel
def _between(a: Any, b: Any, c: Any, d: Any, f: Any, g: Any) -> Any:
    """Bilinear: a, b on the upper row, c, d on the lower; f down, g across."""
    upper = np.float32(a) + g * (np.float32(b) - np.float32(a))
    lower = np.float32(c) + g * (np.float32(d) - np.float32(c))
    return np.uint8(upper + f * (lower - upper) + GUARD)


@kernel
def _displace(image: Any, width: Any, channels: Any, dy: Any, dx: Any, out: Any) -> None:
    """`image` and `out` are flat; unsigned offsets need no check for negative ones."""
    height = dy.shape[0]
    for y in range(height):
        for x in range(width):
            v = np.float32(y) + dy[y, x]
            u = np.float32(x) + dx[y, x]
            i = np.int32(np.floor(v))
            j = np.int32(np.floor(u))
            f = np.float32(v - np.float32(i))
            g = np.float32(u - np.float32(j))
            i1, j1 = i + 1, j + 1
            if i < 0 or i1 >= height or j < 0 or j1 >= width:
                i, i1 = _fold(i, height), _fold(i1, height)
                j, j1 = _fold(j, width), _fold(j1, width)
            a = np.uint64((i * width + j) * channels)
            b = np.uint64((i * width + j1) * channels)
            c = np.uint64((i1 * width + j) * channels)
            d = np.uint64((i1 * width + j1) * channels)
            o = np.uint64((y * width + x) * channels)
            out[o] = _between(image[a], image[b], image[c], image[d], f, g)
            if channels == 3:
                one, two = np.uint64(1), np.uint64(2)
                out[o + one] = _between(image[a + one], image[b + one], image[c + one], image[d + one], f, g)
                out[o + two] = _between(image[a + two], image[b + two], image[c + two], image[d + two], f, g)


def displace(image: Image, dy: Field, dx: Field) -> Image:
    """Read each pixel from (y + dy, x + dx), bilinear, mirrored at the borders, truncated."""
    return by_value(_displace, image, *image.shape[1:], dy, dx)


_GREY_IN_FOUR = (cv2.COLOR_GRAY2RGBA, cv2.COLOR_RGBA2GRAY)


@kernel
def _scatter(words: Any, width: Any, start: Any, shifts: Any) -> None:
    for n in range(shifts.shape[0]):
        for i in range(shifts.shape[1]):
            row = shifts[n, i]
            target = start - i * width
            for j in range(row.shape[0]):
                words[np.uint64(target)] = words[np.uint64(target + np.int64(row[j, 1]) * width + row[j, 0])]
                target -= 1


def scatter(image: Image, shifts: npt.NDArray[np.int8], reach: int) -> Image:
    """Overwrite pixels in turn, from the bottom right, by the pixel (dx, dy) = shifts[n, i, j] away.

    Row i of `shifts` belongs to image row H − reach − i, column j likewise; n counts passes.
    """
    height, width, channels = image.shape
    # A pixel of four bytes moves at once, as a 32-bit word.
    pad, cut = (cv2.COLOR_RGB2RGBA, cv2.COLOR_RGBA2RGB) if channels == 3 else _GREY_IN_FOUR
    four = cv2.cvtColor(image, pad)
    _scatter(four.reshape(-1).view(np.uint32), width, (height - reach) * width + width - reach, shifts)
    return np.asarray(cv2.cvtColor(four, cut), np.uint8).reshape(image.shape)


_LANE = np.uint64(21)  # bits per channel of a packed pixel: 8 of value, 11 of weight, 2 spare


@kernel
def _packed(pixels: Any) -> Any:
    """Each pixel's channels in one word, so that one multiplication weights them all."""
    words = np.empty(pixels.shape[0], np.uint64)
    for i in range(words.shape[0]):
        word = np.uint64(pixels[i, 0])
        if pixels.shape[1] == 3:
            word |= np.uint64(pixels[i, 1]) << _LANE
            word |= np.uint64(pixels[i, 2]) << (_LANE + _LANE)
        words[i] = word
    return words


@kernel
def _sample(words: Any, height: Any, width: Any, v: Any, u: Any) -> Any:
    """The packed pixel at (v, u), bilinear and rounded; 0 outside the frame."""
    half = np.float32(0.5)
    if not (v >= -half and v < np.float32(height) - half and u >= -half and u < np.float32(width) - half):
        return np.uint64(0)
    # Between the outermost pixel centres and the frame the edge is repeated.
    v = min(max(v, np.float32(0)), np.float32(height - 1))
    u = min(max(u, np.float32(0)), np.float32(width - 1))
    i, j = np.int64(v), np.int64(u)
    f, g = v - np.float32(i), u - np.float32(j)
    # Rounded down, so that no weight can be negative.
    both = np.int64(f * g * np.float32(WHOLE))
    down, across = np.int64(f * np.float32(WHOLE)), np.int64(g * np.float32(WHOLE))
    a = i * width + j
    b = a + (1 if j + 1 < width else 0)
    below = width if i + 1 < height else 0
    total = np.uint64((WHOLE // 2) * ((1 << 42) + (1 << 21) + 1))  # one half, in every lane
    total += words[np.uint64(a)] * np.uint64(WHOLE - down - across + both)
    total += words[np.uint64(b)] * np.uint64(across - both)
    total += words[np.uint64(a + below)] * np.uint64(down - both)
    total += words[np.uint64(b + below)] * np.uint64(both)
    return total >> np.uint64(11)


@kernel
def _move(pixels: Any, dy: Any, dx: Any, out: Any) -> None:
    height, width = dy.shape
    channels, words = out.shape[1], _packed(pixels)
    level = np.uint64(255)
    for y in range(height):
        rows, columns = dy[y], dx[y]
        for x in range(width):
            word = _sample(words, height, width, np.float32(y) + rows[x], np.float32(x) + columns[x])
            o = np.uint64(y * width + x)
            out[o, 0] = word & level
            if channels == 3:
                out[o, 1] = (word >> _LANE) & level
                out[o, 2] = (word >> (_LANE + _LANE)) & level


def move(image: Image, dy: Field, dx: Field) -> Image:
    """Read each pixel from (y + dy, x + dx), bilinear, rounded; black where that lies outside the frame."""
    return by_pixel(_move, image, dy, dx)


@kernel
def _streak(pixels: Any, dy: Any, dx: Any, out: Any) -> None:
    height, width = dy.shape
    channels, words = out.shape[1], _packed(pixels)
    lane = (np.uint64(1) << _LANE) - np.uint64(1)
    for y in range(height):
        downs, acrosses = dy[y], dx[y]
        for x in range(width):
            down, across = downs[x], acrosses[x]
            count: Any = min(np.int64(max(abs(down), abs(across))) + 1, MOST_SAMPLES)
            share = np.float32(1 << STREAK_BITS) / np.float32(count)
            step_y, step_x = np.int64(np.floor(down * share)), np.int64(np.floor(across * share))
            i: Any = (np.int64(y) << STREAK_BITS) + (1 << (STREAK_BITS - 1))
            j: Any = (np.int64(x) << STREAK_BITS) + (1 << (STREAK_BITS - 1))
            total = np.uint64(0)
            for _ in range(count):
                row: Any = min(max(i >> STREAK_BITS, 0), height - 1)
                column: Any = min(max(j >> STREAK_BITS, 0), width - 1)
                total += words[np.uint64(row * width + column)]
                i += step_y
                j += step_x
            o = np.uint64(y * width + x)
            n, r = np.uint64(count), np.uint64(count // 2)
            out[o, 0] = ((total & lane) + r) // n
            if channels == 3:
                out[o, 1] = (((total >> _LANE) & lane) + r) // n
                out[o, 2] = (((total >> (_LANE + _LANE)) & lane) + r) // n


def streak(image: Image, dy: Field, dx: Field) -> Image:
    """The mean along the line from each pixel to (y + dy, x + dx), rounded; the edges are repeated.

    There is one sample per pixel of the line's longer side, the nearest pixel's, up to 40.
    """
    return by_pixel(_streak, image, np.ascontiguousarray(dy), np.ascontiguousarray(dx))


@kernel
def _radial_field(gains: Any, dy: Any, dx: Any) -> None:
    height, width = dy.shape
    half_y, half_x = np.float32((height - 1) / 2), np.float32((width - 1) / 2)
    unit = np.float32(4 / (height * height + width * width))
    for i in range(height):
        rows, columns = dy[i], dx[i]
        y = np.float32(i) - half_y
        for j in range(width):
            x = np.float32(j) - half_x
            r2 = (y * y + x * x) * unit
            r = np.sqrt(r2)
            gain = r * (gains[2] + gains[1] * r + gains[0] * r2)
            rows[j] = gain * y
            columns[j] = gain * x


def radial_field(
    size: tuple[int, int], delta: float, shares: tuple[float, float, float]
) -> tuple[Field, Field]:
    """(dy, dx) that reads from r + δ·(a·r⁴ + b·r³ + c·r²), where r is 1 in the frame's corners."""
    dy, dx = np.empty(size, np.float32), np.empty(size, np.float32)
    _radial_field(np.array([delta * share for share in shares], np.float32), dy, dx)
    return dy, dx


@kernel
def _sources(dy: Any, dx: Any, out: Any) -> None:
    height, width = dy.shape
    half = np.float32(0.5)
    for y in range(height):
        for x in range(width):
            i = np.int64(np.floor(np.float32(y) + dy[y, x] + half))
            j = np.int64(np.floor(np.float32(x) + dx[y, x] + half))
            inside = i >= 0 and i < height and j >= 0 and j < width
            out[y, x] = i * width + j if inside else height * width


def sources(dy: Field, dx: Field) -> npt.NDArray[np.int64]:
    """For each output pixel the flat index of the nearest input pixel; H·W where there is none."""
    out = np.empty(dy.shape, np.int64)
    _sources(dy, dx, out)
    return out


def enlarged_part(
    images: Sequence[Image],
    sizes: Sequence[tuple[int, int]],
    which: int,
    corner: tuple[int, int],
    part: tuple[int, int],
) -> Image:
    """The part of one of several RGB images that begins at `corner`; `part` is its size.

    The image is resized bicubically to its size among `sizes`. OpenCV's resize chooses its arithmetic by the
    processor, so that single grey levels differ between machines; this one gives the same pixels everywhere.
    """
    image, size = images[which], sizes[which]
    rows, down = cubic_taps(image.shape[0], size[0], corner[0], part[0])
    columns, across = cubic_taps(image.shape[1], size[1], corner[1], part[1])
    first = int(rows.min())
    used = image[first : int(rows.max()) + 1]
    lines = np.empty((len(used), 3 * part[1]), np.float32)
    _cubic_across(used.reshape(len(used), -1), 3 * columns, across, lines)
    out = np.empty((*part, 3), np.uint8)
    _cubic_down(lines, rows - first, down, out.reshape(part[0], -1))
    return out


@kernel
def _cubic_across(image: Any, taps: Any, weights: Any, out: Any) -> None:
    values = np.empty(image.shape[1], np.float32)
    for y in range(image.shape[0]):
        values[:] = image[y]
        line = out[y]
        for x in range(taps.shape[0]):
            a, b, c, d = taps[x, 0], taps[x, 1], taps[x, 2], taps[x, 3]
            p, q, r, s = weights[x, 0], weights[x, 1], weights[x, 2], weights[x, 3]
            for k in range(3):
                line[3 * x + k] = (
                    values[a + k] * p + values[b + k] * q + values[c + k] * r + values[d + k] * s
                )


@kernel
def _cubic_down(lines: Any, taps: Any, weights: Any, out: Any) -> None:
    for y in range(taps.shape[0]):
        a, b, c, d = lines[taps[y, 0]], lines[taps[y, 1]], lines[taps[y, 2]], lines[taps[y, 3]]
        p, q, r, s = weights[y, 0], weights[y, 1], weights[y, 2], weights[y, 3]
        line = out[y]
        for x in range(line.shape[0]):
            value = a[x] * p + b[x] * q + c[x] * r + d[x] * s
            line[x] = np.uint8(min(max(value, np.float32(0)), np.float32(255)) + np.float32(0.5))
