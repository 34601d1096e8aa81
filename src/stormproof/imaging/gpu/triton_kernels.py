"""Triton kernels, where one pass over the image beats many. Each has a torch twin with the same result.

Triton is optional: without it, or on a device other than a CUDA GPU, the twins run. A process trusts a kernel
once its values equal its twin's on the first batch, for each number of channels, layout, type and variant; a
kernel that fails or differs is refused with a warning, and the twin runs instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stormproof.imaging.gpu.tensors import dense, edges, planar, resident
from stormproof.imaging.plans import Field

BLOCK = 1024
EXACT = {"enable_fp_fusion": False}  # round products before adding, as the CPU does

# Further variants of a kernel: makes a comparable value of its arguments after the first.
VARIANTS: dict[str, Callable[..., Hashable]] = {
    "noise": lambda *rest: rest[-1],
    "symmetric": lambda half, rule, axis, *_: (axis, padded(half)),
    "correlated": lambda kernel, *_: kernel.limbs.shape[1:3],
    "plasma": lambda levels, _: len(levels),
}

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
    variant = VARIANTS[kernel.__name__](*rest) if kernel.__name__ in VARIANTS else None
    name = kernel.__name__, *types, *source.shape[3:], planar(source), variant
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
    """`kind` as in `triton_source.noisy`; the kernel draws the `bits` itself and never stores them.

    Planes have a multiple of eight values.
    """
    image = dense(image)
    out = torch.empty_like(image)
    count = image[0].numel()
    rest = bits.keys, table, signed(bits.stream)
    if planar(image):
        words = count // 24
        _source().noise_planes_kernel[grid(words, 256, len(image))](
            *(_in_words(own.permute(0, 3, 1, 2), torch.int64) for own in (image, out)),
            *rest, words, first, second, KIND=kind, BLOCK=256,
        )  # fmt: skip
    else:
        _source().noise_kernel[grid(count, 8 * 256, len(image))](
            image, out, *rest, count, first, second, KIND=kind, BLOCK=256
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


def _in_words(values: Tensor, word: torch.dtype = torch.int32) -> Tensor:
    return values.contiguous().view(-1).view(word)


_WIDEST = 32  # pixels: up to this radius a filter is unrolled, and each value is read once


def padded(half: Field) -> int:
    """The radius up to which weights of a filter are filled with zeros, which change no sum."""
    radius = -(-(len(half) - 1) // 4) * 4
    return radius if radius <= _WIDEST else _WIDEST + 1


@lru_cache(maxsize=64)
def _filled(half: bytes, radius: int) -> Field:
    weights = np.zeros(radius + 1, np.float32)
    weights[: len(half) // 4] = np.frombuffer(half, np.float32)
    return weights


def symmetric(
    source: Tensor, half: Field, rule: str, axis: int, guard: float, gain: float, dtype: torch.dtype
) -> Tensor:
    """One pass of a separable filter along an axis of planes, N × H × W × 1, with the border's rule."""
    source = source.contiguous()
    out = torch.empty(source.shape, dtype=dtype, device=source.device)
    images, height, width, _ = source.shape
    whole, radius = dtype == torch.uint8, padded(half)
    if radius > _WIDEST:
        index = resident(edges(source.shape[axis], len(half) - 1, rule))
        _source().wide_kernel[grid(width, 256, images, height)](
            source, out, resident(half), index, len(half) - 1, height, width, guard, gain,
            AXIS=axis, WHOLE=whole, BLOCK=256, **EXACT,
        )  # fmt: skip
        return out
    weights = resident(_filled(half.tobytes(), radius))
    given = source, out, weights, resident(edges(source.shape[axis], radius, rule)), height, width
    if axis == 1:
        _source().down_kernel[grid(width, 128, images, -(-height // 16))](
            *given, guard, gain, WHOLE=whole, RADIUS=radius, ROWS=16, BLOCK=128, **EXACT
        )
    else:
        _source().across_kernel[grid(width, 128, images, -(-height // 4))](
            *given, RADIUS=radius, BLOCK=128, **EXACT
        )
    return out


def gathered(source: Tensor, rows: Tensor, columns: Tensor, spare: int = 0) -> Tensor:
    """source[:, rows][:, :, columns] of planes, N × H × W × 1, with `spare` unused values behind it."""
    source = source.contiguous()
    images, height, width, _ = source.shape
    shape = images, len(rows), len(columns), 1
    out = source.new_empty(prod(shape) + spare)[: prod(shape)].view(shape)
    _moves().gather_kernel[grid(len(columns), 256, images, len(rows))](
        source, out, rows, columns, height, width, len(rows), len(columns), BLOCK=256
    )
    return out


def line(source: Tensor, paths: Tensor, planes: int, rows: Tensor, columns: Tensor, guard: float) -> Tensor:
    """Copies of planes N × H × W × 1 along paths of `convolution.path_of`, one for each `planes` planes.

    `rows` and `columns` are the border's tables, as wide as the farthest shift.
    """
    out = torch.empty(source.shape, dtype=source.dtype, device=source.device)
    images, height, width, _ = source.shape
    bordered = gathered(source, rows, columns, spare=BLOCK)
    _source().line_kernel[grid(width, 256, images, height)](
        bordered, out, paths, paths.shape[1], height, width, len(columns), len(rows), guard,
        PLANES=planes, BLOCK=256, **EXACT,
    )  # fmt: skip
    return out


COLUMNS, STEP = 32, 64  # results and pixels of a product of matrices
_ROWS = 128


def correlated(source: Tensor, kernel: Any, rows: Tensor, columns: Tensor, shift: int) -> Tensor:
    """Correlation of planes, N × H × W × 1, with a `convolution.IntegerKernel`.

    `rows` and `columns` are the border's tables.
    """
    source = source.contiguous()
    images, height, width, _ = source.shape
    limbs = resident(kernel.limbs)  # rows × chunks × limbs × COLUMNS × STEP
    down, across = -(-height // _ROWS), -(-width // COLUMNS)
    tall, wide = down * _ROWS + limbs.shape[0] - 1, across * COLUMNS + limbs.shape[1] * STEP
    planes = torch.empty((images, tall, wide), dtype=torch.int8, device=source.device)
    _moves().bordered_kernel[grid(wide, 256, images, tall)](
        source, planes, rows, columns, height, width, tall, wide, len(rows) - 1, len(columns) - 1, BLOCK=256
    )
    out = torch.empty_like(source)
    bias = 128 * kernel.total + (1 << (shift - 12))
    _source().correlate_kernel[(images * down * across,)](
        planes, out, limbs, *limbs.shape[:2], height, width, tall, wide, bias, shift,
        LIMBS=limbs.shape[2], ROWS=_ROWS, COLUMNS=COLUMNS, STEP=STEP,
    )  # fmt: skip
    return out


def _packed(source: Tensor) -> Tensor:
    """Pixels of three values as words; those of one as they are."""
    if source.shape[3] == 1:
        return source
    images, height, width, _ = source.shape
    words = torch.empty((images, height, width), dtype=torch.int32, device=source.device)
    pixels = height * width
    _moves().packed_kernel[grid(pixels, BLOCK, images)](
        source, words, pixels, PLANAR=planar(source), BLOCK=BLOCK
    )
    return words


def zoom(source: Tensor, *plan: Any) -> Tensor:
    """`plan` is `warps._zoom_plan`'s tables, rows then columns, how often the image counts, and the guard."""
    rows, down, last_row, columns, across, last_column, copies, guard = plan
    source = dense(source)
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    layers = len(rows)
    share = float(np.float32(1) / np.float32(layers + copies))
    _moves().zoom_kernel[grid(width, 128, images, height)](
        _packed(source), out, rows, down, last_row, columns, across, last_column, layers, height, width,
        float(copies), share, guard, channels=channels, PLANAR=planar(source), BLOCK=128, **EXACT,
    )  # fmt: skip
    return out


def displace(source: Tensor, dy: Tensor, dx: Tensor, guard: float) -> Tensor:
    """Fields are N × H × W."""
    source = dense(source)
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    _moves().displace_kernel[grid(width, 128, images, height)](
        _packed(source), out, dy.contiguous(), dx.contiguous(), height, width, guard,
        channels=channels, PLANAR=planar(source), BLOCK=128, **EXACT,
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
    """N × H × W × C after `warps.scatter`; `shifts` is N × passes × rows × columns × 2, int8."""
    image = dense(image)
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    _moves().scatter_kernel[grid(height * width, 128, images)](
        image, out, shifts.view(torch.int16), top, left, *shifts.shape[1:4], height, width,
        channels=channels, PLANAR=planar(image), BLOCK=128, num_warps=1,
    )  # fmt: skip
    return out
