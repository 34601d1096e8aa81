"""Blur by one kernel for the whole image: Gaussian, symmetric, along a line."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.tensors import edges, resident, to_device
from stormproof.imaging.gpu.triton_kernels import COLUMNS, STEP
from stormproof.imaging.plans import FIXED, GUARD, Field, fixed_kernel, half_gaussian


def symmetric_sum(
    source: Tensor, half: Field, rule: str, axis: int, guard: float = 0.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Σ_j half[|j|]·source over j = −radius … radius along an axis of N × H × W × C, pairs first."""
    index = resident(edges(source.shape[axis], len(half) - 1, rule))
    return triton_kernels.run(
        triton_kernels.symmetric, _symmetric_sum, source, half, index, axis, guard, dtype
    )


def _symmetric_sum(
    source: Tensor, half: Field, index: Tensor, axis: int, guard: float, dtype: torch.dtype
) -> Tensor:
    radius, length = len(half) - 1, source.shape[axis]
    padded = source.index_select(axis, index).to(torch.float32)
    total = padded.narrow(axis, radius, length) * float(half[0])
    for j in range(1, radius + 1):
        pair = padded.narrow(axis, radius - j, length) + padded.narrow(axis, radius + j, length)
        total += pair * float(half[j])
    if guard:
        total += guard
    return total.to(dtype)


def _blur(source: Tensor, sigma: tuple[float, float], truncate: float, rule: str, guard: float) -> Tensor:
    """`source` is N × H × W × C; the result has its type."""
    down, across = (half_gaussian(s, int(truncate * s + 0.5)) for s in sigma)
    lines = symmetric_sum(source, across, rule, axis=2)
    return symmetric_sum(lines, down, rule, axis=1, guard=guard, dtype=source.dtype)


def gaussian_blur(image: Batch, sigma: float) -> Batch:
    """Gaussian of `sigma` pixels cut at 4σ, edges repeated, result truncated to whole grey levels."""
    return Batch(_blur(image.data, (sigma, sigma), 4.0, "nearest", float(GUARD)))


def gaussian_field(field: Batch, sigma: tuple[float, float], *, truncate: float, rule: str) -> Batch:
    """Gaussian of (σ_y, σ_x) pixels over a float field, cut at `truncate`·σ."""
    return Batch(_blur(field.data[..., None], sigma, truncate, rule, 0.0)[..., 0])


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
    kernel = _integer_kernel(weights.tobytes(), weights.shape[0])
    rows, columns = (resident(edges(side, kernel.reach, "mirror")) for side in image.shape[:2])
    rest = kernel, rows, columns, FIXED
    return Batch(triton_kernels.run(triton_kernels.correlated, _correlated, image.data, *rest))


def _correlated(source: Tensor, kernel: IntegerKernel, rows: Tensor, columns: Tensor, shift: int) -> Tensor:
    height, width = source.shape[1:3]
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
    return Batch(_lines(image.data, weights, shifts, float(GUARD)))


def line_blur_field(field: Batch, weights: Any, shifts: Any) -> Batch:
    """The same over a float field with values up to 255."""
    return Batch(_lines(field.data[..., None], weights, shifts, 0.0)[..., 0])


def _lines(source: Tensor, weights: Any, shifts: Any, guard: float) -> Tensor:
    steps = weights.shape[-1]
    padded = len(source), -(-steps // 4) * 4  # zero weights fill the last group: the CPU adds taps by fours
    w, s = np.zeros(padded, np.float32), np.zeros((*padded, 2), np.int32)
    w[:, :steps], s[:, :steps] = weights, shifts
    reach = int(np.abs(s).max(initial=0))
    tables = (resident(edges(side, reach, "nearest")) for side in source.shape[1:3])
    return triton_kernels.run(triton_kernels.line, _line, source, to_device(w), to_device(s), *tables, guard)


def _line(source: Tensor, w: Tensor, s: Tensor, rows: Tensor, columns: Tensor, guard: float) -> Tensor:
    """`w` is N × T weights, `s` N × T × 2 shifts; T is a multiple of four."""
    images, height, width, _ = source.shape
    n = torch.arange(images, device=source.device)[:, None, None]
    y, x = (torch.arange(side, device=source.device) for side in (height, width))

    def tap(i: int) -> Tensor:
        down = (y + s[:, i, :1]).clamp(0, height - 1)
        across = (x + s[:, i, 1:]).clamp(0, width - 1)
        return source[n, down[:, :, None], across[:, None]].to(torch.float32) * w[:, i, None, None, None]

    total = torch.full(source.shape, guard, dtype=torch.float32, device=source.device)
    for i in range(0, w.shape[1], 4):
        total += (tap(i) + tap(i + 1)) + (tap(i + 2) + tap(i + 3))
    return (total.clamp(max=255) if source.dtype == torch.uint8 else total).to(source.dtype)
