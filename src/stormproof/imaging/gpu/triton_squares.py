"""Kernels for blocks of pixels and JPEG's planes; integers throughout."""

from __future__ import annotations

import triton
import triton.language as tl

from stormproof.imaging.gpu.triton_moves import part, row_part, size_of, value_at, word


@triton.jit(do_not_specialize=["most", "step", "small", "large"])
def means_kernel(  # type: ignore[no-untyped-def]
    source, out, first, last, factors, most, step, small, large, count, BLOCK: tl.constexpr
):
    """Block means along one axis, `large` values to `small`; neighbours on it are `step` values apart."""
    n, at = part(BLOCK)
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


@triton.jit(do_not_specialize=["length"])
def blocks_kernel(edges, factors, index, sides, length, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Blocks of sides, as `plans.box_edges`, `block_factors` and `nearest_blocks` do; a side a program.

    `sides` is how many blocks each has, and pixels; `edges` first and past-last pixel of each block, `index`
    the block of each pixel; all tables have `length` places a side.
    """
    side = tl.program_id(0).to(tl.int64)
    small, large = tl.load(sides + 2 * side), tl.load(sides + 2 * side + 1)
    scale = large.to(tl.float64) / small.to(tl.float64)
    inverse = 1.0 / scale
    for start in range(0, small, BLOCK):
        at = start + tl.arange(0, BLOCK)
        centre = (at.to(tl.float64) + 0.5) * scale
        first = tl.maximum((centre - scale * 0.5 + 0.5).to(tl.int32), 0)
        last = tl.minimum((centre + scale * 0.5 + 0.5).to(tl.int32), large)
        early = (first.to(tl.float64) - centre + 0.5) * inverse > -0.5
        first = tl.where((last - first > 1) & (early == 0), first + 1, first)
        late = ((last - 1).to(tl.float64) - centre + 0.5) * inverse > 0.5
        last = tl.where((last - first > 1) & late, last - 1, last)
        whole = 4194304.0 / (last - first).to(tl.float64)
        own = side * length + at
        tl.store(edges + 2 * own, first, mask=at < small)
        tl.store(edges + 2 * own + 1, last, mask=at < small)
        tl.store(factors + own, (whole + 0.5).to(tl.int32), mask=at < small)
    step = small.to(tl.float64) / large.to(tl.float64)
    position = step * 0.5
    for i in range(large):
        tl.store(index + side * length + i, tl.minimum(position.to(tl.int32), small - 1))
        position += step  # one by one: sums are rounded as in Pillow


@triton.jit(do_not_specialize=["length", "most"])
def means_ragged_kernel(  # type: ignore[no-untyped-def]
    source, out, edges, factors, sides, sizes, length, most, tall, wide,
    AXIS: tl.constexpr, PLANES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Block means of ragged planes along their width (AXIS 1) or height (0); tables of `blocks_kernel`."""
    n, y, x = row_part(wide, BLOCK)
    side = n // PLANES * 2 + AXIS
    small, inside = tl.load(sides + 2 * side), x < wide
    if AXIS == 1:
        left = tl.program_id(0) % tl.cdiv(wide, BLOCK) * BLOCK
        if (y >= tl.load(sizes + n // PLANES * 2)) | (left >= small):
            return
        block, place, step = tl.minimum(x, small - 1), source + (n * tall + y) * wide, 1
    else:
        if y >= small:
            return
        block, place, step = x * 0 + y, source + n * tall * wide + x, wide
    own = side * length + block
    start, end = tl.load(edges + 2 * own), tl.load(edges + 2 * own + 1)
    total = tl.zeros((BLOCK,), tl.int32)
    for k in range(most):
        total += tl.load(place + (start + k) * step, mask=inside & (start + k < end), other=0).to(tl.int32)
    mean = (total * tl.load(factors + own) + (1 << 21)) >> 22
    tl.store(out + (n * tall + y) * wide + x, mean.to(tl.uint8), mask=inside)


@triton.jit
def ycc_of(image, y, x, width, pixels, inside, PLANAR: tl.constexpr):  # type: ignore[no-untyped-def]
    """Luma, and blue and red difference, of a pixel."""
    at = y * width + x
    r = tl.load(image + value_at(at, 0, pixels, 3, PLANAR), mask=inside, other=0).to(tl.int32)
    g = tl.load(image + value_at(at, 1, pixels, 3, PLANAR), mask=inside, other=0).to(tl.int32)
    b = tl.load(image + value_at(at, 2, pixels, 3, PLANAR), mask=inside, other=0).to(tl.int32)
    luma = (r * 19595 + g * 38470 + b * 7471 + 32768) >> 16
    middle = (128 << 16) + 32767
    blue, red = r * -11059 - g * 21709 + b * 32768, r * 32768 - g * 27439 - b * 5329
    return luma, (blue + middle) >> 16, (red + middle) >> 16


@triton.jit(do_not_specialize=["high", "broad", "luma_tall", "luma_wide", "tall", "wide", "images"])
def ycc_kernel(  # type: ignore[no-untyped-def]
    image, luma, chroma, sizes, high, broad, luma_tall, luma_wide, tall, wide, images,
    PLANAR: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Luma, by words of two, and both chroma planes, halved both ways; edges repeated to whole blocks.

    One program element per 2×2 pixels. Their mean is rounded down and up in turn along a row. The image is
    `high` rows of `broad` pixels, or lies in them if it is RAGGED.
    """
    n = tl.program_id(1).to(tl.int64)
    height, width = size_of(sizes, n, high, broad, RAGGED)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tall * wide
    row, x = at // wide, at % wide
    last = (height + 1) // 2 - 1
    top = 2 * tl.minimum(row, last)
    bottom = tl.minimum(top + 1, height - 1)
    left, right = tl.minimum(2 * x, width - 1), tl.minimum(2 * x + 1, width - 1)
    start, pixels = image + n * high * broad * 3, high * broad
    y0, b0, r0 = ycc_of(start, top, left, broad, pixels, inside, PLANAR)
    y1, b1, r1 = ycc_of(start, top, right, broad, pixels, inside, PLANAR)
    y2, b2, r2 = ycc_of(start, bottom, left, broad, pixels, inside, PLANAR)
    y3, b3, r3 = ycc_of(start, bottom, right, broad, pixels, inside, PLANAR)
    bias, count = 1 + x % 2, tall * wide
    blue, red = (b0 + b1 + b2 + b3 + bias) >> 2, (r0 + r1 + r2 + r3 + bias) >> 2
    tl.store(chroma + n * count + at, blue.to(tl.uint8), mask=inside)
    tl.store(chroma + (n + images) * count + at, red.to(tl.uint8), mask=inside)
    lower = (y2 | (y3 << 8)).to(tl.int16)
    upper = tl.where(row > last, lower, (y0 | (y1 << 8)).to(tl.int16))  # below the image, its last row
    place = luma + (n * luma_tall + 2 * row) * (luma_wide // 2) + x
    beside = inside & (2 * x < luma_wide)
    tl.store(place, upper, mask=beside & (2 * row < luma_tall))
    tl.store(place + luma_wide // 2, lower, mask=beside & (2 * row + 1 < luma_tall))


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


@triton.jit(do_not_specialize=["high", "broad", "luma_count", "luma_wide", "count", "wide", "images"])
def colours_kernel(  # type: ignore[no-untyped-def]
    luma, chroma, out, sizes, high, broad, luma_count, luma_wide, count, wide, images,
    NARROW: tl.constexpr, PLANAR: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """RGB of luma and halved chroma; one program element per pixel."""
    n, at = part(BLOCK)
    inside = at < high * broad
    y, x = at // broad, at % broad
    height, width = size_of(sizes, n, high, broad, RAGGED)
    near, column = y // 2, x // 2
    far = tl.minimum(tl.maximum(near + 2 * (y % 2) - 1, 0), (height + 1) // 2 - 1)
    side = tl.minimum(tl.maximum(column + 2 * (x % 2) - 1, 0), (width + 1) // 2 - 1)
    bias = 8 - x % 2
    cb = doubled(chroma + n * count, near, far, column, side, bias, wide, NARROW, inside)
    cr = doubled(chroma + (n + images) * count, near, far, column, side, bias, wide, NARROW, inside)
    light = tl.load(luma + n * luma_count + y * luma_wide + x, mask=inside, other=0).to(tl.int32)
    target, pixels = out + n * high * broad * 3, high * broad
    red, blue = light + ((cr * 91881 + 32768) >> 16), light + ((cb * 116130 + 32768) >> 16)
    green = light + ((cb * -22554 - cr * 46802 + 32768) >> 16)
    stored(target + value_at(at, 0, pixels, 3, PLANAR), red, inside)
    stored(target + value_at(at, 1, pixels, 3, PLANAR), green, inside)
    stored(target + value_at(at, 2, pixels, 3, PLANAR), blue, inside)


@triton.jit
def rounded(value, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    return (value + (1 << (bits - 1))) >> bits


@triton.jit
def forward(x, M: tl.constexpr, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    """Eight samples to eight frequencies, rounded; rows of M are symmetric and antisymmetric in turn."""
    p, q, r, s = x[0] + x[7], x[1] + x[6], x[2] + x[5], x[3] + x[4]
    a, b, c, d = x[0] - x[7], x[1] - x[6], x[2] - x[5], x[3] - x[4]
    return (
        rounded(((p + s) + (q + r)) * M[0], bits),
        rounded(a * M[8] + b * M[9] + c * M[10] + d * M[11], bits),
        rounded((p - s) * M[16] + (q - r) * M[17], bits),
        rounded(a * M[24] + b * M[25] + c * M[26] + d * M[27], bits),
        rounded(((p + s) - (q + r)) * M[0], bits),
        rounded(a * M[40] + b * M[41] + c * M[42] + d * M[43], bits),
        rounded((p - s) * M[48] + (q - r) * M[49], bits),
        rounded(a * M[56] + b * M[57] + c * M[58] + d * M[59], bits),
    )


@triton.jit
def backward(f, M: tl.constexpr, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    """Eight frequencies to eight samples, by the transpose of M."""
    sum_, difference = (f[0] + f[4]) * M[0], (f[0] - f[4]) * M[0]
    outer, inner = f[2] * M[16] + f[6] * M[48], f[2] * M[17] + f[6] * M[49]
    p, q, r, s = sum_ + outer, difference + inner, difference - inner, sum_ - outer
    a = f[1] * M[8] + f[3] * M[24] + f[5] * M[40] + f[7] * M[56]
    b = f[1] * M[9] + f[3] * M[25] + f[5] * M[41] + f[7] * M[57]
    c = f[1] * M[10] + f[3] * M[26] + f[5] * M[42] + f[7] * M[58]
    d = f[1] * M[11] + f[3] * M[27] + f[5] * M[43] + f[7] * M[59]
    return (
        rounded(p + a, bits), rounded(q + b, bits), rounded(r + c, bits), rounded(s + d, bits),
        rounded(s - d, bits), rounded(r - c, bits), rounded(q - b, bits), rounded(p - a, bits),
    )  # fmt: skip


@triton.jit
def column(rows, k: tl.constexpr):  # type: ignore[no-untyped-def]
    return rows[0][k], rows[1][k], rows[2][k], rows[3][k], rows[4][k], rows[5][k], rows[6][k], rows[7][k]


@triton.jit
def requantised(value, step, inverse):  # type: ignore[no-untyped-def]
    """The multiple of `step` nearest to value / 8, exact up to 2²⁰.

    `inverse` is 2³² / (8 · step), rounded up.
    """
    size = (tl.abs(value) + step * 4).to(tl.uint32)
    level = tl.umulhi(size, inverse.to(tl.uint32)).to(tl.int32) * step
    return tl.where(value < 0, -level, level)


@triton.jit
def four_samples(word):  # type: ignore[no-untyped-def]
    return (
        (word & 255) - 128,
        ((word >> 8) & 255) - 128,
        ((word >> 16) & 255) - 128,
        ((word >> 24) & 255) - 128,
    )


@triton.jit
def sample(value):  # type: ignore[no-untyped-def]
    return tl.minimum(tl.maximum(value + 128, 0), 255)


@triton.jit
def eight_of(values):  # type: ignore[no-untyped-def]
    """The eight columns of values … × 2 × 2 × 2, in order."""
    even, odd = tl.split(values)
    a, b = tl.split(even)
    c, d = tl.split(odd)
    first, fifth = tl.split(a)
    third, seventh = tl.split(b)
    second, sixth = tl.split(c)
    fourth, eighth = tl.split(d)
    return first, second, third, fourth, fifth, sixth, seventh, eighth


@triton.jit
def as_eight(v):  # type: ignore[no-untyped-def]
    """The inverse of `eight_of`."""
    even = tl.join(tl.join(v[0], v[4]), tl.join(v[2], v[6]))
    odd = tl.join(tl.join(v[1], v[5]), tl.join(v[3], v[7]))
    return tl.join(even, odd)


@triton.jit(do_not_specialize=["blocks", "across"])
def requantise_kernel(  # type: ignore[no-untyped-def]
    planes, out, steps, inverses, blocks, across, M: tl.constexpr, BLOCK: tl.constexpr
):
    """8×8 blocks through the integer DCT, quantisation and back, one in each thread.

    `planes` are words of four samples, `across` blocks side by side, `blocks` in all.
    """
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    corner = (block // across).to(tl.int64) * 16 * across + block % across * 2
    k = tl.arange(0, 16)
    # One load and one store: for each, Triton's compiler looks through all that is computed from it.
    place = corner[:, None] + (k // 2 * 2 * across + k % 2)[None, :]
    inside = (block < blocks)[:, None] & (k < 16)[None, :]
    left, right = tl.split(tl.reshape(tl.load(planes + place, mask=inside, other=0), (BLOCK, 2, 2, 2, 2)))
    lefts, rights = eight_of(left), eight_of(right)
    rows = ()
    for y in tl.static_range(8):
        rows += (forward(four_samples(lefts[y]) + four_samples(rights[y]), M, 11),)  # type: ignore[assignment]
    columns = ()
    for x in tl.static_range(8):
        found = forward(column(rows, x), M, 15)
        levels = ()
        for y in tl.static_range(8):
            step, inverse = tl.load(steps + 8 * y + x), tl.load(inverses + 8 * y + x)
            levels += (requantised(found[y], step, inverse),)  # type: ignore[assignment]
        columns += (backward(levels, M, 11),)  # type: ignore[assignment]
    left_words, right_words = (), ()
    for y in tl.static_range(8):
        v = backward(column(columns, y), M, 18)
        left_words += (word(sample(v[0]), sample(v[1]), sample(v[2]), sample(v[3])),)  # type: ignore[assignment]
        right_words += (word(sample(v[4]), sample(v[5]), sample(v[6]), sample(v[7])),)  # type: ignore[assignment]
    made = tl.join(as_eight(left_words), as_eight(right_words))
    tl.store(out + place, tl.reshape(made, (BLOCK, 16)), mask=inside)
