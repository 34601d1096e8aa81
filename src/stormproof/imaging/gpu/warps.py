"""Resampling: zooms, displacement fields, scattered pixels, bicubic enlargement."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.imaging.gpu import ragged, triton_kernels
from stormproof.imaging.gpu.batch import Batch, Lazy, as_batch
from stormproof.imaging.gpu.draws import Packed
from stormproof.imaging.gpu.each import BySize, is_mixed
from stormproof.imaging.gpu.ragged import Ragged
from stormproof.imaging.gpu.tensors import current_device, keep_on_device, root, to_device
from stormproof.imaging.plans import (
    GUARD,
    MOST_SAMPLES,
    STREAK_BITS,
    WHOLE,
    corner_positions,
    cubic_taps,
    picked,
    zoom_crops,
)

_GUARD = float(GUARD)


@lru_cache(maxsize=256)
def positions(count: int, source: int, span: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Positions of the corner-aligned samples that lie inside: the sample before, and the fraction."""
    index, fraction = np.zeros(count, np.int32), np.zeros(count, np.float32)
    inside = corner_positions(count, source, span, index, fraction)
    return index[:inside], fraction[:inside]


def side_plans(start: Any, samples: Any, span: Any, results: Any) -> npt.NDArray[np.float64]:
    """`plans.corner_positions` of many sides, as `triton_kernels.positions` takes them; … × 4."""
    step = np.where(span > 1, (samples - 1) / np.maximum(span - 1, 1), 0.0)
    return np.stack(np.broadcast_arrays(start, samples, step, results), axis=-1).astype(np.float64)


def zoom_mean(image: Batch, factors: npt.NDArray[np.float64]) -> Batch:
    """Mean of the image and its central enlargements by each factor, truncated."""
    return ragged.apply(_zoomed, _zoomed_in_torch, image, factors)


def _zoomed(data: Tensor, factors: npt.NDArray[np.float64], *, sizes: ragged.Sizes | None = None) -> Tensor:
    larger = factors[factors != 1]  # an enlargement by 1 is the image itself
    each = np.array([data.shape[1:3]], np.int64) if sizes is None else sizes.each
    plans, last = _zoom_plan(each.tobytes(), larger.tobytes())
    copies = 1 + len(factors) - len(larger)
    return triton_kernels.zoom(data, keep_on_device(plans), keep_on_device(last), copies, _GUARD, sizes=sizes)


def _zoomed_in_torch(data: Tensor, factors: npt.NDArray[np.float64]) -> Tensor:
    height, width = data.shape[1:3]
    crops, spans = zoom_crops((height, width), factors)
    total = data.to(torch.float32)
    for crop, span in zip(crops.tolist(), spans.tolist(), strict=True):
        down, across = positions(height, crop[0], span[0]), positions(width, crop[1], span[1])
        top, left = (height - crop[0]) // 2, (width - crop[1]) // 2
        strip = data[:, top:, left : left + crop[1]]  # the row below the crop belongs to the image
        total[:, : len(down[0]), : len(across[0])] += _stretched(strip, down, across)
    share = float(np.float32(1) / np.float32(len(crops) + 1))
    return (total * share + _GUARD).clamp(max=255).to(torch.uint8)


def _stretched(source: Tensor, down: tuple[Any, Any], across: tuple[Any, Any]) -> Tensor:
    """Bilinear: rows are blended first, then sampled along the blend."""
    i, j = keep_on_device(down[0]), keep_on_device(across[0])
    f, g = keep_on_device(down[1])[:, None, None], keep_on_device(across[1])[:, None]
    upper = source.index_select(1, i).to(torch.float32)
    lower = source.index_select(1, (i + 1).clamp(max=source.shape[1] - 1)).to(torch.float32)
    line = upper + (lower - upper) * f
    left = line.index_select(2, j)
    right = line.index_select(2, (j + 1).clamp(max=source.shape[2] - 1))
    return left + (right - left) * g


@lru_cache(maxsize=64)
def _zoom_plan(sizes: bytes, factors: bytes) -> tuple[Any, ...]:
    """Of rows and of columns: plans of sides, sizes × factors × 4, and the last sample of each."""
    each, by = np.frombuffer(sizes, np.int64).reshape(-1, 2), np.frombuffer(factors)
    crops, spans = (table.reshape(len(each), len(by), 2) for table in zoom_crops(each, by))
    starts = (each[:, None] - crops) // 2
    plans = [side_plans(starts[..., i], crops[..., i], spans[..., i], each[:, None, i]) for i in (0, 1)]
    last = np.broadcast_to(each[:, :1] - 1, crops.shape[:2]), starts[..., 1] + crops[..., 1] - 1
    return np.stack(plans), np.stack(last).astype(np.int32)


