"""The kernels themselves. Each gives the same values as a few lines of torch, its twin.

Launches forbid fused multiply-add: products are rounded before they are added, as on the CPU. Images are
contiguous N × H × W × C; `count` is the number of values of one image.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def random_bits(seed, stream, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The 16-bit numbers of this program's BLOCK Philox blocks, in order: 8·BLOCK of them."""
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = block * 0
    a, b, c, d = tl.philox(seed, block, zero, zero + stream, zero)
    words = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    return tl.interleave(words & 0xFFFF, words >> 16).to(tl.int32)


@triton.jit(do_not_specialize=["stream"])
def bits_kernel(out, seeds, stream, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    n = tl.program_id(1).to(tl.int64)
    bits = random_bits(tl.load(seeds + n), stream, BLOCK)
    at = tl.program_id(0) * BLOCK * 8 + tl.arange(0, BLOCK * 8)
    tl.store(out + n * count + at, bits, mask=at < count)


@triton.jit(do_not_specialize=["stream", "first", "second"])
def noise_kernel(  # type: ignore[no-untyped-def]
    image, out, seeds, table, stream, count, first, second, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """KIND 0: v + table[bits]. 1: table[v · first + (bits >> second)]. 2: 0 below first, 255 below second."""
    n = tl.program_id(1).to(tl.int64)
    bits = random_bits(tl.load(seeds + n), stream, BLOCK)
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


@triton.jit(do_not_specialize=["radius", "length", "step", "guard"])
def symmetric_kernel(  # type: ignore[no-untyped-def]
    source, out, half, index, radius, length, step, count, guard, WHOLE: tl.constexpr, BLOCK: tl.constexpr
):
    """Σ half[|j|] · source along one axis, pairs first; neighbours on it are `step` values apart."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    inner = at % step
    place = (at // step) % length
    start = source + n * count + (at // (step * length)) * (step * length) + inner
    centre = tl.load(index + place + radius, mask=inside, other=0)
    total = tl.load(half) * tl.load(start + centre * step, mask=inside, other=0).to(tl.float32)
    for j in range(1, radius + 1):
        before = tl.load(index + place + radius - j, mask=inside, other=0)
        after = tl.load(index + place + radius + j, mask=inside, other=0)
        a = tl.load(start + before * step, mask=inside, other=0).to(tl.float32)
        b = tl.load(start + after * step, mask=inside, other=0).to(tl.float32)
        total = total + tl.load(half + j) * (a + b)
    total = total + guard
    if WHOLE:
        tl.store(out + n * count + at, total.to(tl.int32).to(tl.uint8), mask=inside)
    else:
        tl.store(out + n * count + at, total, mask=inside)


@triton.jit(do_not_specialize=["taps", "height", "line", "wide", "tall", "guard"])
def line_kernel(  # type: ignore[no-untyped-def]
    source, out, weights, places, taps, height, line, wide, tall, guard,
    WHOLE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Weighted sum of shifted copies, each image along a path of its own; taps come in fours.

    `source` has borders, `tall` rows of `wide` values; `out` has `height` rows of `line` values.
    """
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < height * line
    start = source + n * tall * wide + (at // line) * wide + at % line
    w, p = weights + n * taps, places + n * taps
    total = tl.zeros((BLOCK,), tl.float32) + guard
    for i in range(0, taps, 4):
        a = tl.load(start + tl.load(p + i), mask=inside, other=0).to(tl.float32)
        b = tl.load(start + tl.load(p + i + 1), mask=inside, other=0).to(tl.float32)
        c = tl.load(start + tl.load(p + i + 2), mask=inside, other=0).to(tl.float32)
        d = tl.load(start + tl.load(p + i + 3), mask=inside, other=0).to(tl.float32)
        first = tl.load(w + i) * a + tl.load(w + i + 1) * b
        second = tl.load(w + i + 2) * c + tl.load(w + i + 3) * d
        total = total + (first + second)
    if WHOLE:
        total = tl.minimum(total, 255.0).to(tl.int32).to(tl.uint8)
    tl.store(out + n * height * line + at, total, mask=inside)


@triton.jit(do_not_specialize=["taps", "height", "line", "wide", "tall", "shift"])
def weigh_kernel(  # type: ignore[no-untyped-def]
    source, out, places, weights, taps, height, line, wide, tall, shift, BLOCK: tl.constexpr
):
    """Integer correlation; `source` has borders, as in `line_kernel`."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < height * line
    start = source + n * tall * wide + (at // line) * wide + at % line
    total = tl.zeros((BLOCK,), tl.int32) + (1 << (shift - 12))
    for i in range(taps):
        value = tl.load(start + tl.load(places + i), mask=inside, other=0).to(tl.int32)
        total += value * tl.load(weights + i)
    tl.store(out + n * height * line + at, tl.minimum(total >> shift, 255).to(tl.uint8), mask=inside)
