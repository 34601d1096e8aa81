"""Triton kernels, where one pass over the image beats many. Each has a torch twin with the same result.

Triton is optional: without it, or on a device other than a CUDA GPU, the twins run. A kernel is trusted once
its values equal its twin's on the first batch, for each number of channels, layout, type and variant, which
`proofs` remembers for the next process. A kernel that fails or differs is refused with a warning, and the
twin runs instead.

Most take `sizes`, a `ragged.Sizes`, for images of several sizes in one padded tensor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stormproof.imaging.gpu import proofs
from stormproof.imaging.gpu.tensors import dense, keep_on_device, planar, to_device
from stormproof.imaging.plans import Field

BLOCK = 1024
EXACT = {"enable_fp_fusion": False}  # round products before adding, as the CPU does

# Further variants of a kernel: makes a comparable value of its arguments after the first.
VARIANTS: dict[str, Callable[..., Hashable]] = {
    "noise": lambda *rest: rest[-1],
    "symmetric": lambda half, rule, axis, *_: (axis, rule, padded(half.shape[-1] - 1)),
    "correlated": lambda kernel, *_: kernel.limbs.shape[1:3],
    "plasma": lambda levels, _: len(levels),
}

_switched_off: list[bool] = []
trusted: set[Hashable] = set()
refused: dict[Hashable, str] = {}

log = logging.getLogger(__name__)


@cache
def is_installed() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def usable(tensor: Tensor) -> bool:
    """Whether a tensor can go through Triton's kernels."""
    return tensor.is_cuda and is_installed() and not _switched_off


def is_switched_off() -> bool:
    """Whether this is inside a block `without` kernels."""
    return bool(_switched_off)


def run(kernel: Callable[..., Tensor], twin: Callable[..., Tensor], source: Tensor, *rest: Any) -> Tensor:
    """The twin's result, computed by the kernel where possible."""
    if not usable(source):
        return twin(source, *rest)
    types = [source.dtype, *(value for value in rest if isinstance(value, torch.dtype))]
    variant = VARIANTS[kernel.__name__](*rest) if kernel.__name__ in VARIANTS else None
    name = kernel.__name__, *types, *source.shape[3:], planar(source), variant
    return choose(name, kernel.__name__, lambda: kernel(source, *rest), lambda: twin(source, *rest))


def choose(name: Hashable, title: str, kernel: Callable[[], Tensor], twin: Callable[[], Tensor]) -> Tensor:
    """What a kernel makes if it is trusted, else what its twin makes; the first time, both are compared."""
    if is_known(name):
        return kernel() if name in trusted else twin()
    expected = twin()
    judge(name, title, lambda: (kernel(), expected))
    return expected


def is_known(name: Hashable) -> bool:
    """Whether a kernel needs no comparison with its twin, in this variant: it is trusted, or refused."""
    if name in trusted or name in refused:
        return True
    if proofs.remembers(name):
        trusted.add(name)
    return name in trusted


def judge(name: Hashable, title: str, compare: Callable[[], tuple[Tensor, Tensor]]) -> None:
    """Trust or refuse a kernel by what it makes and what its twin makes."""
    try:
        made, expected = compare()
        if made.is_cuda:
            torch.cuda.synchronize()
        wrong = int((made != expected).sum())
        why = f"{wrong} of {expected.numel()} values differ" if wrong else None
    except Exception as error:  # whatever a compiler or driver may raise
        why = f"{type(error).__name__}: {error}".splitlines()[0]
    if why is None:
        trusted.add(name)
        proofs.remember(name)
    else:
        refused[name] = why
        log.warning("The Triton kernel %s is not used, torch replaces it: %s", title, why)


@contextmanager
def without() -> Iterator[None]:
    """Inside the block the torch twins run, for comparison."""
    _switched_off.append(True)
    try:
        yield
    finally:
        _switched_off.pop()


