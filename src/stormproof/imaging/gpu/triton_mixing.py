"""Kernels for layers over images and random fields, with the conventions of `triton_source`."""

from __future__ import annotations

import triton
import triton.language as tl

from stormproof.imaging.gpu.triton_moves import as_float, part, row_part, size_of, value_at
from stormproof.imaging.gpu.triton_source import bits_at, random_bits


@triton.jit
def and_a_half(bits):  # type: ignore[no-untyped-def]
    """A whole number below 2²³ plus ½ as a float, as `triton_moves.biased` makes them."""
    return (bits | 0x4B000000).to(tl.float32, bitcast=True) - 8388607.5


@triton.jit(do_not_specialize=["stream", "scale", "low"])
def field_kernel(  # type: ignore[no-untyped-def]
    out, keys, table, stream, count, scale, low, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """KIND 0: (bits + ½)·scale + low. 1: table[bits]. 2: whole numbers from `low`, `scale` of them."""
    n = tl.program_id(1).to(tl.int64)
    bits = random_bits(keys + 2 * n, stream, BLOCK)
    at = tl.program_id(0) * BLOCK * 8 + tl.arange(0, BLOCK * 8)
    if KIND == 0:
        value = and_a_half(bits) * scale + low
    elif KIND == 1:
        value = tl.load(table + bits)
    else:
        value = ((bits * scale >> 16) + low).to(tl.int8)
    tl.store(out + n * count + at, value, mask=at < count)


@triton.jit(do_not_specialize=["stream", "tall"])
def field_ragged_kernel(  # type: ignore[no-untyped-def]
    out, keys, table, sizes, stream, tall, wide, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """Kinds 0 and 1 for ragged fields; `table` holds scale and low of each image for kind 0."""
    n = tl.program_id(1).to(tl.int64)
    height, width = size_of(sizes, n, tall, wide, True)
    if tl.program_id(0) * BLOCK * 8 >= height * width:
        return
    bits = random_bits(keys + 2 * n, stream, BLOCK)
    at = tl.program_id(0) * BLOCK * 8 + tl.arange(0, BLOCK * 8)
    if KIND == 0:
        value = and_a_half(bits) * tl.load(table + 2 * n) + tl.load(table + 2 * n + 1)
    else:
        value = tl.load(table + bits)
    tl.store(out + n * tall * wide + at // width * wide + at % width, value, mask=at < height * width)


@triton.jit
def wobble_of(bits, numbers):  # type: ignore[no-untyped-def]
    """(bits + ½)·scale + low, times gain; `numbers` are the three."""
    scale, low, gain = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    return (and_a_half(bits) * scale + low) * gain


@triton.jit
def four_means(a, b, c, d):  # type: ignore[no-untyped-def]
    return ((a + b) + (c + d)) * 0.25


@triton.jit(do_not_specialize=["levels", "side"])
def seed_kernel(  # type: ignore[no-untyped-def]
    cloud, keys, streams, numbers, levels, side, BLOCK: tl.constexpr
):
    """The first levels of diamond–square on a torus, up to `side`, from one point of 0; an image a program.

    Levels alternate between two squares of `cloud`. A level needs what all threads have stored before.
    """
    n = tl.program_id(0).to(tl.int64)
    seed = tl.load(keys + 2 * n) | (tl.load(keys + 2 * n + 1) << 32)
    start, thread = cloud + n * 2 * side * side, tl.arange(0, BLOCK)
    tl.store(start + thread, 0.0, mask=thread == 0)
    tl.debug_barrier()
    for level in range(levels):
        here, there = start + level % 2 * side * side, start + (level + 1) % 2 * side * side
        last, count, wide = (1 << level) - 1, 1 << (2 * level), 2 << level
        own, numbered = streams + 3 * level, numbers + 3 * level
        for first in range(0, count, BLOCK):
            at = first + thread
            inside = at < count
            i, j = at >> level, at & last
            below, right = (i + 1) & last, (j + 1) & last
            a = tl.load(here + at, mask=inside, other=0.0)
            b = tl.load(here + (below << level) + j, mask=inside, other=0.0)
            c = tl.load(here + (i << level) + right, mask=inside, other=0.0)
            d = tl.load(here + (below << level) + right, mask=inside, other=0.0)
            wobble = wobble_of(bits_at(seed, tl.load(own), at), numbered)
            tl.store(there + 2 * i * wide + 2 * j, a, mask=inside)
            tl.store(there + (2 * i + 1) * wide + 2 * j + 1, four_means(a, b, c, d) + wobble, mask=inside)
        tl.debug_barrier()
        for first in range(0, count, BLOCK):
            at = first + thread
            inside = at < count
            i, j = at >> level, at & last
            a = tl.load(here + at, mask=inside, other=0.0)
            b = tl.load(here + (((i + 1) & last) << level) + j, mask=inside, other=0.0)
            c = tl.load(here + (i << level) + ((j + 1) & last), mask=inside, other=0.0)
            middle = there + wide + 2 * i * wide + 2 * j + 1
            m = tl.load(middle, mask=inside, other=0.0)
            above = tl.load(there + wide + 2 * ((i - 1) & last) * wide + 2 * j + 1, mask=inside, other=0.0)
            before = tl.load(there + wide + 2 * i * wide + 2 * ((j - 1) & last) + 1, mask=inside, other=0.0)
            across = wobble_of(bits_at(seed, tl.load(own + 1), at), numbered)
            down = wobble_of(bits_at(seed, tl.load(own + 2), at), numbered)
            tl.store(middle - wide, four_means(m, above, a, c) + across, mask=inside)
            tl.store(middle - 1, four_means(m, before, a, b) + down, mask=inside)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["step"])
def centre_kernel(  # type: ignore[no-untyped-def]
    coarse, middle, keys, streams, numbers, step, SIDE: tl.constexpr, BLOCK: tl.constexpr
):
    """New points in the middle of the squares of SIDE × SIDE points; images of `coarse` are `step` apart."""
    n, at = part(BLOCK * 8)
    wobble = wobble_of(random_bits(keys + 2 * n, tl.load(streams), BLOCK), numbers)
    i, j = at // SIDE, at % SIDE
    here, below, right = coarse + n * step, (i + 1) % SIDE * SIDE, (j + 1) % SIDE
    a, b = tl.load(here + at), tl.load(here + below + j)
    c, d = tl.load(here + i * SIDE + right), tl.load(here + below + right)
    tl.store(middle + n * SIDE * SIDE + at, four_means(a, b, c, d) + wobble)


@triton.jit(do_not_specialize=["step", "height", "apart"])
def weave_kernel(  # type: ignore[no-untyped-def]
    coarse, middle, out, extremes, keys, streams, numbers, step, height, width, apart,
    LAST: tl.constexpr, SIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Old points, those in the middle of squares, and new ones between both, as `height` rows of `width`.

    In the LAST level, rows and columns beyond are only part of `extremes`: this program's least value and,
    `apart` values on, its greatest.
    """
    n, at = part(BLOCK * 8)
    across = wobble_of(random_bits(keys + 2 * n, tl.load(streams + 1), BLOCK), numbers)
    down = wobble_of(random_bits(keys + 2 * n, tl.load(streams + 2), BLOCK), numbers)
    i, j = at // SIDE, at % SIDE
    here, new = coarse + n * step, middle + n * SIDE * SIDE
    a, m = tl.load(here + at), tl.load(new + at)
    b, c = tl.load(here + (i + 1) % SIDE * SIDE + j), tl.load(here + i * SIDE + (j + 1) % SIDE)
    above = tl.load(new + (i + SIDE - 1) % SIDE * SIDE + j)
    before = tl.load(new + i * SIDE + (j + SIDE - 1) % SIDE)
    across = four_means(m, above, a, c) + across
    down = four_means(m, before, a, b) + down
    twice = tl.program_id(0) * BLOCK * 16 + tl.arange(0, BLOCK * 16)
    y, x = twice // (2 * SIDE) * 2, twice % (2 * SIDE)
    target = out + n * height * width + y * width + x
    inside = x < width
    tl.store(target, tl.interleave(a, across), mask=inside & (y < height))
    tl.store(target + width, tl.interleave(down, m), mask=inside & (y + 1 < height))
    if LAST:
        least = tl.minimum(tl.minimum(a, across), tl.minimum(down, m))
        most = tl.maximum(tl.maximum(a, across), tl.maximum(down, m))
        own = extremes + n * tl.num_programs(0) + tl.program_id(0)
        tl.store(own, tl.min(least, axis=0))
        tl.store(own + apart, tl.max(most, axis=0))


@triton.jit(do_not_specialize=["height", "step", "pitch", "tall", "tiny"])
def stretch_kernel(  # type: ignore[no-untyped-def]
    field, out, low, high, places, height, width, step, pitch, tall, wide, tiny, BLOCK: tl.constexpr
):
    """(field − low) / (high − low); the field's rows are `pitch` values apart, its images `step`.

    Image n becomes number places[n] of the results, which are `tall` rows of `wide` values.
    """
    n, y, x = row_part(width, BLOCK)
    least = tl.load(low + n)
    span = tl.maximum(tl.load(high + n) - least, tiny)
    value = tl.load(field + n * step + y * pitch + x, mask=x < width, other=0.0) - least
    target = out + (tl.load(places + n) * tall + y) * wide + x
    tl.store(target, tl.div_rn(value, value * 0 + span), mask=x < width)


@triton.jit(do_not_specialize=["height", "width", "tall", "wide", "threshold"])
def flakes_kernel(  # type: ignore[no-untyped-def]
    seeds, out, rows, down, columns, across, sizes, height, width, tall, wide, threshold,
    RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Seeds enlarged by tables, as in `fields._stretched`, set to 0 below `threshold`, in grey levels.

    RAGGED images have their own tables.
    """
    n, y, at = row_part(wide, BLOCK)
    x = tl.minimum(at, wide - 1)
    own_height, own_width = size_of(sizes, n, height, width, RAGGED)
    if RAGGED:
        rows, down, columns, across = rows + n * tall, down + n * tall, columns + n * wide, across + n * wide
    i, f, j, g = tl.load(rows + y), tl.load(down + y), tl.load(columns + x), tl.load(across + x)
    start = seeds + n * height * width
    upper = start + tl.maximum(i, 0) * width
    lower = start + tl.minimum(tl.maximum(i, 0) + 1, own_height - 1) * width
    left, right = tl.maximum(j, 0), tl.minimum(tl.maximum(j, 0) + 1, own_width - 1)
    a, b, c, d = tl.load(upper + left), tl.load(lower + left), tl.load(upper + right), tl.load(lower + right)
    first, second = a + (b - a) * f, c + (d - c) * f
    value = first + (second - first) * g
    held = (i >= 0) & (j >= 0) & (value >= threshold)
    value = tl.minimum(tl.maximum(tl.where(held, value, 0.0), 0.0), 1.0) * 255.0
    tl.store(out + (n * tall + y) * wide + at, value, mask=at < wide)


@triton.jit(do_not_specialize=["step", "guard"])
def layer_kernel(  # type: ignore[no-untyped-def]
    image, out, layer, numbers, colour, pixels, step, guard,
    channels: tl.constexpr, PLANAR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """gain·image + (scale·layer + offset)·colour; `numbers` is (gain, scale, offset) of each image.

    Images of the layer are `step` values apart.
    """
    n, at = part(BLOCK)
    inside = at < pixels
    gain, scale, offset = tl.load(numbers + 3 * n), tl.load(numbers + 3 * n + 1), tl.load(numbers + 3 * n + 2)
    light = tl.load(layer + n * step + at, mask=inside, other=0.0) * scale + offset
    for c in tl.static_range(channels):
        place = n * pixels * channels + value_at(at, c, pixels, channels, PLANAR)
        value = as_float(tl.load(image + place, mask=inside, other=0)) * gain
        store_level(out + place, (value + light * tl.load(colour + c)) + guard, inside)


@triton.jit
def store_level(target, value, inside):  # type: ignore[no-untyped-def]
    """A float as a grey level: clipped, then truncated."""
    level = tl.minimum(tl.maximum(value, 0.0), 255.0)
    tl.store(target, level.to(tl.int32).to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["keep", "lose", "red", "green", "blue", "guard"])
def whiten_kernel(  # type: ignore[no-untyped-def]
    image, out, layer, sizes, pixels, wide, keep, lose, red, green, blue, guard,
    channels: tl.constexpr, PLANAR: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """keep·v + lose·max(v, 1.5·grey + ½) + the layer, and the layer rotated by 180°."""
    n, at = part(BLOCK)
    inside, opposite = at < pixels, pixels - 1 - at
    if RAGGED:
        height, width = size_of(sizes, n, pixels // wide, wide, True)
        y, x = at // wide, at % wide
        inside = (y < height) & (x < width)
        opposite = (height - 1 - y) * wide + (width - 1 - x)
    start = n * pixels * channels
    first = as_float(tl.load(image + start + value_at(at, 0, pixels, channels, PLANAR), mask=inside, other=0))
    grey = first
    if channels == 3:
        second = as_float(tl.load(image + start + value_at(at, 1, pixels, 3, PLANAR), mask=inside, other=0))
        third = as_float(tl.load(image + start + value_at(at, 2, pixels, 3, PLANAR), mask=inside, other=0))
        grey = (first * red + second * green) + third * blue
    bright = grey * 1.5 + 127.5
    above = tl.load(layer + n * pixels + at, mask=inside, other=0.0)
    above = above + tl.load(layer + n * pixels + opposite, mask=inside, other=0.0)
    for c in tl.static_range(channels):
        place = start + value_at(at, c, pixels, channels, PLANAR)
        value = as_float(tl.load(image + place, mask=inside, other=0))
        whiter = value * keep + tl.maximum(value, bright) * lose
        store_level(out + place, (whiter + above) + guard, inside)


@triton.jit
def mixed_level(value, other, weights):  # type: ignore[no-untyped-def]
    """a·value + b·other in doubles, as a grey level."""
    total = value.to(tl.float64) * tl.load(weights) + other.to(tl.float64) * tl.load(weights + 1)
    return tl.where(total > 255.0, 255.0, total).to(tl.int32).to(tl.uint8)


@triton.jit(do_not_specialize=["height"])
def mix_kernel(  # type: ignore[no-untyped-def]
    image, out, places, weights, height, width, PLANAR: tl.constexpr, BLOCK: tl.constexpr
):
    """a·image + b·part; `places` are each part's address and the length of its rows."""
    n, y, x = row_part(width, BLOCK)
    inside = x < width
    part = tl.load(places + 2 * n).to(tl.pointer_type(tl.uint8)) + y * tl.load(places + 2 * n + 1)
    for c in tl.static_range(3):
        place = n * height * width * 3 + value_at(y * width + x, c, height * width, 3, PLANAR)
        value = tl.load(image + place, mask=inside, other=0)
        other = tl.load(part + 3 * x + c, mask=inside, other=0)
        tl.store(out + place, mixed_level(value, other, weights), mask=inside)


@triton.jit
def inner_weight(t):  # type: ignore[no-untyped-def]
    return (t * 1.25 - 2.25) * t * t + 1.0


@triton.jit
def outer_weight(t):  # type: ignore[no-untyped-def]
    return ((t - 5.0) * t + 8.0) * t * -0.75 + 3.0


@triton.jit(do_not_specialize=["count"])
def cubic_kernel(before, weights, plans, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Parts of enlarged sides, as in `plans.cubic_taps`: the second of four pixels, and their weights.

    A side's plan is three doubles: its pixels, those of the enlarged side, and where the part begins.
    """
    tiles = tl.cdiv(count, BLOCK)
    side = (tl.program_id(0) // tiles).to(tl.int64)
    at = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    length, target, start = (
        tl.load(plans + 3 * side),
        tl.load(plans + 3 * side + 1),
        tl.load(plans + 3 * side + 2),
    )
    place = ((at.to(tl.float64) + start) + 0.5) * (length / target) - 0.5
    whole = tl.floor(place)
    t = place - whole
    inside, own = at < count, side * count + at
    tl.store(before + own, whole.to(tl.int32), mask=inside)
    tl.store(weights + 4 * own, outer_weight(t + 1.0).to(tl.float32), mask=inside)
    tl.store(weights + 4 * own + 1, inner_weight(t).to(tl.float32), mask=inside)
    tl.store(weights + 4 * own + 2, inner_weight(1.0 - t).to(tl.float32), mask=inside)
    tl.store(weights + 4 * own + 3, outer_weight(2.0 - t).to(tl.float32), mask=inside)


@triton.jit
def of_four(a, b, c, d, w0, w1, w2, w3):  # type: ignore[no-untyped-def]
    return ((a * w0 + b * w1) + c * w2) + d * w3


@triton.jit
def of_row(row, c, p, q, r, s, w0, w1, w2, w3):  # type: ignore[no-untyped-def]
    """Channel c between four pixels of a row of bytes."""
    first, second = as_float(tl.load(row + 3 * p + c)), as_float(tl.load(row + 3 * q + c))
    third, fourth = as_float(tl.load(row + 3 * r + c)), as_float(tl.load(row + 3 * s + c))
    return of_four(first, second, third, fourth, w0, w1, w2, w3)


@triton.jit(do_not_specialize=["tall", "count"])
def mix_enlarged_kernel(  # type: ignore[no-untyped-def]
    image, out, textures, before, taps, weights, sizes, tall, wide, count, BLOCK: tl.constexpr
):
    """a·image + b·texture, enlarged on the way; planes of ragged images.

    `textures` is each one's address, height and width; `before` and `taps` are tables of `cubic_kernel`.
    """
    n, y, x = row_part(wide, BLOCK)
    height, width = size_of(sizes, n, tall, wide, True)
    if y >= height:
        return
    texture = tl.load(textures + 3 * n).to(tl.pointer_type(tl.uint8))
    last, right = (
        tl.load(textures + 3 * n + 1).to(tl.int32) - 1,
        tl.load(textures + 3 * n + 2).to(tl.int32) - 1,
    )
    pitch = 3 * (right + 1)
    across = (2 * n + 1) * count + tl.minimum(x, width - 1)
    i, j = tl.load(before + 2 * n * count + y), tl.load(before + across)
    p, q = tl.maximum(j - 1, 0), tl.minimum(tl.maximum(j, 0), right)
    r, s = tl.minimum(j + 1, right), tl.minimum(j + 2, right)
    p = tl.minimum(p, right)
    w0, w1 = tl.load(taps + 4 * across), tl.load(taps + 4 * across + 1)
    w2, w3 = tl.load(taps + 4 * across + 2), tl.load(taps + 4 * across + 3)
    down = taps + 4 * (2 * n * count + y)
    a = texture + tl.minimum(tl.maximum(i - 1, 0), last) * pitch
    b = texture + tl.minimum(tl.maximum(i, 0), last) * pitch
    c = texture + tl.minimum(i + 1, last) * pitch
    d = texture + tl.minimum(i + 2, last) * pitch
    for k in tl.static_range(3):
        first, second = of_row(a, k, p, q, r, s, w0, w1, w2, w3), of_row(b, k, p, q, r, s, w0, w1, w2, w3)
        third, fourth = of_row(c, k, p, q, r, s, w0, w1, w2, w3), of_row(d, k, p, q, r, s, w0, w1, w2, w3)
        between = of_four(
            first, second, third, fourth,
            tl.load(down), tl.load(down + 1), tl.load(down + 2), tl.load(down + 3),
        )  # fmt: skip
        level = (tl.minimum(tl.maximum(between, 0.0), 255.0) + 0.5).to(tl.int32)
        place = ((n * 3 + k) * tall + y) * wide + x
        value = tl.load(image + place, mask=x < wide, other=0)
        tl.store(out + place, mixed_level(value, level, weights), mask=x < wide)


@triton.jit
def brightest_kernel(  # type: ignore[no-untyped-def]
    image, out, table, pixels, channels: tl.constexpr, PLANAR: tl.constexpr, BLOCK: tl.constexpr
):
    """table[V, v], where V is the pixel's brightest channel; one program element per pixel."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = tl.program_id(1).to(tl.int64) * pixels * channels
    inside = at < pixels
    here = start + value_at(at, 0, pixels, channels, PLANAR)
    first = tl.load(image + here, mask=inside, other=0).to(tl.int32)
    top = first
    if channels == 3:
        there, beyond = start + value_at(at, 1, pixels, 3, PLANAR), start + value_at(at, 2, pixels, 3, PLANAR)
        second = tl.load(image + there, mask=inside, other=0).to(tl.int32)
        third = tl.load(image + beyond, mask=inside, other=0).to(tl.int32)
        top = tl.maximum(first, tl.maximum(second, third))
        tl.store(out + there, tl.load(table + top * 256 + second), mask=inside)
        tl.store(out + beyond, tl.load(table + top * 256 + third), mask=inside)
    tl.store(out + here, tl.load(table + top * 256 + first), mask=inside)


@triton.jit(do_not_specialize=["step"])
def look_up_kernel(  # type: ignore[no-untyped-def]
    image, out, tables, pixels, step, channels: tl.constexpr, PLANAR: tl.constexpr, BLOCK: tl.constexpr
):
    """tables[c, v]; the tables of two images are `step` values apart."""
    n, at = part(BLOCK)
    inside = at < pixels
    for c in tl.static_range(channels):
        place = n * pixels * channels + value_at(at, c, pixels, channels, PLANAR)
        value = tl.load(image + place, mask=inside, other=0).to(tl.int32)
        tl.store(out + place, tl.load(tables + n * step + c * 256 + value, mask=inside, other=0), mask=inside)


@triton.jit
def sum_kernel(  # type: ignore[no-untyped-def]
    image, out, pixels, channels: tl.constexpr, PLANAR: tl.constexpr, BLOCK: tl.constexpr
):
    """Adds each channel up."""
    n, at = part(BLOCK)
    for c in tl.static_range(channels):
        place = image + n * pixels * channels + value_at(at, c, pixels, channels, PLANAR)
        value = tl.load(place, mask=at < pixels, other=0).to(tl.int32)
        tl.atomic_add(out + n * channels + c, tl.sum(value, axis=0).to(tl.int64))
