"""Kernels for blocks of pixels and JPEG's planes; integers throughout."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["most", "step", "small", "large"])
def means_kernel(  # type: ignore[no-untyped-def]
    source, out, first, last, factors, most, step, small, large, count, BLOCK: tl.constexpr
):
    """Block means along one axis, `large` values to `small`; neighbours on it are `step` values apart."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    block, outer = (at // step) % small, at // (step * small)
    start = tl.load(first + block, mask=inside, other=0)
    end = tl.load(last + block, mask=inside, other=0)
    place = source + n * (count // small) * large + outer * step * large + at % step
    total = tl.zeros((BLOCK,), tl.int32)
    for k in range(most):
        held = inside & (start + k < end)
        total += tl.load(place + (start + k) * step, mask=held, other=0).to(tl.int32)
    factor = tl.load(factors + block, mask=inside, other=0).to(tl.int32)  # total · factor is about 255 · 2²²
    mean = (total * factor + (1 << 21)) >> 22
    tl.store(out + n * count + at, mean.to(tl.uint8), mask=inside)


@triton.jit
def luma_of(image, y, x, width, inside):  # type: ignore[no-untyped-def]
    start = image + (y * width + x) * 3
    r = tl.load(start, mask=inside, other=0).to(tl.int32)
    g = tl.load(start + 1, mask=inside, other=0).to(tl.int32)
    b = tl.load(start + 2, mask=inside, other=0).to(tl.int32)
    return (r * 19595 + g * 38470 + b * 7471 + 32768) >> 16


@triton.jit
def chroma_of(image, y, x, width, inside):  # type: ignore[no-untyped-def]
    """Blue and red difference of a pixel."""
    start = image + (y * width + x) * 3
    r = tl.load(start, mask=inside, other=0).to(tl.int32)
    g = tl.load(start + 1, mask=inside, other=0).to(tl.int32)
    b = tl.load(start + 2, mask=inside, other=0).to(tl.int32)
    middle = (128 << 16) + 32767
    blue, red = r * -11059 - g * 21709 + b * 32768, r * 32768 - g * 27439 - b * 5329
    return (blue + middle) >> 16, (red + middle) >> 16


@triton.jit(do_not_specialize=["height", "width", "tall", "wide"])
def luma_kernel(image, out, height, width, tall, wide, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Luma of `tall` × `wide` samples, edges repeated."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tall * wide
    y, x = tl.minimum(at // wide, height - 1), tl.minimum(at % wide, width - 1)
    luma = luma_of(image + n * height * width * 3, y, x, width, inside)
    tl.store(out + n * tall * wide + at, luma.to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["height", "width", "tall", "wide", "images"])
def chroma_kernel(  # type: ignore[no-untyped-def]
    image, out, height, width, tall, wide, images, BLOCK: tl.constexpr
):
    """Both chroma planes, halved both ways: means of 2×2, rounded down and up in turn along a row."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tall * wide
    row, x = tl.minimum(at // wide, (height + 1) // 2 - 1), at % wide
    top, bottom = 2 * row, tl.minimum(2 * row + 1, height - 1)
    left, right = tl.minimum(2 * x, width - 1), tl.minimum(2 * x + 1, width - 1)
    start = image + n * height * width * 3
    b0, r0 = chroma_of(start, top, left, width, inside)
    b1, r1 = chroma_of(start, top, right, width, inside)
    b2, r2 = chroma_of(start, bottom, left, width, inside)
    b3, r3 = chroma_of(start, bottom, right, width, inside)
    bias = 1 + x % 2
    count = tall * wide
    tl.store(out + n * count + at, ((b0 + b1 + b2 + b3 + bias) >> 2).to(tl.uint8), mask=inside)
    tl.store(out + (n + images) * count + at, ((r0 + r1 + r2 + r3 + bias) >> 2).to(tl.uint8), mask=inside)


@triton.jit
def doubled(plane, near, far, column, side, bias, wide, NARROW: tl.constexpr, inside):  # type: ignore[no-untyped-def]
    """A chroma sample at full size minus 128: nine, three, three and one sixteenths of its neighbours."""
    a = tl.load(plane + near * wide + column, mask=inside, other=0).to(tl.int32)
    value = a
    if not NARROW:
        b = tl.load(plane + far * wide + column, mask=inside, other=0).to(tl.int32)
        c = tl.load(plane + near * wide + side, mask=inside, other=0).to(tl.int32)
        d = tl.load(plane + far * wide + side, mask=inside, other=0).to(tl.int32)
        value = ((a * 3 + b) * 3 + (c * 3 + d) + bias) >> 4
    return value - 128


@triton.jit
def stored(target, value, inside):  # type: ignore[no-untyped-def]
    tl.store(target, tl.minimum(tl.maximum(value, 0), 255).to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["height", "width", "luma_count", "luma_wide", "count", "wide", "images"])
def colours_kernel(  # type: ignore[no-untyped-def]
    luma, chroma, out, height, width, luma_count, luma_wide, count, wide, images,
    NARROW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """RGB of luma and halved chroma; one program element per pixel."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < height * width
    y, x = at // width, at % width
    near, column = y // 2, x // 2
    far = tl.minimum(tl.maximum(near + 2 * (y % 2) - 1, 0), (height + 1) // 2 - 1)
    side = tl.minimum(tl.maximum(column + 2 * (x % 2) - 1, 0), (width + 1) // 2 - 1)
    bias = 8 - x % 2
    cb = doubled(chroma + n * count, near, far, column, side, bias, wide, NARROW, inside)
    cr = doubled(chroma + (n + images) * count, near, far, column, side, bias, wide, NARROW, inside)
    light = tl.load(luma + n * luma_count + y * luma_wide + x, mask=inside, other=0).to(tl.int32)
    target = out + (n * height * width + at) * 3
    stored(target, light + ((cr * 91881 + 32768) >> 16), inside)
    stored(target + 1, light + ((cb * -22554 - cr * 46802 + 32768) >> 16), inside)
    stored(target + 2, light + ((cb * 116130 + 32768) >> 16), inside)


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
