"""Launches of the kernels for layers, fields, blocks, JPEG and relief; each function has a twin in torch."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu.tensors import dense, keep_on_device, planar, to_device
from stormproof.imaging.gpu.triton_kernels import BLOCK, EXACT, grid, load_later, own, positions, signed
from stormproof.imaging.plans import TINY

_source, _moves, _mixing = map(load_later, ("triton_source", "triton_moves", "triton_mixing"))
_squares, _relief = map(load_later, ("triton_squares", "triton_relief"))


def uniforms(keys: Tensor, stream: int, count: int, scale: float, low: float) -> Tensor:
    """(bits + ½)·scale + low; N × count."""
    return _field(keys, stream, count, keys, scale, low, torch.float32, kind=0)


def chosen(keys: Tensor, stream: int, count: int, values: Tensor) -> Tensor:
    """values[bits]; N × count."""
    return _field(keys, stream, count, values, 0.0, 0.0, torch.float32, kind=1)


def integers(keys: Tensor, stream: int, count: int, low: int, high: int) -> Tensor:
    """Integers from `low` to `high` − 1; N × count, int8."""
    return _field(keys, stream, count, keys, high - low, low, torch.int8, kind=2)


def _field(
    keys: Tensor,
    stream: int,
    count: int,
    values: Tensor,
    scale: float,
    low: float,
    dtype: torch.dtype,
    kind: int,
) -> Tensor:
    out = torch.empty((len(keys), count), dtype=dtype, device=keys.device)
    _mixing().field_kernel[grid(count, 8 * 256, len(keys))](
        out, keys, values, signed(stream), count, scale, low, KIND=kind, BLOCK=256, **EXACT
    )
    return out


def uniforms_ragged(keys: Tensor, stream: int, numbers: Tensor, *, sizes: Any) -> Tensor:
    """(bits + ½)·scale + low, padded; `numbers` is N × (scale, low)."""
    return _field_ragged(keys, stream, numbers, sizes, kind=0)


def chosen_ragged(keys: Tensor, stream: int, values: Tensor, *, sizes: Any) -> Tensor:
    """values[bits], padded."""
    return _field_ragged(keys, stream, values, sizes, kind=1)


def _field_ragged(keys: Tensor, stream: int, table: Tensor, sizes: Any, kind: int) -> Tensor:
    tall, wide = sizes.whole
    out = torch.empty((len(keys), tall, wide), dtype=torch.float32, device=keys.device)
    _mixing().field_ragged_kernel[grid(tall * wide, 8 * 256, len(keys))](
        out, keys, table, sizes.table, signed(stream), tall, wide, KIND=kind, BLOCK=256, **EXACT
    )
    return out


_LOW = 7  # levels of a cloud, up to 128×128, in one launch; one program computes an image's


def plasma(keys: Tensor, levels: tuple[Any, ...], size: tuple[int, int]) -> Tensor:
    """The upper left part, of `size`, of the cloud of `fields.Level`s; N × size."""
    out = torch.empty((len(keys), *size), dtype=torch.float32, device=keys.device)
    _cloud(keys, levels, size, out, keep_on_device(_numbers(len(keys))))
    return out


def plasma_ragged(keys: Tensor, levels: tuple[Any, ...], counts: Any, *, sizes: Any) -> Tensor:
    """The same for images of several sizes; `counts` says how many of the levels each takes."""
    out = torch.zeros((len(keys), *sizes.whole), dtype=torch.float32, device=keys.device)
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        places = to_device(rows)
        size = min(sizes.whole[0], 1 << count), min(sizes.whole[1], 1 << count)
        _cloud(keys if len(rows) == len(keys) else keys[places], levels[:count], size, out, places)
    return out


@lru_cache(maxsize=16)
def _numbers(count: int) -> npt.NDArray[np.int64]:
    return np.arange(count)


def _cloud(keys: Tensor, levels: tuple[Any, ...], size: tuple[int, ...], out: Tensor, places: Tensor) -> None:
    """Clouds by diamond–square, stored as images `places` of `out`."""
    images, first = len(keys), min(_LOW, len(levels))
    streams, numbers = (keep_on_device(table) for table in _tables(levels))
    side = 1 << first
    cloud = torch.empty((images, 2, side, side), dtype=torch.float32, device=keys.device)
    _mixing().seed_kernel[(images,)](
        cloud, keys, streams, numbers, first, side, BLOCK=1024, num_warps=8, **EXACT
    )
    cloud, extremes = cloud[:, first % 2], None
    for i in range(first, len(levels)):
        last, launch = i + 1 == len(levels), grid(side * side, 8 * 128, images)
        shape = size if last else (2 * side, 2 * side)
        middle, fine = (cloud.new_empty((images, *new)) for new in ((side, side), shape))
        extremes = cloud.new_empty((2, images, launch[0]))
        given = keys, streams[i], numbers[i], cloud.stride(0)
        shared = {"SIDE": side, "BLOCK": 128, **EXACT}
        _mixing().centre_kernel[launch](cloud, middle, *given, **shared)
        _mixing().weave_kernel[launch](
            cloud, middle, fine, extremes, *given, *shape, extremes.stride(0), LAST=last, **shared
        )
        cloud, side = fine, 2 * side
    low, high = (cloud.flatten(1),) * 2 if extremes is None else extremes.unbind(0)
    _mixing().stretch_kernel[grid(size[1], 256, images, size[0])](
        cloud, out, low.amin(1), high.amax(1), places, *size, cloud.stride(0), cloud.stride(1),
        *out.shape[1:], TINY, BLOCK=256, **EXACT,
    )  # fmt: skip


@lru_cache(maxsize=32)
def _tables(levels: tuple[Any, ...]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The three streams of every level, and its scale, low and gain."""
    streams = np.array([level.streams for level in levels], np.uint32).view(np.int32)
    return streams, np.array([level[1:] for level in levels], np.float32)


