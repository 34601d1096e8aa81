"""Kernels for blocks of pixels and JPEG's planes; integers throughout."""

# ruff: noqa: RUF005  Triton joins tuples by + only
# mypy: disable-error-code="assignment, misc"

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


@triton.jit
def frequencies(x, bits: tl.constexpr, dct: tl.constexpr):  # type: ignore[no-untyped-def]
    """Eight samples through the DCT, rounded; `dct` is its matrix, whose rows are even and odd in turn."""
    even, odd = (), ()
    for i in tl.static_range(4):
        even, odd = even + (x[i] + x[7 - i],), odd + (x[i] - x[7 - i],)
    out = ()
    for k in tl.static_range(4):
        at: tl.constexpr = 16 * k
        e = even[0] * dct[at] + even[1] * dct[at + 1] + even[2] * dct[at + 2] + even[3] * dct[at + 3]
        o = odd[0] * dct[at + 8] + odd[1] * dct[at + 9] + odd[2] * dct[at + 10] + odd[3] * dct[at + 11]
        out = out + (rounded(e, bits), rounded(o, bits))
    return out


@triton.jit
def samples(x, bits: tl.constexpr, dct: tl.constexpr):  # type: ignore[no-untyped-def]
    """The inverse: eight frequencies to samples."""
    left, right = (), ()
    for i in tl.static_range(4):
        e = x[0] * dct[i] + x[2] * dct[i + 16] + x[4] * dct[i + 32] + x[6] * dct[i + 48]
        o = x[1] * dct[i + 8] + x[3] * dct[i + 24] + x[5] * dct[i + 40] + x[7] * dct[i + 56]
        left, right = left + (rounded(e + o, bits),), (rounded(e - o, bits),) + right
    return left + right


@triton.jit
def four(a, b, c, d):  # type: ignore[no-untyped-def]
    """Four samples as the bytes of a word."""
    a, b = tl.minimum(tl.maximum(a + 128, 0), 255), tl.minimum(tl.maximum(b + 128, 0), 255)
    c, d = tl.minimum(tl.maximum(c + 128, 0), 255), tl.minimum(tl.maximum(d + 128, 0), 255)
    return a | (b << 8) | (c << 16) | (d << 24)


@triton.jit(do_not_specialize=["blocks", "across"])
def requantise_kernel(  # type: ignore[no-untyped-def]
    plane, out, steps, inverses, blocks, across, dct: tl.constexpr, BLOCK: tl.constexpr
):
    """8×8 blocks through the integer DCT, quantisation and back, each by one thread.

    There are `blocks` in all, `across` side by side. Eight samples are one element of `plane`. `inverses` is
    ⌈2³²/8·steps⌉: the high word of a product with it is the quotient, exact for numbers below 2²⁰.
    """
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = block < blocks
    at = (block // across).to(tl.int64) * 8 * across + block % across
    lines = ()
    for i in tl.static_range(8):
        eight = tl.load(plane + at + i * across, mask=inside, other=0)
        line = ()
        for j in tl.static_range(8):
            line = line + (((eight >> (8 * j)).to(tl.int32) & 255) - 128,)
        lines = lines + frequencies(line, 11, dct)
    columns = ()
    for j in tl.static_range(8):
        found = frequencies(lines[j::8], 15, dct)
        levels = ()
        for i in tl.static_range(8):
            step, inverse = tl.load(steps + 8 * i + j), tl.load(inverses + 8 * i + j)
            size = (tl.abs(found[i]) + step * 4).to(tl.uint32)
            level = tl.umulhi(size, inverse.to(tl.uint32)).to(tl.int32) * step
            levels = levels + (tl.where(found[i] < 0, -level, level),)
        columns = columns + samples(levels, 11, dct)
    for i in tl.static_range(8):
        made = samples(columns[i::8], 18, dct)
        low, high = four(made[0], made[1], made[2], made[3]), four(made[4], made[5], made[6], made[7])
        eight = (high.to(tl.int64) << 32) | (low.to(tl.int64) & 0xFFFFFFFF)
        tl.store(out + at + i * across, eight, mask=inside)
