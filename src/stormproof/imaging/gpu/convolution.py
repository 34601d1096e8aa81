"""Blur by one kernel for the whole image: Gaussian, symmetric, along a line."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.imaging.gpu import ragged, triton_kernels
from stormproof.imaging.gpu.batch import Batch, by_planes
from stormproof.imaging.gpu.each import Each, of_each
from stormproof.imaging.gpu.ragged import Ragged
from stormproof.imaging.gpu.tensors import edges, keep_on_device, to_device
from stormproof.imaging.gpu.triton_kernels import COLUMNS, STEP
from stormproof.imaging.plans import FIXED, GUARD, Field, fixed_kernel, half_gaussian


def symmetric_sum(
    planes: Tensor,
    half: Field,
    rule: str,
    axis: int,
    guard: float = 0.0,
    gain: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """(Σ_j half[|j|]·planes + guard)·gain along an axis of N × H × W × 1, pairs first."""
    rest = half, rule, axis, guard, gain, dtype
    return triton_kernels.run(triton_kernels.symmetric, _symmetric_sum, planes, *rest)


def _symmetric_sum(
    planes: Tensor, half: Field, rule: str, axis: int, guard: float, gain: float, dtype: torch.dtype
) -> Tensor:
    radius, length = len(half) - 1, planes.shape[axis]
    padded = planes.index_select(axis, keep_on_device(edges(length, radius, rule))).to(torch.float32)
    total = padded.narrow(axis, radius, length) * float(half[0])
    for j in range(1, radius + 1):
        pair = padded.narrow(axis, radius - j, length) + padded.narrow(axis, radius + j, length)
        total += pair * float(half[j])
    if guard:
        total += guard
    if gain != 1:
        total *= gain
    return total.to(dtype)


def _blur(
    planes: Tensor, sigma: tuple[float, float], truncate: float, rule: str, guard: float, gain: float = 1.0
) -> Tensor:
    """`planes` is N × H × W × 1; the result has its type."""
    down, across = (half_gaussian(s, int(truncate * s + 0.5)) for s in sigma)
    lines = symmetric_sum(planes, across, rule, axis=2)
    return symmetric_sum(lines, down, rule, axis=1, guard=guard, gain=gain, dtype=planes.dtype)


def _blur_ragged(image: Ragged, sigma: tuple[Any, Any], truncate: float, rest: tuple[Any, ...]) -> Ragged:
    """`_blur` of images or fields of several sizes, by one σ or one for each; `rest` is its other numbers."""
    padded = image.padded if image.padded.ndim == 4 else image.padded[..., None]
    each = [of_each(s, len(padded)) for s in sigma]
    halves = [_halves(s.astype(np.float64).tobytes() if isinstance(g, Each) else g, truncate)
              for s, g in zip(each, sigma, strict=True)]  # fmt: skip

    def alone(rows: ragged.Rows, size: Size) -> Tensor:
        part = padded[rows, : size[0], : size[1]]
        own = float(each[0][rows[0]]), float(each[1][rows[0]])
        made = by_planes(lambda planes: _blur(planes, own, truncate, *rest), part)
        return made if image.padded.ndim == 4 else made[..., 0]

    variant = rest[0], *(triton_kernels.padded(half.shape[-1] - 1) for half in halves)
    blurred = ragged.run(_both_passes, alone, image.sizes, padded, *halves, *rest, variant=variant)
    return image.like(blurred if image.padded.ndim == blurred.ndim else blurred[..., 0])


def _both_passes(
    padded: Tensor, down: Field, across: Field, rule: str, guard: float, gain: float = 1.0, *, sizes: Any
) -> Tensor:
    channels = padded.shape[3]

    def both(planes: Tensor) -> Tensor:
        blur = partial(triton_kernels.symmetric, planes=channels, sizes=sizes)
        lines = blur(planes, across, rule, 2, 0.0, 1.0, torch.float32)
        return blur(lines, down, rule, 1, guard, gain, planes.dtype)

    return by_planes(both, padded)


@lru_cache(maxsize=256)
def _halves(sigma: float | bytes, truncate: float) -> Field:
    """The weights of a Gaussian; of several, given as the bytes of their σ, in rows filled with zeros."""
    if isinstance(sigma, float | int):
        return half_gaussian(sigma, int(truncate * sigma + 0.5))
    values = np.frombuffer(sigma)
    rows = {s: half_gaussian(s, int(truncate * s + 0.5)) for s in set(values.tolist())}
    made = np.zeros((len(values), max(map(len, rows.values()))), np.float32)
    for own, s in zip(made, values.tolist(), strict=True):
        own[: len(rows[s])] = rows[s]
    return made


def gaussian_blur(image: Batch, sigma: float) -> Batch:
    """Gaussian of `sigma` pixels cut at 4σ, edges repeated, result truncated to whole grey levels."""
    if isinstance(image, Ragged):
        return _blur_ragged(image, (sigma, sigma), 4.0, ("nearest", float(GUARD)))
    blur = partial(_blur, sigma=(sigma, sigma), truncate=4.0, rule="nearest", guard=float(GUARD))
    return Batch(by_planes(blur, image.data))


def gaussian_field(
    field: Batch, sigma: tuple[float, float], *, truncate: float, rule: str, gain: float = 1.0
) -> Batch:
    """Gaussian of (σ_y, σ_x) pixels over a float field, cut at `truncate`·σ, times `gain`."""
    if isinstance(field, Ragged):
        return _blur_ragged(field, sigma, truncate, (rule, 0.0, float(np.float32(gain))))
    return Batch(_blur(field.data[..., None], sigma, truncate, rule, 0.0, float(np.float32(gain)))[..., 0])


class IntegerKernel(NamedTuple):
    """A kernel in whole numbers, without the rows and columns of zeros around it.

    `taps` holds (row, column, weight) of every tap that is not zero; the others are for
    `triton_kernels.correlated`: the taps' sum, and `limbs`, matrices of signed bytes.
    """

    reach: int
    taps: npt.NDArray[np.int32]
    total: int
    limbs: npt.NDArray[np.int8]


def convolve(image: Batch, weights: npt.NDArray[np.float64]) -> Batch:
    """Correlate with a square kernel symmetric in both axes; borders mirrored, result truncated."""
    if isinstance(image, Ragged):
        given, kernel = image, _integer_kernel(weights.tobytes(), weights.shape[0])

        def alone(rows: ragged.Rows, size: Size) -> Tensor:
            return convolve(given.part(rows, size), weights).data

        variant = kernel.limbs.shape[1:3]
        return image.like(ragged.run(_convolved, alone, image.sizes, image.padded, kernel, variant=variant))
    kernel = _integer_kernel(weights.tobytes(), weights.shape[0])
    correlate = partial(triton_kernels.run, triton_kernels.correlated, _correlated)
    return Batch(by_planes(lambda planes: correlate(planes, kernel, FIXED), image.data))


def _convolved(padded: Tensor, kernel: IntegerKernel, *, sizes: Any) -> Tensor:
    correlate = partial(triton_kernels.correlated, planes=padded.shape[3], sizes=sizes)
    return by_planes(lambda planes: correlate(planes, kernel, FIXED), padded)


def _correlated(source: Tensor, kernel: IntegerKernel, shift: int) -> Tensor:
    height, width = source.shape[1:3]
    rows, columns = (keep_on_device(edges(side, kernel.reach, "mirror")) for side in (height, width))
    padded = source.index_select(1, rows).index_select(2, columns).to(torch.int32)
    total = torch.full(source.shape, 1 << (shift - 12), dtype=torch.int32, device=source.device)
    for row, column, weight in kernel.taps.tolist():
        total += padded[:, row : row + height, column : column + width] * weight
    return (total >> shift).clamp(max=255).to(torch.uint8)


@lru_cache(maxsize=16)
def _integer_kernel(weights: bytes, side: int) -> IntegerKernel:
    fixed = fixed_kernel(np.frombuffer(weights).reshape(side, side))
    centre = side // 2
    reach = int(np.abs(np.argwhere(fixed) - centre).max(initial=0))
    fixed = fixed[centre - reach : centre + reach + 1, centre - reach : centre + reach + 1]
    rows, columns = np.nonzero(fixed)
    taps = np.stack((rows, columns, fixed[rows, columns]), axis=1).astype(np.int32)
    return IntegerKernel(reach, taps, int(fixed.sum()), _limbs(fixed))


def _limbs(fixed: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """For each row, what a pixel adds to the results beside it, in two or three signed bytes, lowest first.

    Rows × chunks of STEP pixels × bytes × COLUMNS results × STEP: matrix[c, x] is the row's tap x − c.
    """
    side = len(fixed)
    chunks = -(-(COLUMNS + side - 1) // STEP)
    matrix = np.zeros((side, COLUMNS, chunks * STEP), np.int64)
    for c in range(COLUMNS):
        matrix[:, c, c : c + side] = fixed
    limbs: list[npt.NDArray[np.int64]] = []
    while matrix.any() or len(limbs) < 2:
        low = (matrix + 128) % 256 - 128
        limbs.append(low.reshape(side, COLUMNS, chunks, STEP))
        matrix = (matrix - low) >> 8
    return np.ascontiguousarray(np.stack(limbs, 1).transpose(0, 3, 1, 2, 4).astype(np.int8))


def line_blur(image: Batch, weights: Any, shifts: Any) -> Batch:
    """Weighted sum of copies read `shifts` = (dy, dx) away, edges repeated, result truncated.

    One path for all images, or arrays with one more axis: a path per image.
    """
    reach = int(np.abs(shifts).max(initial=0))
    if isinstance(image, Ragged):
        given = image

        def alone(rows: ragged.Rows, size: Size) -> Tensor:
            own = (path[rows] if path.ndim > dims else path for path, dims in ((weights, 1), (shifts, 2)))
            return line_blur(given.part(rows, size), *own).data

        paths = path_of((weights, shifts), len(image.padded), image.sizes.whole[1] + 2 * reach, reach)
        return image.like(ragged.run(_blurred, alone, image.sizes, image.padded, to_device(paths), reach))
    _, width, channels = image.shape
    paths = path_of((weights, shifts), len(image.data), width + 2 * reach, reach)
    rest = to_device(paths), channels, reach, float(GUARD)
    blur = partial(triton_kernels.run, triton_kernels.line, _line)
    return Batch(by_planes(lambda planes: blur(planes, *rest), image.data))


def _blurred(padded: Tensor, paths: Tensor, reach: int, *, sizes: Any) -> Tensor:
    rest = paths, padded.shape[3], reach, float(GUARD)
    return by_planes(lambda planes: triton_kernels.line(planes, *rest, sizes=sizes), padded)


def path_of(path: tuple[Any, Any], images: int, wide: int, reach: int) -> npt.NDArray[np.int32]:
    """Paths as kernels take them: N × taps × (weight, place), the weight as the bits of a 32-bit float.

    A place is a distance in memory, in rows of `wide` values that have `reach` of a border on the left and as
    many rows above. Weights of zero fill the last four: the CPU adds taps by fours.
    """
    weights, shifts = path
    steps = weights.shape[-1]
    made = np.zeros((images, -(-steps // 4) * 4, 2), np.int32)
    made[:, :steps, 0] = weights.astype(np.float32).view(np.int32)
    made[:, :steps, 1] = (shifts[..., 0] + reach) * wide + (shifts[..., 1] + reach)
    return made


def _line(planes: Tensor, paths: Tensor, channels: int, reach: int, guard: float) -> Tensor:
    """`planes` is N·channels × H × W × 1; an image's planes follow one path."""
    rows, columns = (keep_on_device(edges(side, reach, "nearest")) for side in planes.shape[1:3])
    bordered = planes[..., 0].index_select(1, rows).index_select(2, columns)
    size = int(planes.shape[1]), int(planes.shape[2])
    total = summed(bordered, paths.repeat_interleave(channels, 0), size, guard)
    return total.clamp(max=255).to(planes.dtype)[..., None]


def summed(bordered: Tensor, paths: Tensor, size: tuple[int, int], guard: float) -> Tensor:
    """Σ weight · value along paths as `path_of` makes them, over `bordered`, N × rows × wide; N × size."""
    images, _, wide = bordered.shape
    flat = bordered.flatten(1)
    rows, columns = (torch.arange(side, device=paths.device) for side in size)
    own = (rows[:, None] * wide + columns).reshape(1, -1)
    weights = paths[..., 0].contiguous().view(torch.float32)

    def tap(i: int) -> Tensor:
        return flat.gather(1, own + paths[:, i, 1:]).to(torch.float32) * weights[:, i : i + 1]

    total = torch.full((images, own.shape[1]), guard, dtype=torch.float32, device=paths.device)
    for i in range(0, paths.shape[1], 4):
        total += (tap(i) + tap(i + 1)) + (tap(i + 2) + tap(i + 3))
    return total.reshape(images, *size)