def load_later(name: str) -> Callable[[], ModuleType]:
    """A function that imports a module of kernels when it is first called: they need Triton."""
    return cache(lambda: import_module(f"{__package__}.{name}"))


_source, _moves = load_later("triton_source"), load_later("triton_moves")


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


def noise_ragged(
    image: Tensor, bits: Any, table: Tensor, first: int, second: int, kind: int, *, sizes: Any
) -> Tensor:
    """The same for planes of images of several sizes."""
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    _source().noise_ragged_kernel[grid(width, 128, images, height)](
        image, out, bits.keys, table, sizes.table, signed(bits.stream), height, width, first, second,
        channels=channels, KIND=kind, BLOCK=128,
    )  # fmt: skip
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


def squared_differences(before: Tensor, after: Tensor) -> Tensor:
    """Of N × values: N sums; the addition of integers may take any order."""
    images, count = before.shape
    out = torch.zeros(images, dtype=torch.int64, device=before.device)
    pair = before.contiguous(), after.contiguous()
    _moves().squared_differences_kernel[grid(count, 8192, images)](*pair, out, count, BLOCK=8192)
    return out


def fit_images(places: Tensor, tables: list[Tensor], linear: bool, pad: int) -> Tensor:
    """`places` names N images: address, three strides, and whether rows come first; see `resizing`."""
    rows, _, columns, _ = tables
    images, (height, taps), width = len(places), rows.shape[1:], columns.shape[1]
    out = torch.empty((images, 3, height, width), dtype=torch.uint8, device=places.device)
    _moves().fit_kernel[grid(width, 128, images, 3 * height)](
        places, *tables, out, height, width, pad, TAPS=taps, LINEAR=linear, BLOCK=128
    )
    return out.permute(0, 2, 3, 1)


def _in_words(values: Tensor, word: torch.dtype = torch.int32) -> Tensor:
    return values.contiguous().view(-1).view(word)


RULES = {"nearest": 0, "reflect": 1, "mirror": 2}  # of borders, as kernels number them


def own(sizes: Any, source: Tensor) -> tuple[Tensor, bool]:
    """The table of images' sizes, and whether there is one."""
    return (source, False) if sizes is None else (sizes.table, True)


_WIDEST = 32  # pixels: up to this radius a filter is unrolled, and each value is read once