def snowfall(
    seeds: Tensor, tables: tuple[Tensor, ...], threshold: float, paths: Tensor, size: tuple[int, int]
) -> Tensor:
    """Flakes with borders, then their streaks; `tables` and `paths` as in `fields.snowfall`."""
    return _snowfall(seeds, tables, threshold, paths, size, None, None)


def snowfall_ragged(
    seeds: Tensor, known: Any, plans: Tensor, large: tuple[int, int], reach: int, threshold: float,
    paths: Tensor, *, sizes: Any,
) -> Tensor:  # fmt: skip
    """The same for images of several sizes; `known` are those of the seeds, `plans` rows' and columns'."""
    tall, wide = (positions(plans[i], side + 2 * reach, reach) for i, side in enumerate(large))
    return _snowfall(seeds, (*tall, *wide), threshold, paths, sizes.whole, known, sizes)


def _snowfall(
    seeds: Tensor, tables: tuple[Tensor, ...], threshold: float, paths: Tensor, size: tuple[int, int],
    known: Any, sizes: Any,
) -> Tensor:  # fmt: skip
    seeds = seeds.contiguous()
    images, height, width = seeds.shape
    tall, wide = tables[0].shape[-1], tables[2].shape[-1]
    flakes = seeds.new_empty(images * tall * wide + BLOCK)  # streaks read past the end, but use none of it
    table, ragged = own(known, seeds)
    _mixing().flakes_kernel[grid(wide, 256, images, tall)](
        seeds, flakes, *tables, table, height, width, tall, wide, threshold, RAGGED=ragged, BLOCK=256, **EXACT
    )
    out = seeds.new_empty((images, *size))
    table, ragged = own(sizes, seeds)
    _source().streak_kernel[grid(size[1], 256, images, size[0])](
        flakes, out, paths, table, paths.shape[1], *size, wide, tall, RAGGED=ragged, BLOCK=256, **EXACT
    )
    return out


