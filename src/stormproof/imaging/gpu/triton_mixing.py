"""Kernels for layers over images and random fields, with the conventions of `triton_source`."""

from __future__ import annotations

import triton
import triton.language as tl

from stormproof.imaging.gpu.triton_source import random_bits


@triton.jit(do_not_specialize=["stream", "scale", "low"])
def field_kernel(  # type: ignore[no-untyped-def]
    out, keys, table, stream, count, scale, low, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """KIND 0: (bits + ½)·scale + low. 1: table[bits]. 2: whole numbers from `low`, `scale` of them."""
    n = tl.program_id(1).to(tl.int64)
    bits = random_bits(keys + 2 * n, stream, BLOCK)
    at = tl.program_id(0) * BLOCK * 8 + tl.arange(0, BLOCK * 8)
    if KIND == 0:
        value = (bits.to(tl.float32) + 0.5) * scale + low
    elif KIND == 1:
        value = tl.load(table + bits)
    else:
        value = ((bits * scale >> 16) + low).to(tl.int8)
    tl.store(out + n * count + at, value, mask=at < count)


@triton.jit
def middle_of(here, wobble, start, i, j, side, gain, inside):  # type: ignore[no-untyped-def]
    """The new point in the middle of the square whose upper left corner is (i, j), on a torus."""
    below, right = (i + 1) & (side - 1), (j + 1) & (side - 1)
    a = tl.load(here + i * side + j, mask=inside, other=0.0)
    b = tl.load(here + below * side + j, mask=inside, other=0.0)
    c = tl.load(here + i * side + right, mask=inside, other=0.0)
    d = tl.load(here + below * side + right, mask=inside, other=0.0)
    return ((a + b) + (c + d)) * 0.25 + tl.load(wobble + start + i * side + j, mask=inside, other=0.0) * gain


@triton.jit(do_not_specialize=["step", "gain"])
def subdivide_kernel(  # type: ignore[no-untyped-def]
    coarse, out, centre, row, column, side, step, gain, BLOCK: tl.constexpr
):
    """One step of diamond–square, `side` a power of two; images of `coarse` are `step` values apart."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < side * side
    i, j = at // side, at % side
    here, start = coarse + n * step, n * side * side
    a = tl.load(here + at, mask=inside, other=0.0)
    b = tl.load(here + ((i + 1) & (side - 1)) * side + j, mask=inside, other=0.0)
    c = tl.load(here + i * side + ((j + 1) & (side - 1)), mask=inside, other=0.0)
    middle = middle_of(here, centre, start, i, j, side, gain, inside)
    above = middle_of(here, centre, start, (i - 1) & (side - 1), j, side, gain, inside)
    before = middle_of(here, centre, start, i, (j - 1) & (side - 1), side, gain, inside)
    across = ((middle + above) + (a + c)) * 0.25 + tl.load(row + start + at, mask=inside, other=0.0) * gain
    down = ((middle + before) + (a + b)) * 0.25 + tl.load(column + start + at, mask=inside, other=0.0) * gain
    target = out + 4 * start + 4 * side * i + 2 * j
    tl.store(target, a, mask=inside)
    tl.store(target + 1, across, mask=inside)
    tl.store(target + 2 * side, down, mask=inside)
    tl.store(target + 2 * side + 1, middle, mask=inside)


@triton.jit(do_not_specialize=["height", "across", "step", "guard"])
def layer_kernel(  # type: ignore[no-untyped-def]
    image, out, layer, numbers, colour, height, width, across, step, guard,
    channels: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """gain·image + (scale·layer + offset)·colour; `numbers` is (gain, scale, offset) of each image.

    Rows of the layer are `across` values apart, its images `step`.
    """
    n = tl.program_id(1).to(tl.int64)
    tiles = tl.cdiv(width * channels, BLOCK)
    y = tl.program_id(0) // tiles
    x = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = x < width * channels
    at = (n * height + y) * width * channels + x
    gain, scale, offset = tl.load(numbers + 3 * n), tl.load(numbers + 3 * n + 1), tl.load(numbers + 3 * n + 2)
    light = tl.load(layer + n * step + y * across + x // channels, mask=inside, other=0.0) * scale + offset
    value = tl.load(image + at, mask=inside, other=0).to(tl.float32) * gain
    level = (value + light * tl.load(colour + x % channels)) + guard
    level = tl.minimum(tl.maximum(level, 0.0), 255.0)
    tl.store(out + at, level.to(tl.int32).to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["keep", "lose", "red", "green", "blue", "guard"])
def whiten_kernel(  # type: ignore[no-untyped-def]
    image, out, layer, pixels, keep, lose, red, green, blue, guard,
    channels: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """keep·v + lose·max(v, 1.5·grey + ½) + layer; one program element per pixel."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    start = (n * pixels + at) * channels
    first = tl.load(image + start, mask=inside, other=0).to(tl.float32)
    grey = first
    if channels == 3:
        second = tl.load(image + start + 1, mask=inside, other=0).to(tl.float32)
        third = tl.load(image + start + 2, mask=inside, other=0).to(tl.float32)
        grey = (first * red + second * green) + third * blue
    bright = grey * 1.5 + 127.5
    above = tl.load(layer + n * pixels + at, mask=inside, other=0.0)
    for c in tl.static_range(channels):
        value = tl.load(image + start + c, mask=inside, other=0).to(tl.float32)
        whiter = value * keep + tl.maximum(value, bright) * lose
        level = tl.minimum(tl.maximum((whiter + above) + guard, 0.0), 255.0)
        tl.store(out + start + c, level.to(tl.int32).to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["height"])
def mix_kernel(  # type: ignore[no-untyped-def]
    image, out, starts, strides, weights, height, line, BLOCK: tl.constexpr
):
    """a·image + b·part in doubles; `starts` are the parts' addresses, `strides` the lengths of their rows."""
    n = tl.program_id(1).to(tl.int64)
    across = tl.cdiv(line, BLOCK)
    y = tl.program_id(0) // across
    x = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    inside = x < line
    part = tl.load(starts + n).to(tl.pointer_type(tl.uint8)) + y * tl.load(strides + n)
    value = tl.load(image + (n * height + y) * line + x, mask=inside, other=0).to(tl.float64)
    other = tl.load(part + x, mask=inside, other=0).to(tl.float64)
    total = value * tl.load(weights) + other * tl.load(weights + 1)
    level = tl.where(total > 255.0, 255.0, total).to(tl.int32).to(tl.uint8)
    tl.store(out + (n * height + y) * line + x, level, mask=inside)


@triton.jit
def brightest_kernel(image, out, table, pixels, channels: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """table[V, v], where V is the pixel's brightest channel; one program element per pixel."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    here, there = image + at * channels, out + at * channels
    first = tl.load(here, mask=inside, other=0).to(tl.int32)
    top = first
    if channels == 3:
        second = tl.load(here + 1, mask=inside, other=0).to(tl.int32)
        third = tl.load(here + 2, mask=inside, other=0).to(tl.int32)
        top = tl.maximum(first, tl.maximum(second, third))
        tl.store(there + 1, tl.load(table + top * 256 + second), mask=inside)
        tl.store(there + 2, tl.load(table + top * 256 + third), mask=inside)
    tl.store(there, tl.load(table + top * 256 + first), mask=inside)


@triton.jit(do_not_specialize=["step"])
def look_up_kernel(image, out, tables, count, step, channels: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """tables[c, v]; the tables of two images are `step` values apart."""
    n = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(image + n * count + at, mask=inside, other=0).to(tl.int32)
    found = tl.load(tables + n * step + at % channels * 256 + value, mask=inside, other=0)
    tl.store(out + n * count + at, found, mask=inside)