def padded(radius: int) -> int:
    """The radius up to which weights of a filter are filled with zeros, which change no sum."""
    radius = -(-radius // 4) * 4
    return radius if radius <= _WIDEST else _WIDEST + 1


def _filled(half: Tensor | Field, radius: int) -> Field:
    weights = np.zeros((*half.shape[:-1], radius + 1), np.float32)
    weights[..., : half.shape[-1]] = half
    return weights


def symmetric(
    source: Tensor,
    half: Field,
    rule: str,
    axis: int,
    guard: float,
    gain: float,
    dtype: torch.dtype,
    *,
    planes: int = 1,
    sizes: Any = None,
) -> Tensor:
    """One pass of a separable filter along an axis of planes, N × H × W × 1, with the border's rule.

    `half` is the weights of all images, or one row of them for each.
    """
    source = source.contiguous()
    out = torch.empty(source.shape, dtype=dtype, device=source.device)
    images, height, width, _ = source.shape
    whole, radius = dtype == torch.uint8, padded(half.shape[-1] - 1)
    reach = radius if radius <= _WIDEST else half.shape[-1] - 1
    weights = keep_on_device(half, lambda values: to_device(_filled(values, reach)), ("filled", reach))
    table, ragged = own(sizes, source)
    step = reach + 1 if half.ndim == 2 else 0
    shared = {"RULE": RULES[rule], "PLANES": planes, "RAGGED": ragged, **EXACT}
    if radius > _WIDEST:
        _source().wide_kernel[grid(width, 256, images, height)](
            source, out, weights, table, reach, step, height, width, guard, gain,
            AXIS=axis, WHOLE=whole, BLOCK=256, **shared,
        )  # fmt: skip
    elif axis == 1:
        _source().down_kernel[grid(width, 128, images, -(-height // 16))](
            source, out, weights, table, step, height, width, guard, gain,
            WHOLE=whole, RADIUS=radius, ROWS=16, BLOCK=128, **shared,
        )  # fmt: skip
    else:
        _source().across_kernel[grid(width, 128, images, -(-height // 4))](
            source, out, weights, table, step, height, width, RADIUS=radius, BLOCK=128, **shared
        )
    return out


def gathered(source: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """source[:, rows][:, :, columns] of planes, N × H × W × 1."""
    source = source.contiguous()
    images, height, width, _ = source.shape
    out = source.new_empty((images, len(rows), len(columns), 1))
    _moves().gather_kernel[grid(len(columns), 256, images, len(rows))](
        source, out, rows, columns, height, width, len(rows), len(columns), 0, 0, PLANES=1, BLOCK=256
    )
    return out


def bordered(
    source: Tensor, out: Tensor, size: tuple[int, int], reach: int, rule: str, planes: int, sizes: Any
) -> None:
    """Planes, N × H × W × 1, with borders, into N × `size`; signed bytes are less by 128."""
    images, height, width, _ = source.shape
    table, ragged = own(sizes, source)
    _moves().bordered_kernel[grid(size[1], 256, images, size[0])](
        source, out, table, height, width, *size, reach, LESS=128 if out.dtype == torch.int8 else 0,
        RULE=RULES[rule], PLANES=planes, RAGGED=ragged, BLOCK=256,
    )  # fmt: skip


def line(
    source: Tensor, paths: Tensor, planes: int, reach: int, guard: float, *, sizes: Any = None
) -> Tensor:
    """Copies of planes N × H × W × 1 along paths of `convolution.path_of`, one for each `planes` planes.

    No shift is farther than `reach`.
    """
    source = source.contiguous()
    out = torch.empty_like(source)
    images, height, width, _ = source.shape
    tall, wide = height + 2 * reach, width + 2 * reach
    around = source.new_empty(
        images * tall * wide + BLOCK
    )  # the kernel reads past the end, but uses none of it
    bordered(source, around, (tall, wide), reach, "nearest", planes, sizes)
    table, ragged = own(sizes, source)
    _source().line_kernel[grid(width, 256, images, height)](
        around, out, paths, table, paths.shape[1], height, width, wide, tall, guard,
        PLANES=planes, RAGGED=ragged, BLOCK=256, **EXACT,
    )  # fmt: skip
    return out


COLUMNS, STEP = 32, 64  # results and pixels of a product of matrices
_ROWS = 128


def correlated(source: Tensor, kernel: Any, shift: int, *, planes: int = 1, sizes: Any = None) -> Tensor:
    """Correlation of planes, N × H × W × 1, with a `convolution.IntegerKernel`; borders are mirrored."""
    source = source.contiguous()
    images, height, width, _ = source.shape
    limbs = keep_on_device(kernel.limbs)  # rows × chunks × limbs × COLUMNS × STEP
    down, across = -(-height // _ROWS), -(-width // COLUMNS)
    tall, wide = down * _ROWS + limbs.shape[0] - 1, across * COLUMNS + limbs.shape[1] * STEP
    around = torch.empty((images, tall, wide), dtype=torch.int8, device=source.device)
    bordered(source, around, (tall, wide), kernel.reach, "mirror", planes, sizes)
    out = torch.empty_like(source)
    bias = 128 * kernel.total + (1 << (shift - 12))
    table, ragged = own(sizes, source)
    _source().correlate_kernel[(images * down * across,)](
        around, out, limbs, table, *limbs.shape[:2], height, width, tall, wide, bias, shift,
        LIMBS=limbs.shape[2], PLANES=planes, RAGGED=ragged, ROWS=_ROWS, COLUMNS=COLUMNS, STEP=STEP,
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


def positions(plans: Tensor, count: int, reach: int = 0) -> tuple[Tensor, Tensor]:
    """Corner-aligned samples of sides: the one before each result, −1 outside, and the rest; sides × count.

    `plans` is of `warps.side_plans`, sides × 4; `reach` results before and behind repeat the first and last.
    """
    sides = plans.numel() // 4
    index = torch.empty((sides, count), dtype=torch.int32, device=plans.device)
    fraction = torch.empty((sides, count), dtype=torch.float32, device=plans.device)
    _moves().positions_kernel[grid(count, 256, 1, sides)](
        index, fraction, plans, count, reach, BLOCK=256, **EXACT
    )
    return index, fraction


def zoom(
    source: Tensor, plans: Tensor, last: Tensor, copies: int, guard: float, *, sizes: Any = None
) -> Tensor:
    """`plans` is 2 × images × layers × 4, rows then columns, and `last` the last sample of each.

    There are plans for one image unless there are `sizes`. The image itself counts `copies` times.
    """
    source = dense(source)
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    layers = plans.shape[2]
    share = float(np.float32(1) / np.float32(layers + copies))
    (rows, down), (columns, across) = (positions(plans[i], side) for i, side in enumerate((height, width)))
    table, ragged = own(sizes, source)
    _moves().zoom_kernel[grid(width, 128, images, height)](
        _packed(source), out, rows, down, last[0], columns, across, last[1], table, layers, height, width,
        float(copies), share, guard,
        channels=channels, PLANAR=planar(source), RAGGED=ragged, BLOCK=128, **EXACT,
    )  # fmt: skip
    return out


def displace(source: Tensor, dy: Tensor, dx: Tensor, guard: float, *, sizes: Any = None) -> Tensor:
    """Fields are N × H × W."""
    source = dense(source)
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    table, ragged = own(sizes, source)
    _moves().displace_kernel[grid(width, 128, images, height)](
        _packed(source), out, dy.contiguous(), dx.contiguous(), table, height, width, guard,
        channels=channels, PLANAR=planar(source), RAGGED=ragged, BLOCK=128, **EXACT,
    )  # fmt: skip
    return out


def patches(source: Tensor, kernels: Field, patch: int) -> Tensor:
    """`kernels` is rows × columns of patches × k × k."""
    source = source.contiguous()
    out = torch.empty_like(source)
    images, height, width, channels = source.shape
    _moves().patches_kernel[grid(height * width * channels, BLOCK, images)](
        source, out, keep_on_device(kernels), kernels.shape[2], kernels.shape[1], height, width,
        channels=channels, PATCH=patch, BLOCK=BLOCK, **EXACT,
    )  # fmt: skip
    return out


def scattered(image: Tensor, shifts: Tensor, top: int, left: int) -> Tensor:
    """N × H × W × C after `warps.scatter`; `shifts` is N × passes × rows × columns × 2, int8."""
    image = dense(image)
    passes, rows, columns = shifts.shape[1:4]
    return _scattered(image, shifts, (top, left), passes, (rows, columns), None)


def scattered_ragged(
    image: Tensor, shifts: Tensor, corner: int, passes: int, less: int, *, sizes: Any
) -> Tensor:
    """The same of images of several sizes; all but `less` of their rows and columns are overwritten.

    `shifts` is N rows, each as long as the longest.
    """
    return _scattered(image, shifts, (corner, corner), passes, (less, less), sizes)


def _scattered(
    image: Tensor, shifts: Tensor, corner: tuple[int, int], passes: int, size: tuple[int, int], sizes: Any
) -> Tensor:
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    table, ragged = own(sizes, image)
    _moves().scatter_kernel[grid(height * width, 128, images)](
        image, out, shifts.contiguous().view(torch.int16), table, *corner, passes, *size,
        shifts[0].numel() // 2, height, width,
        channels=channels, PLANAR=planar(image), RAGGED=ragged, BLOCK=128, num_warps=1,
    )  # fmt: skip
    return out
