"""Triton kernels, where one pass over the image beats many. Each has a torch twin with the same result.

Triton is optional: without it, or on other devices than a CUDA GPU, the twins run. A process trusts a kernel
once its values equal its twin's on the first batch, for each number of channels and each type; a kernel that
fails or differs is refused with a warning, and the twin runs instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stormproof.imaging.gpu.tensors import resident
from stormproof.imaging.plans import Field

BLOCK = 1024
EXACT = {"enable_fp_fusion": False}  # round products before adding, as the CPU does

_switched_off: list[bool] = []
trusted: set[Hashable] = set()
refused: dict[Hashable, str] = {}

log = logging.getLogger(__name__)


@cache
def found() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def usable(tensor: Tensor) -> bool:
    """Whether a tensor can go through Triton's kernels."""
    return tensor.is_cuda and found() and not _switched_off


def run(kernel: Callable[..., Tensor], twin: Callable[..., Tensor], source: Tensor, *rest: Any) -> Tensor:
    """The twin's result, computed by the kernel where possible."""
    if not usable(source):
        return twin(source, *rest)
    types = [source.dtype, *(value for value in rest if isinstance(value, torch.dtype))]
    name = kernel.__name__, *types, *source.shape[3:], rest[-1] if kernel is noise else None
    if name in trusted:
        return kernel(source, *rest)
    expected = twin(source, *rest)
    if name not in refused:
        why = _difference(kernel, expected, source, *rest)
        if why is None:
            trusted.add(name)
        else:
            refused[name] = why
            log.warning("The Triton kernel %s is not used, torch replaces it: %s", kernel.__name__, why)
    return expected


def _difference(kernel: Callable[..., Tensor], expected: Tensor, *args: Any) -> str | None:
    """Why a kernel cannot replace its twin; None if it can."""
    try:
        found = kernel(*args)
        torch.cuda.synchronize()
    except Exception as error:  # whatever a compiler or driver may raise
        return f"{type(error).__name__}: {error}".splitlines()[0]
    wrong = int((found != expected).sum())
    return f"{wrong} of {expected.numel()} values differ" if wrong else None


@contextmanager
def without() -> Iterator[None]:
    """Inside the block the torch twins run, for comparison."""
    _switched_off.append(True)
    try:
        yield
    finally:
        _switched_off.pop()


@cache
def _source() -> ModuleType:
    from stormproof.imaging.gpu import triton_source

    return triton_source


@cache
def _moves() -> ModuleType:
    from stormproof.imaging.gpu import triton_moves

    return triton_moves


def signed(word: int) -> int:
    """A 32-bit word as Triton takes integers: signed."""
    return word - (1 << 32) if word >= 1 << 31 else word