def layered(image: Tensor, layer: Tensor, numbers: Tensor, colour: Tensor, guard: float) -> Tensor:
    """`layer` is N × H × W, or 1 × H × W for all; `numbers` N × 3: gain, scale and offset of each image."""
    image, layer = dense(image), layer.contiguous()
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    _mixing().layer_kernel[grid(height * width, BLOCK, images)](
        image, out, layer, numbers.contiguous(), colour, height * width,
        height * width if len(layer) == images else 0, guard,
        channels=channels, PLANAR=planar(image), BLOCK=BLOCK, **EXACT,
    )  # fmt: skip
    return out


def whitened(
    image: Tensor, layer: Any, keep: float, lose: float, luma: tuple[float, ...], guard: float,
    *, sizes: Any = None,
) -> Tensor:  # fmt: skip
    """`layer` is a `fields.BothWays`; the kernel adds its two halves up itself."""
    image = dense(image)
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    table, ragged = own(sizes, image)
    _mixing().whiten_kernel[grid(height * width, BLOCK, images)](
        image, out, layer.layer.contiguous(), table, height * width, width, keep, lose, *luma, guard,
        channels=channels, PLANAR=planar(image), RAGGED=ragged, BLOCK=BLOCK, **EXACT,
    )  # fmt: skip
    return out


def mixed(image: Tensor, parts: Any, a: float, b: float) -> Tensor:
    """a·image + b·parts; the kernel reads the `parts` where they lie and never copies them."""
    image = dense(image)
    out = torch.empty_like(image)
    images, height, width, _ = image.shape
    _mixing().mix_kernel[grid(width, 128, images, height)](
        image, out, to_device(parts.places()), keep_on_device(_doubles(a, b)), height, width,
        PLANAR=planar(image), BLOCK=128, num_warps=1, **EXACT,
    )  # fmt: skip
    return out


def mixed_ragged(image: Tensor, parts: Any, a: float, b: float, *, sizes: Any) -> Tensor:
    """The same with `warps.EnlargedParts`, which the kernel enlarges itself: each size has its own."""
    out = torch.empty_like(image)
    images, tall, wide, _ = image.shape
    count, sides = max(tall, wide), 2 * images
    before = torch.empty((sides, count), dtype=torch.int32, device=image.device)
    taps = torch.empty((sides, count, 4), dtype=torch.float32, device=image.device)
    plans, textures = to_device(parts.plans()), to_device(parts.textures())
    _mixing().cubic_kernel[grid(count, 256, 1, sides)](before, taps, plans, count, BLOCK=256, **EXACT)
    _mixing().mix_enlarged_kernel[grid(wide, 128, images, tall)](
        image, out, textures, before, taps, keep_on_device(_doubles(a, b)), sizes.table, tall, wide, count,
        BLOCK=128, **EXACT,
    )  # fmt: skip
    return out


@lru_cache(maxsize=32)
def _doubles(*numbers: float) -> npt.NDArray[np.float64]:
    return np.array(numbers)


def by_brightest(image: Tensor, table: Tensor) -> Tensor:
    """`table` is 256 × 256."""
    image = dense(image)
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    _mixing().brightest_kernel[grid(height * width, BLOCK, images)](
        image, out, table, height * width, channels=channels, PLANAR=planar(image), BLOCK=BLOCK
    )
    return out


def looked_up(image: Tensor, tables: Tensor) -> Tensor:
    """`tables` is N × C × 256, or 1 × C × 256 for all."""
    image, tables = dense(image), tables.contiguous()
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    step = tables[0].numel() if len(tables) == images else 0
    _mixing().look_up_kernel[grid(height * width, BLOCK, images)](
        image, out, tables, height * width, step, channels=channels, PLANAR=planar(image), BLOCK=BLOCK
    )
    return out


