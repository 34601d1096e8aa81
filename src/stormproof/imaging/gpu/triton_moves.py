"""Kernels that read pixels from elsewhere, with the conventions of `triton_source`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def part(BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The image of this program, and the places of the BLOCK values of it that are its part."""
    return tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def row_part(wide, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The image, row and columns of this program, which is part of a row of `wide` values."""
    n = tl.program_id(1).to(tl.int64)
    tiles = tl.cdiv(wide, BLOCK)
    y = tl.program_id(0) // tiles
    return n, y, tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def size_of(sizes, n, tall, wide, RAGGED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Height and width of image n: its own, from a table, if images are RAGGED; else those of all."""
    height = tl.load(sizes + 2 * n) if RAGGED else tall
    width = tl.load(sizes + 2 * n + 1) if RAGGED else wide
    return height, width


NEAREST, REFLECT, MIRROR = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)


@triton.jit
def bordered(place, length, RULE: tl.constexpr):  # type: ignore[no-untyped-def]
    """A position on a side of some length, moved into it by a border's rule; as in `plans.border`."""
    if RULE == NEAREST:
        return tl.minimum(tl.maximum(place, 0), length - 1)
    elif RULE == REFLECT:
        return folded(place, length)
    else:
        period = tl.maximum(2 * length - 2, 1)
        rest = place % period  # which keeps the sign
        rest = tl.where(rest < 0, rest + period, rest)
        return tl.minimum(rest, period - rest)


