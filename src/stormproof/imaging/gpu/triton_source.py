"""The kernels themselves. Each gives the same values as a few lines of torch, its twin.

Launches forbid fused multiply-add: products are rounded before they are added, as on the CPU. Images are
contiguous N × H × W × C; `count` is the number of values of one image.
"""

from __future__ import annotations

import triton
import triton.language as tl


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


@triton.jit(do_not_specialize=["stream", "first", "second"])
def noise_kernel(  # type: ignore[no-untyped-def]
    image, out, keys, table, stream, count, first, second, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """KIND 0: v + table[bits]. 1: table[v · first + (bits >> second)]. 2: 0 below first, 255 below second."""
    n = tl.program_id(1).to(tl.int64)
    bits = random_bits(keys + 2 * n, stream, BLOCK)
    at = tl.program_id(0) * BLOCK * 8 + tl.arange(0, BLOCK * 8)
    inside = at < count
    value = tl.load(image + n * count + at, mask=inside, other=0).to(tl.int32)
    if KIND == 0:
        value = value + tl.load(table + bits).to(tl.int32)
        value = tl.minimum(tl.maximum(value, 0), 255)
    elif KIND == 1:
        value = tl.load(table + value * first + (bits >> second)).to(tl.int32)
    else:
        value = tl.where(bits < first, 0, tl.where(bits < second, 255, value))
    tl.store(out + n * count + at, value.to(tl.uint8), mask=inside)


@triton.jit
def leveled(total, WHOLE: tl.constexpr):  # type: ignore[no-untyped-def]
    """A sum as it is stored: truncated to a grey level, or unchanged."""
    return tl.minimum(total, 255.0).to(tl.int32).to(tl.uint8) if WHOLE else total


@triton.jit(do_not_specialize=["radius", "guard"])
def down_kernel(  # type: ignore[no-untyped-def]
    source, out, half, index, radius, height, line, guard,
    WHOLE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Σ half[|j|] · source over rows of `line` values, pairs first; `index` is the border's table."""
    n = tl.program_id(1).to(tl.int64)
    across = tl.cdiv(line, BLOCK)
    y = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    x = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    inside = (y < height)[:, None] & (x < line)[None, :]
    start = source + n * height * line + x[None, :]
    here = index + tl.minimum(y, height - 1) + radius
    total = tl.load(half) * tl.load(start + (tl.load(here) * line)[:, None], mask=inside, other=0).to(
        tl.float32
    )
    for j in range(1, radius + 1):
        above, below = tl.load(here - j) * line, tl.load(here + j) * line
        a = tl.load(start + above[:, None], mask=inside, other=0).to(tl.float32)
        b = tl.load(start + below[:, None], mask=inside, other=0).to(tl.float32)
        total = total + tl.load(half + j) * (a + b)
    target = out + n * height * line + y[:, None] * line + x[None, :]
    tl.store(target, leveled(total + guard, WHOLE), mask=inside)


# `line` is not specialised: threads would be given four values each to store at once, and unaligned loads,
# which are most of the work, take four times as long as if neighbouring threads read neighbouring values.
@triton.jit(do_not_specialize=["radius", "line", "guard"])
def across_kernel(  # type: ignore[no-untyped-def]
    source, out, half, index, radius, height, line, guard,
    channels: tl.constexpr, WHOLE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same along rows; only tiles at the border need its table. Below the last row, it is repeated."""
    n = tl.program_id(1).to(tl.int64)
    across = tl.cdiv(line, BLOCK)
    y = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    left = tl.program_id(0) % across * BLOCK
    x = left + tl.arange(0, BLOCK)
    start = source + n * height * line + tl.minimum(y, height - 1)[:, None] * line
    reach = radius * channels
    if (left >= reach) & (left + BLOCK + reach <= line):
        here = start + x[None, :]
        total = tl.load(half) * tl.load(here).to(tl.float32)
        for j in range(1, radius + 1):
            a = tl.load(here - j * channels).to(tl.float32)
            b = tl.load(here + j * channels).to(tl.float32)
            total = total + tl.load(half + j) * (a + b)
    else:
        own = (x % channels)[None, :]
        place = index + tl.minimum(x // channels, line // channels - 1) + radius
        centre = start + (tl.load(place) * channels)[None, :] + own
        total = tl.load(half) * tl.load(centre).to(tl.float32)
        for j in range(1, radius + 1):
            before, after = tl.load(place - j) * channels, tl.load(place + j) * channels
            a = tl.load(start + before[None, :] + own).to(tl.float32)
            b = tl.load(start + after[None, :] + own).to(tl.float32)
            total = total + tl.load(half + j) * (a + b)
    target = out + n * height * line + y[:, None] * line + x[None, :]
    inside = (y < height)[:, None] & (x < line)[None, :]
    tl.store(target, leveled(total + guard, WHOLE), mask=inside)


@triton.jit(do_not_specialize=["taps", "height", "line", "guard"])  # as above
def line_kernel(  # type: ignore[no-untyped-def]
    source, out, weights, places, taps, height, line, wide, tall, guard,
    WHOLE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Weighted sum of shifted copies, each image along a path of its own; taps come in fours.

    `source` has borders, `tall` rows of `wide` values, and BLOCK values after the last: loads have no mask,
    which would cost a fifth of the time. `out` has `height` rows of `line` values.
    """
    n = tl.program_id(1).to(tl.int64)
    across = tl.cdiv(line, BLOCK)
    y = tl.program_id(0) // across
    x = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    start = source + (n * tall + y) * wide + x
    w, p = weights + n * taps, places + n * taps
    total = tl.zeros((BLOCK,), tl.float32) + guard
    for i in range(0, taps, 4):
        a = tl.load(start + tl.load(p + i)).to(tl.float32)
        b = tl.load(start + tl.load(p + i + 1)).to(tl.float32)
        c = tl.load(start + tl.load(p + i + 2)).to(tl.float32)
        d = tl.load(start + tl.load(p + i + 3)).to(tl.float32)
        first = tl.load(w + i) * a + tl.load(w + i + 1) * b
        second = tl.load(w + i + 2) * c + tl.load(w + i + 3) * d
        total = total + (first + second)
    tl.store(out + (n * height + y) * line + x, leveled(total, WHOLE), mask=x < line)


@triton.jit(do_not_specialize=["rows", "bias", "shift"])
def correlate_kernel(  # type: ignore[no-untyped-def]
    source, out, weights, rows, chunks, height, width, tall, wide, bias, shift,
    channels: tl.constexpr, LIMBS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Correlation with an integer kernel as products of 8-bit matrices, on tensor cores, exact modulo 2³².

    `source` is planes with borders, N·C × `tall` × `wide`, less 128. `weights` is rows × chunks × LIMBS ×
    COLUMNS × STEP: for a row of the kernel and STEP pixels, what each adds to the COLUMNS results beside.
    """
    down, across = tl.cdiv(height, ROWS), tl.cdiv(width, COLUMNS)
    plane = (tl.program_id(0) // (down * across)).to(tl.int64)
    tile = tl.program_id(0) % (down * across)
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
    target = out + ((plane // channels * height + y[:, None]) * width + x[None, :]) * channels
    level = tl.minimum(total >> shift, 255).to(tl.uint8)
    tl.store(target + plane % channels, level, mask=(y < height)[:, None] & (x < width)[None, :])
