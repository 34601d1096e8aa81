"""Kernels that read pixels from elsewhere, and that of the DCT, with the conventions of `triton_source`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["height", "width", "tall", "wide"])
def gather_kernel(  # type: ignore[no-untyped-def]
    source, out, rows, columns, height, width, tall, wide, channels: tl.constexpr, BLOCK: tl.constexpr
):
    """out[y, x] = source[rows[y], columns[x]]; one program element per value of `out`."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tall * wide * channels
    y = tl.load(rows + at // (wide * channels), mask=inside, other=0)
    x = tl.load(columns + (at // channels) % wide, mask=inside, other=0)
    place = (y * width + x) * channels + at % channels
    value = tl.load(source + n * height * width * channels + place, mask=inside, other=0)
    tl.store(out + n * tall * wide * channels + at, value, mask=inside)


@triton.jit
def between(start, a, b, c, d, f, g, held):  # type: ignore[no-untyped-def]
    """Bilinear between four values: rows are blended first, then the blend is read."""
    upper_left = tl.load(start + a, mask=held, other=0).to(tl.float32)
    lower_left = tl.load(start + b, mask=held, other=0).to(tl.float32)
    upper_right = tl.load(start + c, mask=held, other=0).to(tl.float32)
    lower_right = tl.load(start + d, mask=held, other=0).to(tl.float32)
    left = upper_left + (lower_left - upper_left) * f
    right = upper_right + (lower_right - upper_right) * f
    return left + (right - left) * g


@triton.jit
def store_mean(target, total, share, guard, inside):  # type: ignore[no-untyped-def]
    level = tl.minimum(total * share + guard, 255.0)
    tl.store(target, level.to(tl.int32).to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["layers", "height", "width", "share", "guard"])
def zoom_kernel(  # type: ignore[no-untyped-def]
    source, out, rows, down, last_row, columns, across, last_column, layers, height, width, share, guard,
    channels: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The image and its enlargements added up: tables of layers × rows and layers × columns, −1 outside.

    One program element per pixel: its 1 or 3 channels are read from the same places.
    """
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < height * width
    y, x = at // width, at % width
    start = source + n * height * width * channels
    own, target = start + at * channels, out + n * height * width * channels + at * channels
    first = tl.load(own, mask=inside, other=0).to(tl.float32)
    if channels == 3:
        second = tl.load(own + 1, mask=inside, other=0).to(tl.float32)
        third = tl.load(own + 2, mask=inside, other=0).to(tl.float32)
    for k in range(layers):
        i = tl.load(rows + k * height + y, mask=inside, other=-1)
        j = tl.load(columns + k * width + x, mask=inside, other=-1)
        held = inside & (i >= 0) & (j >= 0)
        f = tl.load(down + k * height + y, mask=held, other=0.0)
        g = tl.load(across + k * width + x, mask=held, other=0.0)
        below, right = tl.minimum(i + 1, tl.load(last_row + k)), tl.minimum(j + 1, tl.load(last_column + k))
        a, b = (i * width + j) * channels, (below * width + j) * channels
        c, d = (i * width + right) * channels, (below * width + right) * channels
        first = tl.where(held, first + between(start, a, b, c, d, f, g, held), first)
        if channels == 3:
            second = tl.where(held, second + between(start + 1, a, b, c, d, f, g, held), second)
            third = tl.where(held, third + between(start + 2, a, b, c, d, f, g, held), third)
    store_mean(target, first, share, guard, inside)
    if channels == 3:
        store_mean(target + 1, second, share, guard, inside)
        store_mean(target + 2, third, share, guard, inside)


@triton.jit
def folded(place, length):  # type: ignore[no-untyped-def]
    """An integer position mirrored into 0..length−1, the edge counted twice."""
    period = 2 * length
    place = place % period  # which keeps the sign
    place = tl.where(place < 0, place + period, place)
    return tl.minimum(place, period - 1 - place)


@triton.jit(do_not_specialize=["height", "width", "guard"])
def displace_kernel(  # type: ignore[no-untyped-def]
    source, out, dy, dx, height, width, guard, channels: tl.constexpr, BLOCK: tl.constexpr
):
    """Every pixel read from elsewhere, bilinear; one program element per pixel, its channels in turn."""
    n = tl.program_id(1).to(tl.int64)
    pixels = height * width
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    v = (at // width).to(tl.float32) + tl.load(dy + n * pixels + at, mask=inside, other=0.0)
    u = (at % width).to(tl.float32) + tl.load(dx + n * pixels + at, mask=inside, other=0.0)
    whole_v, whole_u = tl.floor(v), tl.floor(u)
    f, g = v - whole_v, u - whole_u
    i, j = whole_v.to(tl.int32), whole_u.to(tl.int32)
    below, right = folded(i + 1, height), folded(j + 1, width)
    i, j = folded(i, height), folded(j, width)
    start = source + n * pixels * channels
    for k in range(channels):
        a = tl.load(start + (i * width + j) * channels + k, mask=inside, other=0).to(tl.float32)
        b = tl.load(start + (i * width + right) * channels + k, mask=inside, other=0).to(tl.float32)
        c = tl.load(start + (below * width + j) * channels + k, mask=inside, other=0).to(tl.float32)
        d = tl.load(start + (below * width + right) * channels + k, mask=inside, other=0).to(tl.float32)
        upper, lower = a + (b - a) * g, c + (d - c) * g
        level = (upper + (lower - upper) * f) + guard
        target = out + n * pixels * channels + at * channels + k
        tl.store(target, level.to(tl.int32).to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["side", "across", "height", "width"])
def patches_kernel(  # type: ignore[no-untyped-def]
    source, out, kernels, side, across, height, width,
    channels: tl.constexpr, PATCH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Correlation with the kernel of a pixel's patch; `across` patches lie side by side."""
    n = tl.program_id(1).to(tl.int64)
    count = height * width * channels
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    y, x = at // (width * channels), (at // channels) % width
    own = kernels + ((y // PATCH) * across + x // PATCH) * side * side
    start = source + n * count + at % channels
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(side):
        row = tl.minimum(tl.maximum(y + i - side // 2, 0), height - 1) * width
        for j in range(side):
            column = tl.minimum(tl.maximum(x + j - side // 2, 0), width - 1)
            value = tl.load(start + (row + column) * channels, mask=inside, other=0).to(tl.float32)
            total = total + tl.load(own + i * side + j, mask=inside, other=0.0) * value
    level = tl.minimum(total + 0.5, 255.0)
    tl.store(out + n * count + at, level.to(tl.int32).to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["top", "left", "rows", "columns", "width", "pixels"])
def walk_kernel(  # type: ignore[no-untyped-def]
    shifts, origin, top, left, rows, columns, width, pixels, BLOCK: tl.constexpr
):
    """The pixel whose value each pixel has after all are overwritten in turn; `shifts` is (dx, dy)."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    place = at
    y, x = place // width - top, place % width - left
    moving = inside & (y >= 0) & (y < rows) & (x >= 0) & (x < columns)
    start = shifts + n * rows * columns * 2
    while tl.max(moving.to(tl.int32), axis=0) > 0:
        # Shifts lie in the order of overwriting: from the bottom right.
        entry = ((rows - 1 - y) * columns + (columns - 1 - x)) * 2
        dx = tl.load(start + entry, mask=moving, other=0).to(tl.int32)
        dy = tl.load(start + entry + 1, mask=moving, other=0).to(tl.int32)
        step = dy * width + dx
        place = tl.where(moving, place + step, place)
        y, x = place // width - top, place % width - left
        moving = moving & (step > 0) & (y >= 0) & (y < rows) & (x >= 0) & (x < columns)
    tl.store(origin + n * pixels + at, place, mask=inside)


@triton.jit
def rounded(value, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    return (value + (1 << (bits - 1))) >> bits


@triton.jit(do_not_specialize=["blocks", "across", "width"])
def requantise_kernel(  # type: ignore[no-untyped-def]
    plane, out, matrix, steps, blocks, across, width, BLOCK: tl.constexpr
):
    """8×8 blocks through the integer DCT, quantisation and back; `blocks` in all, `across` side by side."""
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = tl.arange(0, 8), tl.arange(0, 8)
    corner = (block // across).to(tl.int64) * 8 * width + (block % across) * 8
    at = corner[:, None, None] + row[None, :, None] * width + column[None, None, :]
    inside = (block < blocks)[:, None, None] & (row >= 0)[None, :, None] & (column >= 0)[None, None, :]
    samples = tl.load(plane + at, mask=inside, other=128).to(tl.int32) - 128
    there = tl.load(matrix + row[:, None] * 8 + column[None, :])  # frequency, sample
    back = tl.load(matrix + column[None, :] * 8 + row[:, None])  # sample, frequency
    lines = rounded(tl.sum(samples[:, :, None, :] * there[None, None, :, :], axis=3), 11)
    found = rounded(tl.sum(lines[:, None, :, :] * there[None, :, :, None], axis=2), 15)
    step = tl.load(steps + row[:, None] * 8 + column[None, :])[None, :, :]
    level = (tl.abs(found) + step * 4) // (step * 8)
    level = tl.where(found < 0, -level, level) * step
    lines = rounded(tl.sum(level[:, None, :, :] * back[None, :, :, None], axis=2), 11)
    value = rounded(tl.sum(lines[:, :, None, :] * back[None, None, :, :], axis=3), 18) + 128
    tl.store(out + at, tl.minimum(tl.maximum(value, 0), 255).to(tl.uint8), mask=inside)