def grid(count: int, block: int, images: int, rows: int = 1) -> tuple[int, int]:
    """Programs for `rows` rows of `count` elements of every image."""
    return -(-count // block) * rows, images


def philox_bits(keys: Tensor, stream: int, count: int) -> Tensor:
    out = torch.empty((len(keys), count), dtype=torch.int32, device=keys.device)
    _source().bits_kernel[grid(count, 8 * 256, len(keys))](out, keys, signed(stream), count, BLOCK=256)
    return out


def noise(image: Tensor, bits: Any, table: Tensor, first: int, second: int, kind: int) -> Tensor:
    """`kind` as in `triton_source.noise_kernel`; the kernel draws the `bits` itself and never stores them."""
    image = image.contiguous()
    out = torch.empty_like(image)
    count = image[0].numel()
    _source().noise_kernel[grid(count, 8 * 256, len(image))](
        image, out, bits.keys, table, signed(bits.stream), count, first, second, KIND=kind, BLOCK=256
    )
    return out


def pixels(planes: Tensor) -> Tensor:
    """N × 3 × H × W as N × H × W × 3; H·W is a multiple of four."""
    images, _, height, width = planes.shape
    out = planes.new_empty((images, height, width, 3))
    words = height * width // 4
    _moves().pixels_kernel[grid(words, 512, images)](_in_words(planes), _in_words(out), words, BLOCK=512)
    return out


def planes(pixels: Tensor) -> Tensor:
    """The inverse of `pixels`."""
    images, height, width, _ = pixels.shape
    out = pixels.new_empty((images, 3, height, width))
    words = height * width // 4
    _moves().planes_kernel[grid(words, 512, images)](_in_words(pixels), _in_words(out), words, BLOCK=512)
    return out


def _in_words(values: Tensor) -> Tensor:
    return values.contiguous().view(-1).view(torch.int32)


def symmetric(
    source: Tensor, half: Field, index: Tensor, axis: int, guard: float, dtype: torch.dtype
) -> Tensor:
    """One pass of a separable filter along an axis of N × H × W × C; `index` is the border's int32 table."""
    source = source.contiguous()
    out = torch.empty(source.shape, dtype=dtype, device=source.device)
    images, height, width, channels = source.shape
    whole = dtype == torch.uint8
    given = source, out, resident(half), index, len(half) - 1, height, width * channels, guard
    rows = 8 if axis == 1 else 4
    tile = {"WHOLE": whole, "ROWS": rows, "BLOCK": 128, "num_warps": rows // 2, **EXACT}
    launch = grid(width * channels, 128, images, -(-height // rows))
    if axis == 1:
        _source().down_kernel[launch](*given, **tile)
    else:
        _source().across_kernel[launch](*given, channels=channels, **tile)
    return out


def gathered(source: Tensor, rows: Tensor, columns: Tensor, spare: int = 0) -> Tensor:
    """source[:, rows][:, :, columns] of N × H × W × C, by int32 tables; memory goes on for `spare` values."""
    source = source.contiguous()
    images, height, width, channels = source.shape
    shape = images, len(rows), len(columns), channels
    out = source.new_empty(prod(shape) + spare)[: prod(shape)].view(shape)
    _moves().gather_kernel[grid(len(columns) * channels, BLOCK, images, len(rows))](
        source, out, rows, columns, height, width, len(rows), len(columns), channels=channels, BLOCK=BLOCK
    )
    return out


def line(
    source: Tensor, weights: Tensor, shifts: Tensor, rows: Tensor, columns: Tensor, guard: float
) -> Tensor:
    """Copies of N × H × W × C read N × T × 2 `shifts` away, weighted by N × T `weights`; T a multiple of 4.

    `rows` and `columns` are the border's tables, as wide as the farthest shift.
    """
    out = torch.empty(source.shape, dtype=source.dtype, device=source.device)
    images, height, width, channels = source.shape
    wide, reach = len(columns), (len(columns) - width) // 2
    places = ((shifts[..., 0] + reach) * wide + (shifts[..., 1] + reach)) * channels
    bordered = gathered(source, rows, columns, spare=BLOCK)
    _source().line_kernel[grid(width * channels, BLOCK, images, height)](
        bordered, out, weights, places, weights.shape[1], height, width * channels, wide * channels,
        len(rows), guard, WHOLE=source.dtype == torch.uint8, BLOCK=BLOCK, **EXACT,
    )  # fmt: skip
    return out


COLUMNS, STEP = 32, 64  # results and pixels of a product of matrices
_ROWS = 128


def correlated(source: Tensor, kernel: Any, rows: Tensor, columns: Tensor, shift: int) -> Tensor:
    """Correlation with a `convolution.IntegerKernel`; `rows` and `columns` are the border's tables."""
    source = source.contiguous()
    images, height, width, channels = source.shape
    limbs = resident(kernel.limbs)  # rows × chunks × limbs × COLUMNS × STEP
    down, across = -(-height // _ROWS), -(-width // COLUMNS)
    tall, wide = down * _ROWS + limbs.shape[0] - 1, across * COLUMNS + limbs.shape[1] * STEP
    planes = torch.empty((images * channels, tall, wide), dtype=torch.int8, device=source.device)
    _moves().bordered_kernel[grid(wide, 256, images, tall)](
        source, planes, rows, columns, height, width, tall, wide, len(rows) - 1, len(columns) - 1,
        channels=channels, BLOCK=256,
    )  # fmt: skip
    out = torch.empty_like(source)
    bias = 128 * kernel.total + (1 << (shift - 12))
    _source().correlate_kernel[(images * channels * down * across,)](
        planes, out, limbs, *limbs.shape[:2], height, width, tall, wide, bias, shift,
        channels=channels, LIMBS=limbs.shape[2], ROWS=_ROWS, COLUMNS=COLUMNS, STEP=STEP,
    )  # fmt: skip
    return out


def _packed(source: Tensor) -> Tensor:
    """Pixels of three values as words; those of one as they are."""
    if source.shape[3] == 1:
        return source
    words = torch.empty(source.shape[:3], dtype=torch.int32, device=source.device)
    _moves().packed_kernel[(-(-words.numel() // BLOCK),)](source, words, words.numel(), BLOCK=BLOCK)
    return words


def zoom(source: Tensor, *plan: Any) -> Tensor:
    """`plan` is `warps._zoom_plan`'s tables, rows then columns, and the guard."""
    rows, down, last_row, columns, across, last_column, guard = plan
    source = source.contiguous()
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    layers = len(rows)
    share = float(np.float32(1) / np.float32(layers + 1))
    _moves().zoom_kernel[grid(width, 128, images, height)](
        _packed(source), out, rows, down, last_row, columns, across, last_column, layers, height, width,
        share, guard, channels=channels, BLOCK=128, **EXACT,
    )  # fmt: skip
    return out


def displace(source: Tensor, dy: Tensor, dx: Tensor, guard: float) -> Tensor:
    """Fields are N × H × W."""
    source = source.contiguous()
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    _moves().displace_kernel[grid(width, 128, images, height)](
        _packed(source), out, dy.contiguous(), dx.contiguous(), height, width, guard,
        channels=channels, BLOCK=128, **EXACT,
    )  # fmt: skip
    return out


def patches(source: Tensor, kernels: Field, patch: int) -> Tensor:
    """`kernels` is rows × columns of patches × k × k."""
    source = source.contiguous()
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    _moves().patches_kernel[grid(height * width * channels, BLOCK, images)](
        source, out, resident(kernels), kernels.shape[2], kernels.shape[1], height, width,
        channels=channels, PATCH=patch, BLOCK=BLOCK, **EXACT,
    )  # fmt: skip
    return out


def scattered(image: Tensor, shifts: Tensor, top: int, left: int) -> Tensor:
    """N × H × W × C after one pass of `warps.scatter`; `shifts` is N × rows × columns × 2, int8."""
    image = image.contiguous()
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    pairs = shifts.view(torch.int16)
    _moves().scatter_kernel[grid(height * width, 128, images)](
        image, out, pairs, top, left, *shifts.shape[1:3], height, width, pairs.stride(0),
        channels=channels, BLOCK=128, num_warps=1,
    )  # fmt: skip
    return out