def sums(image: Tensor) -> Tensor:
    """The sum of each channel; N × C, int64."""
    image = dense(image)
    images, height, width, channels = image.shape
    out = torch.zeros((images, channels), dtype=torch.int64, device=image.device)
    _mixing().sum_kernel[grid(height * width, 4 * BLOCK, images)](
        image, out, height * width, channels=channels, PLANAR=planar(image), BLOCK=4 * BLOCK
    )
    return out


def means(source: Tensor, axis: int, first: Tensor, last: Tensor, factors: Tensor, most: int) -> Tensor:
    """Means of the values first … last − 1 along an axis; no block has more than `most`."""
    source = source.contiguous()
    shape = list(source.shape)
    large, shape[axis] = shape[axis], len(first)
    out = source.new_empty(shape)
    count, step = out[0].numel(), prod(source.shape[axis + 1 :])
    _squares().means_kernel[grid(count, BLOCK, len(source))](
        source, out, first, last, factors, most, step, len(first), large, count, BLOCK=BLOCK
    )
    return out


def pixelated(source: Tensor, sides: Tensor, most: int, planes: int, *, sizes: Any) -> Tensor:
    """Block means of images of several sizes, painted back; N × H × W × 1.

    `sides` is, for each image's height and width, the number of blocks and of pixels; no block has more than
    `most` pixels a side.
    """
    source = source.contiguous()
    images, tall, wide, _ = source.shape
    count, length = len(sides), max(tall, wide)
    edges = torch.empty((count, length, 2), dtype=torch.int32, device=source.device)
    factors = torch.empty((count, length), dtype=torch.int32, device=source.device)
    index = torch.zeros((count, length), dtype=torch.int32, device=source.device)
    _squares().blocks_kernel[(count,)](edges, factors, index, sides, length, BLOCK=128, num_warps=1, **EXACT)
    values, launch = source, grid(wide, 256, images, tall)
    for axis in (1, 0):
        means = torch.empty_like(source)
        _squares().means_ragged_kernel[launch](
            values, means, edges, factors, sides, sizes.table, length, most, tall, wide,
            AXIS=axis, PLANES=planes, BLOCK=256,
        )  # fmt: skip
        values = means
    out = torch.empty_like(source)
    _moves().gather_kernel[launch](
        values,
        out,
        index,
        index[1:],
        tall,
        wide,
        tall,
        wide,
        2 * length,
        2 * length,
        PLANES=planes,
        BLOCK=256,
    )
    return out