@triton.jit(do_not_specialize=["height", "width", "row_step", "column_step"])
def gather_kernel(  # type: ignore[no-untyped-def]
    source, out, rows, columns, height, width, tall, wide, row_step, column_step,
    PLANES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out[y, x] = source[rows[y], columns[x]] of planes; tables of two images are so many values apart."""
    n, y, x = row_part(wide, BLOCK)
    start = source + (n * height + tl.load(rows + n // PLANES * row_step + y)) * width
    value = tl.load(start + tl.load(columns + n // PLANES * column_step + tl.minimum(x, wide - 1)))
    tl.store(out + (n * tall + y) * wide + x, value, mask=x < wide)


@triton.jit(do_not_specialize=["height", "width", "reach"])
def bordered_kernel(  # type: ignore[no-untyped-def]
    source, out, sizes, height, width, tall, wide, reach,
    LESS: tl.constexpr, RULE: tl.constexpr, PLANES: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Planes with borders, `reach` wide above and on the left, and as wide as there is room elsewhere."""
    n, y, x = row_part(wide, BLOCK)
    own_height, own_width = size_of(sizes, n // PLANES, height, width, RAGGED)
    if RAGGED:
        if y >= own_height + 2 * reach:
            return
    row, column = bordered(y - reach, own_height, RULE), bordered(x - reach, own_width, RULE)
    value = tl.load(source + (n * height + row) * width + column).to(tl.int32) - LESS
    tl.store(out + (n * tall + y) * wide + x, value.to(out.dtype.element_ty), mask=x < wide)


@triton.jit(do_not_specialize=["count", "reach"])
def positions_kernel(index, fraction, plans, count, reach, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Corner-aligned samples of sides, as in `plans.corner_positions`: the one before, −1 outside; the rest.

    A side's plan is four doubles: where its samples begin, how many there are, the step from one result to
    the next, and the number of results. Around these, `reach` more repeat the first and the last.
    """
    tiles = tl.cdiv(count, BLOCK)
    side = (tl.program_id(0) // tiles).to(tl.int64)
    at = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    own = plans + 4 * side
    start, samples = tl.load(own).to(tl.int32), tl.load(own + 1).to(tl.int32)
    results = tl.load(own + 3).to(tl.int32)
    place = tl.minimum(tl.maximum(at - reach, 0), results - 1)
    position = place.to(tl.float64) * tl.load(own + 2)
    before = tl.minimum(position.to(tl.int32), tl.maximum(samples - 2, 0))
    rest = (position - before.to(tl.float64)).to(tl.float32)
    held = (position <= (samples - 1).to(tl.float64)) & (at < results + 2 * reach)
    inside = at < count
    tl.store(index + side * count + at, tl.where(held, before + start, -1), mask=inside)
    tl.store(fraction + side * count + at, tl.where(held, rest, 0.0), mask=inside)


@triton.jit
def byte(word, k: tl.constexpr):  # type: ignore[no-untyped-def]
    return (word >> (8 * k)) & 255


@triton.jit
def biased(word, k: tl.constexpr):  # type: ignore[no-untyped-def]
    """Byte k of a word as a float, plus 2²³: its bits are the float's last."""
    return (byte(word, k) | 0x4B000000).to(tl.float32, bitcast=True)


@triton.jit
def as_float(level):  # type: ignore[no-untyped-def]
    """A grey level as a float."""
    return biased(level.to(tl.int32), 0) - 8388608.0


@triton.jit
def word(a, b, c, d):  # type: ignore[no-untyped-def]
    return a | (b << 8) | (c << 16) | (d << 24)


@triton.jit
def pixels_kernel(planes, out, words, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Three planes of `words` words of four values to pixels of three values."""
    n, at = part(BLOCK)
    inside = at < words
    here, there = planes + n * words * 3 + at, out + (n * words + at) * 3
    r = tl.load(here, mask=inside, other=0)
    g = tl.load(here + words, mask=inside, other=0)
    b = tl.load(here + 2 * words, mask=inside, other=0)
    tl.store(there, word(byte(r, 0), byte(g, 0), byte(b, 0), byte(r, 1)), mask=inside)
    tl.store(there + 1, word(byte(g, 1), byte(b, 1), byte(r, 2), byte(g, 2)), mask=inside)
    tl.store(there + 2, word(byte(b, 2), byte(r, 3), byte(g, 3), byte(b, 3)), mask=inside)


@triton.jit
def planes_kernel(pixels, out, words, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The inverse of `pixels_kernel`."""
    n, at = part(BLOCK)
    inside = at < words
    here, there = pixels + (n * words + at) * 3, out + n * words * 3 + at
    a = tl.load(here, mask=inside, other=0)
    b = tl.load(here + 1, mask=inside, other=0)
    c = tl.load(here + 2, mask=inside, other=0)
    tl.store(there, word(byte(a, 0), byte(a, 3), byte(b, 2), byte(c, 1)), mask=inside)
    tl.store(there + words, word(byte(a, 1), byte(b, 0), byte(b, 3), byte(c, 2)), mask=inside)
    tl.store(there + 2 * words, word(byte(a, 2), byte(b, 1), byte(c, 0), byte(c, 3)), mask=inside)


@triton.jit
def between(a, b, c, d, f, g, k: tl.constexpr):  # type: ignore[no-untyped-def]
    """Byte k of four words, bilinear: rows are blended first, then the blend is read."""
    upper_left, upper_right = biased(a, k), biased(c, k)
    left = (upper_left - 8388608.0) + (biased(b, k) - upper_left) * f
    right = (upper_right - 8388608.0) + (biased(d, k) - upper_right) * f
    return left + (right - left) * g


@triton.jit
def store_mean(target, total, share, guard, inside):  # type: ignore[no-untyped-def]
    level = tl.minimum(total * share + guard, 255.0)
    tl.store(target, level.to(tl.int32).to(tl.uint8), mask=inside)


@triton.jit
def value_at(pixel, c, pixels, channels: tl.constexpr, PLANAR: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where in an image of `pixels` pixels a pixel's channel lies."""
    return c * pixels + pixel if PLANAR else pixel * channels + c


@triton.jit
def packed_kernel(image, out, pixels, PLANAR: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Three values as one word."""
    n, at = part(BLOCK)
    inside = at < pixels
    start = image + n * pixels * 3
    r = tl.load(start + value_at(at, 0, pixels, 3, PLANAR), mask=inside, other=0).to(tl.int32)
    g = tl.load(start + value_at(at, 1, pixels, 3, PLANAR), mask=inside, other=0).to(tl.int32)
    b = tl.load(start + value_at(at, 2, pixels, 3, PLANAR), mask=inside, other=0).to(tl.int32)
    tl.store(out + n * pixels + at, r | (g << 8) | (b << 16), mask=inside)


@triton.jit(do_not_specialize=["layers", "height", "copies", "share", "guard"])
def zoom_kernel(  # type: ignore[no-untyped-def]
    source, out, rows, down, last_row, columns, across, last_column, sizes, layers, height, width, copies,
    share, guard,
    channels: tl.constexpr, PLANAR: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`copies` of the image and its enlargements added up: tables of layers × rows and columns, −1 outside.

    A pixel of `source` is one element: a grey level, or a word of three. RAGGED images have their own tables.
    """
    n, y, x = row_part(width, BLOCK)
    inside = x < width
    if RAGGED:
        if y >= tl.load(sizes + 2 * n):
            return
        rows, down, last_row = rows + n * layers * height, down + n * layers * height, last_row + n * layers
        columns, across = columns + n * layers * width, across + n * layers * width
        last_column = last_column + n * layers
    start = source + n * height * width
    own = tl.load(start + y * width + x, mask=inside, other=0).to(tl.int32)
    first, second, third = as_float(own) * copies, as_float(own >> 8) * copies, as_float(own >> 16) * copies
    for layer in range(layers):
        i, f = tl.load(rows + layer * height + y), tl.load(down + layer * height + y)
        j = tl.load(columns + layer * width + x, mask=inside, other=-1)
        g = tl.load(across + layer * width + x, mask=inside, other=0.0)
        held = (i >= 0) & (j >= 0)
        upper = start + i * width
        lower = start + tl.minimum(i + 1, tl.load(last_row + layer)) * width
        right = tl.minimum(j + 1, tl.load(last_column + layer))
        a = tl.load(upper + j, mask=held, other=0).to(tl.int32)
        b = tl.load(lower + j, mask=held, other=0).to(tl.int32)
        c = tl.load(upper + right, mask=held, other=0).to(tl.int32)
        d = tl.load(lower + right, mask=held, other=0).to(tl.int32)
        first += between(a, b, c, d, f, g, 0)  # 0 where nothing is held
        if channels == 3:
            second += between(a, b, c, d, f, g, 1)
            third += between(a, b, c, d, f, g, 2)
    target, pixel, pixels = out + n * height * width * channels, y * width + x, height * width
    store_mean(target + value_at(pixel, 0, pixels, channels, PLANAR), first, share, guard, inside)
    if channels == 3:
        store_mean(target + value_at(pixel, 1, pixels, 3, PLANAR), second, share, guard, inside)
        store_mean(target + value_at(pixel, 2, pixels, 3, PLANAR), third, share, guard, inside)


@triton.jit
def folded(place, length):  # type: ignore[no-untyped-def]
    """An integer position mirrored into 0..length−1, the edge counted twice."""
    period = 2 * length
    place = place % period  # which keeps the sign
    place = tl.where(place < 0, place + period, place)
    return tl.minimum(place, period - 1 - place)


@triton.jit
def warped(a, b, c, d, f, g, guard, k: tl.constexpr):  # type: ignore[no-untyped-def]
    """Byte k of four words, bilinear, truncated: read along rows first, then blended."""
    first, third = biased(a, k), biased(c, k)
    upper = (first - 8388608.0) + (biased(b, k) - first) * g
    lower = (third - 8388608.0) + (biased(d, k) - third) * g
    return ((upper + (lower - upper) * f) + guard).to(tl.int32).to(tl.uint8)


@triton.jit(do_not_specialize=["tall", "guard"])
def displace_kernel(  # type: ignore[no-untyped-def]
    source, out, dy, dx, sizes, tall, wide, guard,
    channels: tl.constexpr, PLANAR: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Every pixel read from elsewhere, bilinear; `source` as in `zoom_kernel`."""
    n, y, x = row_part(wide, BLOCK)
    height, width = size_of(sizes, n, tall, wide, RAGGED)
    if RAGGED:
        if y >= height:
            return
    inside = x < width
    at = (n * tall + y) * wide + x
    v = y.to(tl.float32) + tl.load(dy + at, mask=inside, other=0.0)
    u = x.to(tl.float32) + tl.load(dx + at, mask=inside, other=0.0)
    whole_v, whole_u = tl.floor(v), tl.floor(u)
    f, g = v - whole_v, u - whole_u
    i, j = whole_v.to(tl.int32), whole_u.to(tl.int32)
    upper, lower = folded(i, height) * wide, folded(i + 1, height) * wide
    left, right = folded(j, width), folded(j + 1, width)
    start = source + n * tall * wide
    a, b = tl.load(start + upper + left).to(tl.int32), tl.load(start + upper + right).to(tl.int32)
    c, d = tl.load(start + lower + left).to(tl.int32), tl.load(start + lower + right).to(tl.int32)
    target = out + n * tall * wide * channels
    for k in tl.static_range(channels):
        place = value_at(y * wide + x, k, tall * wide, channels, PLANAR)
        tl.store(target + place, warped(a, b, c, d, f, g, guard, k), mask=inside)


@triton.jit(do_not_specialize=["side", "across", "height", "width"])
def patches_kernel(  # type: ignore[no-untyped-def]
    source, out, kernels, side, across, height, width,
    channels: tl.constexpr, PATCH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Correlation with the kernel of a pixel's patch; `across` patches lie side by side."""
    n, at = part(BLOCK)
    count = height * width * channels
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


@triton.jit(do_not_specialize=["top", "left", "passes", "rows", "columns", "step", "tall"])
def scatter_kernel(  # type: ignore[no-untyped-def]
    image, out, shifts, sizes, top, left, passes, rows, columns, step, tall, wide,
    channels: tl.constexpr, PLANAR: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The pixel that each pixel shows after all are overwritten in turn, pass by pass.

    `shifts` is pairs (dx, dy), `step` of them for each image. A pixel's origin is found from the last pass
    back to the first. Of RAGGED images all but `rows` rows and `columns` columns are overwritten.
    """
    n, at = part(BLOCK)
    y, x = at // wide, at % wide
    height, width = size_of(sizes, n, tall, wide, RAGGED)
    inside = at < tall * wide
    if RAGGED:
        rows, columns = height - rows, width - columns
        inside = (y < height) & (x < width)
    # Shifts lie in the order of overwriting: from the bottom right.
    last = shifts + n * step + (passes - 1) * rows * columns + (rows + top - 1) * columns + columns + left - 1
    for _ in range(passes):
        moving = inside & (y >= top) & (y < top + rows) & (x >= left) & (x < left + columns)
        while tl.max(moving.to(tl.int32), axis=0) > 0:
            pair = tl.load(last - y * columns - x, mask=moving, other=0).to(tl.int32)
            dx, dy = (pair << 24) >> 24, pair >> 8
            y, x = y + dy, x + dx
            later = (dy > 0) | ((dy == 0) & (dx > 0))
            moving = moving & later & (y >= top) & (y < top + rows) & (x >= left) & (x < left + columns)
        last -= rows * columns
    start, pixels = n * tall * wide * channels, tall * wide
    for c in tl.static_range(channels):
        here = image + start + value_at(y * wide + x, c, pixels, channels, PLANAR)
        there = out + start + value_at(at, c, pixels, channels, PLANAR)
        tl.store(there, tl.load(here, mask=inside, other=0), mask=inside)


@triton.jit(do_not_specialize=["count"])
def squared_differences_kernel(before, after, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The sum of squared differences of two images' bytes; a block's fits in 32 bits."""
    n, at = part(BLOCK)
    one = tl.load(before + n * count + at, mask=at < count, other=0).to(tl.int32)
    two = tl.load(after + n * count + at, mask=at < count, other=0).to(tl.int32)
    tl.atomic_add(out + n, tl.sum((one - two) * (one - two), axis=0).to(tl.int64))


@triton.jit(do_not_specialize=["height", "width", "pad"])
def fit_kernel(  # type: ignore[no-untyped-def]
    places, rows, down, columns, across, out, height, width, pad,
    TAPS: tl.constexpr, LINEAR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Images anywhere in memory, resized by tables of pixels and weights into planes of N × 3 × H × W."""
    n = tl.program_id(1).to(tl.int64)
    blocks = tl.cdiv(width, BLOCK)
    line = tl.program_id(0) // blocks
    plane, y = line // height, line % height
    x = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    held = x < width
    own = places + 5 * n
    source = tl.load(own).to(tl.pointer_type(tl.uint8)) + plane * tl.load(own + 3)
    row_step, column_step, turned = tl.load(own + 1), tl.load(own + 2), tl.load(own + 4)
    row, column = (n * height + y) * TAPS, (n * width + x) * TAPS
    inside = held & (tl.load(rows + row) >= 0) & (tl.load(columns + column, mask=held, other=-1) >= 0)
    total = tl.zeros((BLOCK,), tl.int32)
    for outer in range(TAPS):
        inner_total = tl.zeros((BLOCK,), tl.int32)
        for inner in range(TAPS):
            j = tl.where(turned != 0, inner, outer)
            i = tl.where(turned != 0, outer, inner)
            at_row = tl.maximum(tl.load(rows + row + j), 0)
            at_column = tl.maximum(tl.load(columns + column + i, mask=inside, other=0), 0)
            value = tl.load(source + at_row * row_step + at_column * column_step, mask=inside, other=0)
            weight = tl.load(across + column + i, mask=inside, other=0)
            weight = tl.where(turned != 0, tl.load(down + row + j), weight)
            inner_total += value.to(tl.int32) * weight
        weight = tl.load(across + column + outer, mask=inside, other=0)
        weight = tl.where(turned != 0, weight, tl.load(down + row + outer))
        if LINEAR:
            total += ((inner_total >> 4) * weight) >> 16
        else:
            total += ((inner_total + (1 << 21)) >> 22) * weight
    made = (total + 2) >> 2 if LINEAR else (total + (1 << 21)) >> 22
    place = out + ((n * 3 + plane) * height + y) * width + x
    tl.store(place, tl.where(inside, made, pad).to(tl.uint8), mask=held)
