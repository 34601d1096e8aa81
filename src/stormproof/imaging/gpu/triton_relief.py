"""Kernels for the relief of drops, with the conventions of `triton_source`; one program is part of a row."""

from __future__ import annotations

import triton
import triton.language as tl

from stormproof.imaging.gpu.triton_moves import part

_TAN = tl.constexpr(13573)  # tan 22.5° in 15 fractional bits


@triton.jit
def here(height, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The first pixel of this program's image, its row, and its columns."""
    across = tl.cdiv(width, BLOCK)
    start = tl.program_id(1).to(tl.int64) * height * width
    x = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    return start, tl.program_id(0) // across, x


@triton.jit
def sobel(layer, y, x, height, width):  # type: ignore[no-untyped-def]
    """Differences across and down around a pixel, edges repeated."""
    top, bottom = tl.maximum(y - 1, 0) * width, tl.minimum(y + 1, height - 1) * width
    left, right = tl.maximum(x - 1, 0), tl.minimum(x + 1, width - 1)
    a, b, c = tl.load(layer + top + left), tl.load(layer + top + x), tl.load(layer + top + right)
    d, e = tl.load(layer + y * width + left), tl.load(layer + y * width + right)
    f, g, h = tl.load(layer + bottom + left), tl.load(layer + bottom + x), tl.load(layer + bottom + right)
    a, b, c, d = a.to(tl.int32), b.to(tl.int32), c.to(tl.int32), d.to(tl.int32)
    e, f, g, h = e.to(tl.int32), f.to(tl.int32), g.to(tl.int32), h.to(tl.int32)
    return (c - a) + 2 * (e - d) + (h - f), (f - a) + 2 * (g - b) + (h - c)


@triton.jit
def steepness(layer, y, x, height, width):  # type: ignore[no-untyped-def]
    """|dx| + |dy|, which is 0 outside the frame."""
    row, column = tl.minimum(tl.maximum(y, 0), height - 1), tl.minimum(tl.maximum(x, 0), width - 1)
    dx, dy = sobel(layer, row, column, height, width)
    return tl.where((row == y) & (column == x), tl.abs(dx) + tl.abs(dy), 0)


@triton.jit(do_not_specialize=["height", "low", "high"])
def peaks_kernel(layer, out, height, width, low, high, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where the gradient peaks: 2 above `high`, 1 above `low`, else 0."""
    start, y, at = here(height, width, BLOCK)
    x = tl.minimum(at, width - 1)
    dx, dy = sobel(layer + start, y + x * 0, x, height, width)
    across, down = tl.abs(dx), tl.abs(dy) << 15
    flat, steep = down < across * _TAN, down > across * _TAN + (across << 16)
    sloped = (flat == 0) & (steep == 0)
    right = tl.where(steep, 0, tl.where(flat, 1, tl.where((dx ^ dy) < 0, -1, 1)))
    below = tl.where(flat, 0, 1)
    before = steepness(layer + start, y - below, x - right, height, width)
    after = steepness(layer + start, y + below, x + right, height, width) + sloped.to(tl.int32)
    size = tl.abs(dx) + tl.abs(dy)
    peak = (size > low) & (size > before) & (size >= after)
    value = peak.to(tl.int32) + (peak & (size > high)).to(tl.int32)
    tl.store(out + start + y * width + at, value.to(tl.uint8), mask=at < width)


@triton.jit(do_not_specialize=["height"])
def link_kernel(peaks, grown, height, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Weak candidates beside strong ones become strong, in place, as far as a tile reaches.

    `grown` becomes 1 if any did. Programs may see what others write or not: candidates only ever gain.
    """
    across = tl.cdiv(width, BLOCK)
    y = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    x = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    start = peaks + tl.program_id(1).to(tl.int64) * height * width
    own = start + y[:, None] * width + x[None, :]
    inside = (y < height)[:, None] & (x < width)[None, :]
    state = tl.load(own, mask=inside, other=0)
    more = tl.max(tl.max((state == 1).to(tl.int32), axis=1), axis=0)
    while more > 0:
        most = state
        for k in tl.static_range(9):
            v, u = y + (k // 3 - 1), x + (k % 3 - 1)
            held = ((v >= 0) & (v < height))[:, None] & ((u >= 0) & (u < width))[None, :]
            most = tl.maximum(most, tl.load(start + v[:, None] * width + u[None, :], mask=held, other=0))
        turned = inside & (state == 1) & (most == 2)
        tl.store(own, most, mask=turned)
        state = tl.where(turned, most, state)
        more = tl.max(tl.max(turned.to(tl.int32), axis=1), axis=0)
        if more > 0:
            tl.store(grown, 1)
        tl.debug_barrier()  # the tile's other threads read what was stored


@triton.jit(do_not_specialize=["height"])
def beside_kernel(peaks, out, height, width, FAR: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """How far the nearest edge, a 1, lies in the same row, at most FAR."""
    start, y, x = here(height, width, BLOCK)
    line = peaks + start + y * width
    best = tl.full((BLOCK,), FAR, tl.int32)
    for k in range(FAR - 1, -1, -1):
        left = tl.load(line + x - k, mask=(x >= k) & (x - k < width), other=0)
        right = tl.load(line + x + k, mask=x + k < width, other=0)
        best = tl.where((left > 0) | (right > 0), k, best)
    tl.store(out + start + y * width + x, best.to(tl.uint8), mask=x < width)


@triton.jit(do_not_specialize=["height"])
def distance_kernel(beside, out, chamfer, height, width, FAR: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The distance to the nearest edge by `chamfer`, FAR × (FAR + 1), from each row's nearest."""
    start, y, x = here(height, width, BLOCK)
    best = tl.full((BLOCK,), FAR << 16, tl.int32)
    for k in range(FAR):
        above, below = y - k, y + k
        a = tl.load(beside + start + above * width + x, mask=(x < width) & (above >= 0), other=FAR)
        b = tl.load(beside + start + below * width + x, mask=(x < width) & (below < height), other=FAR)
        nearest = tl.minimum(a.to(tl.int32), b.to(tl.int32))  # at one height, the nearer one counts
        best = tl.minimum(best, tl.load(chamfer + k * (FAR + 1) + nearest))
    tl.store(out + start + y * width + x, best, mask=x < width)


@triton.jit
def mirrored(place, length):  # type: ignore[no-untyped-def]
    """A position just outside 0..length−1, mirrored about the edge."""
    place = tl.abs(place)
    return tl.maximum(tl.minimum(place, 2 * (length - 1) - place), 0)


@triton.jit
def sum_of_nine(field, y, x, height, width):  # type: ignore[no-untyped-def]
    total = x * 0
    for k in tl.static_range(9):
        row, column = mirrored(y + (k // 3 - 1), height), mirrored(x + (k % 3 - 1), width)
        total += tl.load(field + row * width + column).to(tl.int32)
    return total


@triton.jit(do_not_specialize=["height"])
def near_kernel(distance, out, height, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The mean distance over 3×3 pixels, from 16 fractional bits, truncated."""
    start, y, at = here(height, width, BLOCK)
    total = sum_of_nine(distance + start, y, tl.minimum(at, width - 1), height, width)
    tl.store(out + start + y * width + at, (total // (9 << 16)).to(tl.uint8), mask=at < width)


@triton.jit
def count_kernel(near, out, count, levels, BINS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Adds up how often each level occurs; BINS is a power of two above the levels that occur."""
    n, at = part(BLOCK)
    inside = at < count
    level = tl.load(near + n * count + at, mask=inside, other=0).to(tl.int32)
    found = tl.histogram(tl.where(inside, level, BINS - 1), BINS)
    bins = tl.arange(0, BINS)
    tl.atomic_add(out + n * levels + bins, found, mask=bins < levels)


@triton.jit(do_not_specialize=["height", "step"])
def emboss_kernel(near, out, levels, height, width, step, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Levels replaced by a table, `step` values for each image, and embossed; `plans.EMBOSS`."""
    start, y, at = here(height, width, BLOCK)
    table = levels + tl.program_id(1).to(tl.int64) * step
    x = tl.minimum(at, width - 1)
    light = x * 0
    for k in tl.static_range(9):
        row, column = mirrored(y + (k // 3 - 1), height), mirrored(x + (k % 3 - 1), width)
        level = tl.load(near + start + row * width + column).to(tl.int32)
        # −2, −1, 0; −1, 1, 1; 0, 1, 2
        weight = k // 3 + k % 3 - 2 + (k == 4)
        light += tl.load(table + level) * weight
    light = tl.minimum(tl.maximum(light, 0), 255)
    tl.store(out + start + y * width + at, light.to(tl.uint8), mask=at < width)


@triton.jit(do_not_specialize=["height"])
def mean_kernel(light, out, height, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The mean over 3×3 pixels, rounded, as a float."""
    start, y, at = here(height, width, BLOCK)
    total = sum_of_nine(light + start, y, tl.minimum(at, width - 1), height, width)
    tl.store(out + start + y * width + at, ((total + 4) // 9).to(tl.float32), mask=at < width)