def requantised(plane: Tensor, matrix: npt.NDArray[np.int64], steps: npt.NDArray[np.int32]) -> Tensor:
    """N × H × W samples, uint8, both sides multiples of 8, through the DCT and back."""
    plane = plane.contiguous()
    out = torch.empty_like(plane)
    blocks, across = plane.numel() // 64, plane.shape[2] // 8
    _squares().requantise_kernel[(-(-blocks // 128),)](
        plane.view(torch.int32), out.view(torch.int32),
        keep_on_device(steps), keep_on_device(_inverses(steps.tobytes())),
        blocks, across, M=_entries(matrix.tobytes()), BLOCK=128,
    )  # fmt: skip
    return out


@lru_cache(maxsize=32)
def _inverses(steps: bytes) -> npt.NDArray[np.int32]:
    """2³² / (8 · step), rounded up; 2²⁹ at most."""
    eighths = 8 * np.frombuffer(steps, np.int32).astype(np.int64)
    return (-((-1 << 32) // eighths)).astype(np.int32)


@lru_cache(maxsize=1)
def _entries(matrix: bytes) -> tuple[int, ...]:
    return tuple(np.frombuffer(matrix, np.int64).tolist())


def jpeg(
    image: Tensor,
    matrix: npt.NDArray[np.int64],
    luma_steps: npt.NDArray[np.int32],
    chroma_steps: npt.NDArray[np.int32],
    *,
    sizes: Any = None,
) -> Tensor:
    """N × H × W × 3 through JPEG: planes, DCT and back, colours."""
    image = dense(image)
    flat = planar(image)
    images, height, width, _ = image.shape
    luma = image.new_empty((images, -(-height // 8) * 8, -(-width // 8) * 8))
    half = -(-height // 2)
    chroma = image.new_empty((2 * images, -(-half // 8) * 8, -(-width // 16) * 8))  # blue, then red
    table, ragged = own(sizes, image)
    _squares().ycc_kernel[grid(chroma[0].numel(), 512, images)](
        image, luma.view(torch.int16), chroma, table, height, width, *luma.shape[1:], *chroma.shape[1:],
        images, PLANAR=flat, RAGGED=ragged, BLOCK=512,
    )  # fmt: skip
    luma, chroma = requantised(luma, matrix, luma_steps), requantised(chroma, matrix, chroma_steps)
    out = torch.empty_like(image)
    _squares().colours_kernel[grid(height * width, BLOCK, images)](
        luma, chroma, out, table, height, width, luma[0].numel(), luma.shape[2], chroma[0].numel(),
        chroma.shape[2], images, NARROW=-(-width // 2) <= 2, PLANAR=flat, RAGGED=ragged, BLOCK=BLOCK,
    )  # fmt: skip
    return out


_ROW = 256  # pixels of a row in one program


def peaks(layer: Tensor, low: int, high: int) -> Tensor:
    """Candidates for edges of N × H × W: 2, 1 or 0."""
    layer = layer.contiguous()
    out = torch.empty_like(layer)
    images, height, width = layer.shape
    _relief().peaks_kernel[grid(width, _ROW, images, height)](
        layer, out, height, width, low, high, BLOCK=_ROW
    )
    return out


def linked(peaks: Tensor) -> Tensor:
    """Edges, 1 or 0. Waits for the device after each launch."""
    state = peaks.clone()
    images, height, width = state.shape
    growing = True
    while growing:
        grown = torch.zeros(1, dtype=torch.int32, device=state.device)
        _relief().link_kernel[grid(width, 128, images, -(-height // 16))](
            state, grown, height, width, ROWS=16, BLOCK=128
        )
        growing = bool(grown)
    return state >> 1


def near(edge: Tensor, chamfer: npt.NDArray[np.int32]) -> Tensor:
    """Mean distances over 3×3 pixels, uint8; `chamfer` is far × (far + 1)."""
    images, height, width = edge.shape
    launch, far = grid(width, _ROW, images, height), len(chamfer)
    beside, out = torch.empty_like(edge), torch.empty_like(edge)
    distance = torch.empty(edge.shape, dtype=torch.int32, device=edge.device)
    _relief().beside_kernel[launch](edge, beside, height, width, FAR=far, BLOCK=_ROW)
    _relief().distance_kernel[launch](
        beside, distance, keep_on_device(chamfer), height, width, FAR=far, BLOCK=_ROW
    )
    _relief().near_kernel[launch](distance, out, height, width, BLOCK=_ROW)
    return out


def counts(near: Tensor, levels: int) -> Tensor:
    """How often each of up to 31 levels occurs; N × levels."""
    out = torch.zeros((len(near), levels), dtype=torch.int32, device=near.device)
    count = near[0].numel()
    _relief().count_kernel[grid(count, 4 * BLOCK, len(near))](
        near, out, count, levels, BINS=32, BLOCK=4 * BLOCK
    )
    return out


def embossed(near: Tensor, levels: Tensor) -> Tensor:
    """N × H × W through tables N × levels, embossed and averaged; float32."""
    images, height, width = near.shape
    launch = grid(width, _ROW, images, height)
    light = torch.empty_like(near)
    out = torch.empty(near.shape, dtype=torch.float32, device=near.device)
    _relief().emboss_kernel[launch](
        near, light, levels.contiguous(), height, width, levels.shape[1], BLOCK=_ROW
    )
    _relief().mean_kernel[launch](light, out, height, width, BLOCK=_ROW)
    return out