def _folded(place: Tensor, length: int) -> Tensor:
    """Mirror an integer position into 0..length−1, repeating the edge."""
    place = place % (2 * length)
    return torch.minimum(place, 2 * length - 1 - place)


def displace(image: Batch, dy: Batch, dx: Batch) -> Batch:
    """Read each pixel from (y + dy, x + dx), bilinear, mirrored at the borders, truncated."""
    return ragged.apply(triton_kernels.displace, _displaced, image, dy, dx, _GUARD)


def _displaced(data: Tensor, dy: Tensor, dx: Tensor, guard: float) -> Tensor:
    height, width, channels = data.shape[1:]
    rows, columns = (torch.arange(side, device=data.device, dtype=torch.float32) for side in (height, width))
    v, u = dy + rows[:, None], dx + columns
    i, j = torch.floor(v), torch.floor(u)
    f, g = (v - i)[..., None], (u - j)[..., None]
    i, j = i.to(torch.int64), j.to(torch.int64)
    i, j, below, right = _folded(i, height), _folded(j, width), _folded(i + 1, height), _folded(j + 1, width)
    flat = data.reshape(len(data), height * width, channels)

    def read(y: Tensor, x: Tensor) -> Tensor:
        place = (y * width + x).reshape(len(y), -1, 1).expand(-1, -1, channels)
        return flat.gather(1, place).reshape(data.shape).to(torch.float32)

    a, c = read(i, j), read(below, j)
    upper = a + (read(i, right) - a) * g
    lower = c + (read(below, right) - c) * g
    return ((upper + (lower - upper) * f) + guard).to(torch.uint8)


def scatter(image: Batch, shifts: Batch, reach: int) -> Batch:
    """Overwrite pixels in turn, from the bottom right, by the pixel (dx, dy) = shifts[n, i, j] away.

    Row i of `shifts` belongs to image row H − reach − i, column j likewise; n counts passes. A pixel that
    reads one already overwritten gets what that one got, so each pixel's origin is found by following such
    links, through the last pass first, and all pixels move at once.
    """
    height, width = image.shape[:2]
    passes, rows, columns = shifts.shape[:3]
    if not (passes and rows and columns):
        return image.copy()
    corner = height - reach - rows + 1, width - reach - columns + 1
    if isinstance(image, Ragged):
        return _scattered_ragged(image, shifts, reach)
    return Batch(triton_kernels.run(triton_kernels.scattered, _scattered, image.data, shifts.data, *corner))


def _scattered_ragged(image: Ragged, shifts: Batch, reach: int) -> Ragged:
    less = tuple(side - own for side, own in zip(image.shape[:2], shifts.shape[1:3], strict=True))
    if not isinstance(shifts, Packed) or less != (2 * reach, 2 * reach):
        raise BySize

    def alone(rows: ragged.Rows, size: Size) -> Tensor:
        return _scattered(image.part(rows, size).data, shifts.part(rows), reach + 1, reach + 1)

    rest = shifts.flat, reach + 1, int(shifts.shape[0]), 2 * reach
    kernel = triton_kernels.scattered_ragged
    return image.like(ragged.run(kernel, alone, image.sizes, image.padded, *rest))


def _scattered(image: Tensor, shifts: Tensor, top: int, left: int) -> Tensor:
    """`shifts` is N × passes × rows × columns × 2."""
    images, height, width, channels = image.shape
    flat = image.reshape(images, height * width, channels)
    for own in shifts.unbind(1):
        origin = _origins(own, top, left, height, width)
        flat = flat.gather(1, origin[..., None].expand(-1, -1, channels))
    return flat.reshape(image.shape)


