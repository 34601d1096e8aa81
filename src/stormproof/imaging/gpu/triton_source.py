"""The kernels themselves. Each gives the same values as a few lines of torch, its twin.

Launches forbid fused multiply-add: products are rounded before they are added, as on the CPU. Images are
N × H × W × C without gaps, or N × C × H × W where a kernel is PLANAR; `count` is the number of values of one
image. If images are RAGGED, `sizes` is their heights and widths, and they lie in planes of `tall` rows of
`wide` values; else all images are that large. There are PLANES planes to an image.
"""

from __future__ import annotations

import triton
import triton.language as tl

from stormproof.imaging.gpu.triton_moves import as_float, bordered, part, row_part, size_of


@triton.jit
def random_bits(key, stream, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The 16-bit numbers of this program's BLOCK Philox blocks, in order: 8·BLOCK of them."""
    seed = tl.load(key) | (tl.load(key + 1) << 32)
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = block * 0
    a, b, c, d = tl.philox(seed, block, zero, zero + stream, zero)
    words = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    return tl.interleave(words & 0xFFFF, words >> 16).to(tl.int32)


@triton.jit(do_not_specialize=["stream"])
def bits_kernel(out, keys, stream, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    n = tl.program_id(1).to(tl.int64)
    bits = random_bits(keys + 2 * n, stream, BLOCK)
    at = tl.program_id(0) * BLOCK * 8 + tl.arange(0, BLOCK * 8)
    tl.store(out + n * count + at, bits, mask=at < count)


@triton.jit
def noisy(value, bits, table, first, second, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """KIND 0: v + table[bits]. 1: table[v · first + (bits >> second)]. 2: 0 below first, 255 below second."""
    if KIND == 0:
        value = value + tl.load(table + bits).to(tl.int32)
        value = tl.minimum(tl.maximum(value, 0), 255)
    elif KIND == 1:
        value = tl.load(table + value * first + (bits >> second)).to(tl.int32)
    else:
        value = tl.where(bits < first, 0, tl.where(bits < second, 255, value))
    return value


@triton.jit(do_not_specialize=["stream", "first", "second"])
def noise_kernel(  # type: ignore[no-untyped-def]
    image, out, keys, table, stream, count, first, second, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """The kinds of `noisy`, on pixels."""
    n = tl.program_id(1).to(tl.int64)
    bits = random_bits(keys + 2 * n, stream, BLOCK)
    at = tl.program_id(0) * BLOCK * 8 + tl.arange(0, BLOCK * 8)
    inside = at < count
    value = tl.load(image + n * count + at, mask=inside, other=0).to(tl.int32)
    value = noisy(value, bits, table, first, second, KIND)
    tl.store(out + n * count + at, value.to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["stream", "first", "second"])
def noise_planes_kernel(  # type: ignore[no-untyped-def]
    image, out, keys, table, stream, words, first, second, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """The same on three planes of `words` words of eight values.

    Bits belong to values in the order of pixels: eight pixels take three blocks of Philox.
    """
    n, at = part(BLOCK)
    inside = at < words
    seed = tl.load(keys + 2 * n) | (tl.load(keys + 2 * n + 1) << 32)
    zero = at * 0
    drawn = ()
    for k in tl.static_range(3):
        drawn += tl.philox(seed, 3 * at + k, zero, zero + stream, zero)
    for c in tl.static_range(3):
        here = (n * 3 + c) * words + at
        eight = tl.load(image + here, mask=inside, other=0)
        low, high = eight.to(tl.int32), (eight >> 32).to(tl.int32)
        made_low, made_high = zero, zero
        for p in tl.static_range(4):
            value = noisy((low >> (8 * p)) & 255, half_of(drawn, 3 * p + c), table, first, second, KIND)
            made_low = made_low | (value << (8 * p))
            value = noisy((high >> (8 * p)) & 255, half_of(drawn, 3 * p + 12 + c), table, first, second, KIND)
            made_high = made_high | (value << (8 * p))
        made = (made_high.to(tl.int64) << 32) | (made_low.to(tl.int64) & 0xFFFFFFFF)
        tl.store(out + here, made, mask=inside)


@triton.jit
def bits_at(seed, stream, at):  # type: ignore[no-untyped-def]
    """Single 16-bit numbers of a stream."""
    zero = at * 0
    a, b, c, d = tl.philox(seed, at >> 3, zero, zero + stream, zero)
    k = (at >> 1) & 3
    word = tl.where(k < 2, tl.where(k == 0, a, b), tl.where(k == 2, c, d))
    return ((word >> ((at & 1) * 16).to(tl.uint32)) & 0xFFFF).to(tl.int32)


@triton.jit(do_not_specialize=["stream", "first", "second"])
def noise_ragged_kernel(  # type: ignore[no-untyped-def]
    image, out, keys, table, sizes, stream, tall, wide, first, second,
    channels: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same on planes of ragged images, whose values are numbered in the order of their own pixels."""
    n, y, x = row_part(wide, BLOCK)
    height, width = size_of(sizes, n, tall, wide, True)
    if y >= height:
        return
    inside = x < wide
    seed = tl.load(keys + 2 * n) | (tl.load(keys + 2 * n + 1) << 32)
    for c in tl.static_range(channels):
        here = ((n * channels + c) * tall + y) * wide + x
        value = tl.load(image + here, mask=inside, other=0).to(tl.int32)
        value = noisy(
            value, bits_at(seed, stream, (y * width + x) * channels + c), table, first, second, KIND
        )
        tl.store(out + here, value.to(tl.uint8), mask=inside)


@triton.jit
def half_of(words, i: tl.constexpr):  # type: ignore[no-untyped-def]
    """The i-th 16-bit number of 32-bit words."""
    return ((words[i // 2] >> (16 * (i % 2))) & 0xFFFF).to(tl.int32)


@triton.jit
def leveled(total, WHOLE: tl.constexpr):  # type: ignore[no-untyped-def]
    """A sum as it is stored: truncated to a grey level, or unchanged."""
    return tl.minimum(total, 255.0).to(tl.int32).to(tl.uint8) if WHOLE else total


@triton.jit
def paired(values, centre: tl.constexpr, half, RADIUS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Σ half[|j|] · values[centre + j], pairs first, from the centre outwards."""
    total = tl.load(half) * values[centre]
    for j in tl.static_range(1, RADIUS + 1):
        total = total + tl.load(half + j) * (values[centre - j] + values[centre + j])
    return total


@triton.jit(do_not_specialize=["step", "guard", "gain"])
def down_kernel(  # type: ignore[no-untyped-def]
    source, out, half, sizes, step, tall, wide, guard, gain,
    WHOLE: tl.constexpr, RULE: tl.constexpr, RADIUS: tl.constexpr, PLANES: tl.constexpr,
    RAGGED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(Σ half[|j|] · source + guard) · gain along the columns of planes.

    Weights of two images are `step` values apart. A program reads each row it needs once, and keeps it for
    its ROWS rows of results.
    """
    n = tl.program_id(1).to(tl.int64)
    across = tl.cdiv(wide, BLOCK)
    top = tl.program_id(0) // across * ROWS
    left = tl.program_id(0) % across * BLOCK
    x = left + tl.arange(0, BLOCK)
    inside = x < wide
    height, width = size_of(sizes, n // PLANES, tall, wide, RAGGED)
    if RAGGED:
        if (top >= height) | (left >= width):
            return
    half += n // PLANES * step
    start = source + n * tall * wide + x
    rows = ()
    for k in tl.static_range(ROWS + 2 * RADIUS):
        y = bordered(top + k - RADIUS, height, RULE)
        rows += (floated(tl.load(start + y * wide, mask=inside, other=0)),)  # type: ignore[assignment]
    for i in tl.static_range(ROWS):
        total = (paired(rows, RADIUS + i, half, RADIUS) + guard) * gain
        target = out + (n * tall + top + i) * wide + x
        tl.store(target, leveled(total, WHOLE), mask=inside & (top + i < height))


@triton.jit
def four_of(values, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The four columns of BLOCK × 4 values, which a thread has loaded at once."""
    even, odd = tl.split(tl.reshape(floated(values), (BLOCK, 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def store_sums(target, values, half, inside, RADIUS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The sums for four values side by side, stored at once."""
    even = tl.join(paired(values, RADIUS, half, RADIUS), paired(values, RADIUS + 2, half, RADIUS))
    odd = tl.join(paired(values, RADIUS + 1, half, RADIUS), paired(values, RADIUS + 3, half, RADIUS))
    tl.store(target, tl.reshape(tl.join(even, odd), (BLOCK, 4)), mask=inside)


@triton.jit(do_not_specialize=["step"])
def across_kernel(  # type: ignore[no-untyped-def]
    source, out, half, sizes, step, tall, wide,
    RULE: tl.constexpr, RADIUS: tl.constexpr, PLANES: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Σ half[|j|] · source along the rows of planes, RADIUS a multiple of four; `step` as above.

    A thread has four results side by side and loads values by fours, each once, however many results it is
    part of. 32 threads share a row. Only tiles at the border need its rule.
    """
    n = tl.program_id(1).to(tl.int64)
    tiles = tl.cdiv(wide, 128)
    thread = tl.arange(0, BLOCK)
    top = tl.program_id(0) // tiles * (BLOCK // 32)
    y = top + thread // 32
    left = tl.program_id(0) % tiles * 128
    height, width = size_of(sizes, n // PLANES, tall, wide, RAGGED)
    if RAGGED:
        if (top >= height) | (left >= width):
            return
    half += n // PLANES * step
    x = (left + thread % 32 * 4)[:, None] + tl.arange(0, 4)[None, :]
    start = (n * tall + tl.minimum(y, height - 1)[:, None]) * wide
    target, inside = out + start + x, (y < height)[:, None] & (x < wide)
    if (left >= RADIUS) & (left + 128 + RADIUS <= width):
        inner = ()
        for k in tl.static_range(2 * (RADIUS // 4) + 1):
            inner += four_of(tl.load(source + start + x + (4 * k - RADIUS)), BLOCK)
        store_sums(target, inner, half, inside, RADIUS, BLOCK)
    else:
        outer = ()
        for k in tl.static_range(2 * (RADIUS // 4) + 1):
            place = bordered(x + (4 * k - RADIUS), width, RULE)
            outer += four_of(tl.load(source + start + place), BLOCK)
        store_sums(target, outer, half, inside, RADIUS, BLOCK)


@triton.jit(do_not_specialize=["radius", "step", "guard", "gain"])
def wide_kernel(  # type: ignore[no-untyped-def]
    source, out, half, sizes, radius, step, tall, wide, guard, gain,
    AXIS: tl.constexpr, WHOLE: tl.constexpr, RULE: tl.constexpr, PLANES: tl.constexpr,
    RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Both for any radius: along rows if AXIS is 2, along columns if it is 1."""
    n, y, at = row_part(wide, BLOCK)
    height, width = size_of(sizes, n // PLANES, tall, wide, RAGGED)
    if RAGGED:
        if y >= height:
            return
    half += n // PLANES * step
    x = tl.minimum(at, width - 1)
    start = source + n * tall * wide
    here, length = (x, width) if AXIS == 2 else (x * 0 + y, height)
    apart, rest = (1, y * wide) if AXIS == 2 else (wide, x)
    total = tl.load(half) * tl.load(start + here * apart + rest).to(tl.float32)
    for j in range(1, radius + 1):
        a = tl.load(start + bordered(here - j, length, RULE) * apart + rest).to(tl.float32)
        b = tl.load(start + bordered(here + j, length, RULE) * apart + rest).to(tl.float32)
        total = total + tl.load(half + j) * (a + b)
    total = (total + guard) * gain
    tl.store(out + (n * tall + y) * wide + at, leveled(total, WHOLE), mask=at < wide)


@triton.jit
def floated(value):  # type: ignore[no-untyped-def]
    return as_float(value) if value.dtype == tl.uint8 else value


@triton.jit
def tap(path, i):  # type: ignore[no-untyped-def]
    """The weight of a tap, and its place."""
    return tl.load(path + 2 * i).to(tl.float32, bitcast=True), tl.load(path + 2 * i + 1)


@triton.jit
def along_path(start, path, taps, guard, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Σ weight · value at its place from `start`, by fours."""
    total = tl.zeros((BLOCK,), tl.float32) + guard
    for i in range(0, taps, 4):
        a, p = tap(path, i)
        b, q = tap(path, i + 1)
        c, r = tap(path, i + 2)
        d, s = tap(path, i + 3)
        first = a * floated(tl.load(start + p)) + b * floated(tl.load(start + q))
        second = c * floated(tl.load(start + r)) + d * floated(tl.load(start + s))
        total = total + (first + second)
    return total


# `width` is not specialised: threads would be given several values each to store at once, and unaligned
# loads, which are most of the work, are fast only if neighbouring threads read neighbouring values.
@triton.jit(do_not_specialize=["taps", "height", "width", "wide", "tall", "guard"])
def line_kernel(  # type: ignore[no-untyped-def]
    source, out, paths, sizes, taps, height, width, wide, tall, guard,
    PLANES: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Weighted sum of shifted copies of planes, PLANES of them along one path; taps come in fours.

    `source` has borders, `tall` rows of `wide` values, and BLOCK values after the last: loads have no mask,
    which would cost a fifth of the time. `paths` has (weight, place) of every tap, the weight as its bits.
    """
    n, y, x = row_part(width, BLOCK)
    if RAGGED:
        if y >= tl.load(sizes + n // PLANES * 2):
            return
    total = along_path(source + (n * tall + y) * wide + x, paths + n // PLANES * taps * 2, taps, guard, BLOCK)
    tl.store(out + (n * height + y) * width + x, leveled(total, True), mask=x < width)


@triton.jit(do_not_specialize=["taps", "height", "width", "wide", "tall"])  # as above
def streak_kernel(  # type: ignore[no-untyped-def]
    source, out, paths, sizes, taps, height, width, wide, tall, RAGGED: tl.constexpr, BLOCK: tl.constexpr
):
    """The same over a field, rounded to whole numbers, half to even."""
    n, y, x = row_part(width, BLOCK)
    if RAGGED:
        if y >= tl.load(sizes + n * 2):
            return
    total = along_path(source + (n * tall + y) * wide + x, paths + n * taps * 2, taps, 0.0, BLOCK)
    # Next to 1.5 · 2²³, floats are whole numbers.
    tl.store(out + (n * height + y) * width + x, (total + 12582912.0) - 12582912.0, mask=x < width)


@triton.jit(do_not_specialize=["rows", "bias", "shift"])
def correlate_kernel(  # type: ignore[no-untyped-def]
    source, out, weights, sizes, rows, chunks, height, width, tall, wide, bias, shift,
    LIMBS: tl.constexpr, PLANES: tl.constexpr, RAGGED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Correlation with an integer kernel as products of 8-bit matrices, on tensor cores, exact modulo 2³².

    `source` is planes with borders, N × `tall` × `wide`, less 128. `weights` is rows × chunks × LIMBS ×
    COLUMNS × STEP: for a row of the kernel and STEP pixels, what each adds to the COLUMNS results beside.
    """
    down, across = tl.cdiv(height, ROWS), tl.cdiv(width, COLUMNS)
    plane = (tl.program_id(0) // (down * across)).to(tl.int64)
    tile = tl.program_id(0) % (down * across)
    own_height, own_width = size_of(sizes, plane // PLANES, height, width, RAGGED)
    if RAGGED:
        if (tile // across * ROWS >= own_height) | (tile % across * COLUMNS >= own_width):
            return
    y, x = tile // across * ROWS + tl.arange(0, ROWS), tile % across * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, STEP)
    here = source + plane * tall * wide + y[:, None] * wide + (tile % across * COLUMNS + k)[None, :]
    taps = weights + tl.arange(0, COLUMNS)[:, None] * STEP + k[None, :]
    low = tl.zeros((ROWS, COLUMNS), tl.int32)
    middle = tl.zeros((ROWS, COLUMNS), tl.int32)
    high = tl.zeros((ROWS, COLUMNS), tl.int32)
    for i in range(rows * chunks):
        pixels = tl.load(here + (i // chunks) * wide + (i % chunks) * STEP)
        own = taps + i * (LIMBS * COLUMNS * STEP)
        low = tl.dot(pixels, tl.trans(tl.load(own)), low, out_dtype=tl.int32)
        middle = tl.dot(pixels, tl.trans(tl.load(own + COLUMNS * STEP)), middle, out_dtype=tl.int32)
        if LIMBS == 3:
            high = tl.dot(pixels, tl.trans(tl.load(own + 2 * COLUMNS * STEP)), high, out_dtype=tl.int32)
    total = low + (middle << 8) + (high << 16) + bias
    target = out + (plane * height + y[:, None]) * width + x[None, :]
    level = tl.minimum(total >> shift, 255).to(tl.uint8)
    tl.store(target, level, mask=(y < height)[:, None] & (x < width)[None, :])