def _origins(shifts: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """Each pixel's origin in one pass, as a flat index, by steps that double each time; N × H·W."""
    images, rows, columns, _ = shifts.shape
    pixels = height * width
    own = torch.arange(pixels, device=shifts.device).reshape(1, height, width)
    inner = own[:, top : top + rows, left : left + columns]
    step = shifts.flip(1, 2).to(torch.int64)  # now in the image's order
    source = inner + step[..., 1] * width + step[..., 0]
    y, x = source // width, source % width
    written = (y >= top) & (y < top + rows) & (x >= left) & (x < left + columns)
    link = (own + pixels).repeat(images, 1, 1)  # values from `pixels` on are origins before this pass
    later = written & (source > inner)
    link[:, top : top + rows, left : left + columns] = torch.where(later, source, source + pixels)
    link = link.reshape(images, pixels)
    while bool((link < pixels).any()):
        link = torch.where(link < pixels, link.gather(1, link.clamp(max=pixels - 1)), link)
    return link - pixels


def move(image: Batch, dy: Any, dx: Any) -> Batch:
    """Read each pixel from (y + dy, x + dx), bilinear, rounded; black where that lies outside the frame."""
    data = image.data
    height, width, channels = image.shape
    rows, columns = (torch.arange(side, device=data.device, dtype=torch.float32) for side in (height, width))
    v, u = as_batch(dy).data + rows[:, None], as_batch(dx).data + columns
    inside = (v >= -0.5) & (v < height - 0.5) & (u >= -0.5) & (u < width - 0.5)
    # Between the outermost pixel centres and the frame the edge is repeated.
    v, u = v.clamp(0, height - 1), u.clamp(0, width - 1)
    i, j = v.to(torch.int64), u.to(torch.int64)
    f, g = v - i, u - j
    both = ((f * g) * WHOLE).to(torch.int32)  # rounded down, so that no weight can be negative
    down, across = (f * WHOLE).to(torch.int32), (g * WHOLE).to(torch.int32)
    below, right = (i + 1).clamp(max=height - 1), (j + 1).clamp(max=width - 1)
    flat = data.reshape(len(data), height * width, channels)

    def read(y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        place = (y * width + x).reshape(len(y), -1, 1).expand(len(flat), -1, channels)
        values = flat.gather(1, place).reshape(data.shape).to(torch.int32)
        return values * weight[..., None]

    total = read(i, j, WHOLE - down - across + both) + read(i, right, across - both)
    total = total + (read(below, j, down - both) + read(below, right, both))
    level = (total + WHOLE // 2) >> 11
    return Batch((level * inside[..., None]).to(torch.uint8))


def streak(image: Batch, dy: Any, dx: Any) -> Batch:
    """The mean along the line from each pixel to (y + dy, x + dx), rounded; the edges are repeated."""
    data = image.data
    height, width, channels = image.shape
    down, across = as_batch(dy).data, as_batch(dx).data
    count = (torch.maximum(down.abs(), across.abs()).to(torch.int64) + 1).clamp(max=MOST_SAMPLES)
    share = torch.full_like(down, float(1 << STREAK_BITS)) / count.to(torch.float32)
    steps = [torch.floor(way * share).to(torch.int64) for way in (down, across)]
    rows, columns = (
        (torch.arange(side, device=data.device) << STREAK_BITS) + (1 << (STREAK_BITS - 1))
        for side in (height, width)
    )
    flat = data.reshape(len(data), height * width, channels).to(torch.int64)
    total = torch.zeros_like(flat)
    for k in range(int(count.max())):
        i = ((rows[:, None] + k * steps[0]) >> STREAK_BITS).clamp(0, height - 1)
        j = ((columns + k * steps[1]) >> STREAK_BITS).clamp(0, width - 1)
        index = (i * width + j).reshape(len(i), -1, 1).expand(len(flat), -1, channels)
        total += flat.gather(1, index) * (k < count).reshape(len(i), -1, 1)
    samples = count.reshape(len(count), -1, 1)
    mean = torch.div(total + samples // 2, samples, rounding_mode="floor")
    return Batch(mean.to(torch.uint8).reshape(data.shape))


def radial_field(
    size: tuple[int, int], delta: float, shares: tuple[float, float, float]
) -> tuple[Batch, Batch]:
    """(dy, dx) that reads from r + δ·(a·r⁴ + b·r³ + c·r²), where r is 1 in the frame's corners."""
    if is_mixed(size):
        raise BySize
    height, width = size
    quartic, cubic, quadratic = (float(np.float32(delta * share)) for share in shares)
    y, x = (
        torch.arange(side, device=current_device(), dtype=torch.float32) - float(np.float32((side - 1) / 2))
        for side in size
    )
    y = y[:, None]
    r2 = (y * y + x * x) * float(np.float32(4 / (height * height + width * width)))
    r = root(r2)
    gain = r * ((r * cubic + quadratic) + r2 * quartic)
    return Batch((gain * y)[None]), Batch((gain * x)[None])


def sources(dy: Any, dx: Any) -> Any:
    """For each output pixel the flat index of the nearest input pixel; H·W where there is none."""
    down, across = as_batch(dy).data, as_batch(dx).data
    height, width = down.shape[1:]
    rows, columns = (torch.arange(side, device=down.device, dtype=torch.float32) for side in (height, width))
    i = torch.floor((down + rows[:, None]) + 0.5).to(torch.int64)
    j = torch.floor((across + columns) + 0.5).to(torch.int64)
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    return Batch(torch.where(inside, i * width + j, height * width))


class Parts(Lazy):
    """For every image a part of one of several larger RGB images."""

    def __init__(
        self, sources: list[Tensor], which: npt.NDArray[np.int64], corners: npt.NDArray[np.int64],
        size: tuple[int, int],
    ) -> None:  # fmt: skip
        super().__init__((*size, 3))
        self._sources, self._which, self._corners = sources, which, corners

    @property
    def images(self) -> int:
        return len(self._which)

    def places(self) -> npt.NDArray[np.int64]:
        """For every image the address of the part's first value, and how many values apart its rows are."""
        known = np.array([(source.data_ptr(), source.stride(0)) for source in self._sources])
        places: npt.NDArray[np.int64] = known[self._which]
        places[:, 0] += self._corners[:, 0] * places[:, 1] + self._corners[:, 1] * 3
        return places

    def make(self) -> Tensor:
        corners, place = to_device(self._corners), self._sources[0].device
        rows, columns = (
            corners[:, axis, None] + torch.arange(self.shape[axis], device=place) for axis in (0, 1)
        )
        made = self._sources[0].new_empty((self.images, *self.shape))
        for i, source in enumerate(self._sources):
            own = to_device(np.flatnonzero(self._which == i))
            made[own] = source[rows[own][:, :, None], columns[own][:, None]]
        return made


class EnlargedParts(Lazy):
    """The same for images of several sizes: enlarged to as many sizes, no source is kept that large."""

    def __init__(
        self, images: Any, each: npt.NDArray[np.int64], which: npt.NDArray[np.int64],
        corners: npt.NDArray[np.int64], size: tuple[Any, Any],
    ) -> None:  # fmt: skip
        """`each` is the sizes that images `which` are enlarged to."""
        super().__init__((*size, 3))
        self._images, self._each, self._which, self._corners = images, each, which, corners

    def make(self) -> Tensor:
        raise BySize

    def textures(self) -> npt.NDArray[np.int64]:
        """The address of every image's source, and its height and width."""
        known = [(keep_on_device(source).data_ptr(), *source.shape[:2]) for source in self._images]
        return np.array(known)[self._which]

    def plans(self) -> npt.NDArray[np.float64]:
        """For rows and columns of every image: its source's side, the enlarged side, the part's start."""
        sides = np.array([source.shape[:2] for source in self._images])[self._which]
        return np.stack((sides, self._each, self._corners), 2).reshape(-1, 3).astype(np.float64)

    def part(self, rows: list[int], size: tuple[int, int]) -> Parts:
        """The parts for some images, which have one size."""
        own = [(self._images[self._which[row]], tuple(self._each[row].tolist())) for row in rows]
        sources = [_enlarged(source, large) for source, large in own]
        return Parts(sources, np.arange(len(rows)), self._corners[rows], size)


def enlarged_part(
    images: Any, sizes: Any, which: Any, corner: tuple[Any, Any], part: tuple[int, int]
) -> Batch:
    """The part of one of several RGB images that begins at `corner`; `part` is its size.

    `which` and the corner's two numbers are arrays, with one element for each image of the batch. Each of the
    images, which are on the host, is resized bicubically to its size among `sizes`: once, whole, since there
    are few of them, and it stays on the device.
    """
    which = np.atleast_1d(which)
    corners = np.stack(np.broadcast_arrays(*corner, which)[:2], 1)
    if is_mixed(part):
        each = np.stack([picked([size[axis] for size in sizes], which) for axis in (0, 1)], 1)
        return EnlargedParts(images, each, which, corners, part)
    used, order = np.unique(which, return_inverse=True)
    sources = [
        keep_on_device(images[i], partial(_enlarged, size=sizes[i]), ("enlarged", sizes[i]))
        for i in used.tolist()
    ]
    return Parts(sources, order, corners, part)


def _enlarged(image: npt.NDArray[np.uint8], size: tuple[int, int]) -> Tensor:
    """The whole image at another size: along rows, then columns, in 32-bit floats."""
    values = to_device(image).to(torch.float32)
    for axis in (1, 0):
        taps, weights = (
            to_device(table) for table in cubic_taps(image.shape[axis], size[axis], 0, size[axis])
        )
        shape = (-1, 1) if axis else (-1, 1, 1)
        parts = [values.index_select(axis, taps[:, k]) * weights[:, k].reshape(shape) for k in range(4)]
        values = ((parts[0] + parts[1]) + parts[2]) + parts[3]
    return (values.clamp(0, 255) + 0.5).to(torch.uint8)
