"""The draws of a batch: the same Philox counters as `stormproof.core.randomness`, hence the same bits.

All arithmetic is on integers: 32-bit words in 64-bit integers, as on the CPU. Fields are drawn on the device.
Bits are drawn only when something reads them, so that a kernel may draw its own instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.core.randomness import U16, Draw, Key, KeyedDraws, normal_quantiles, stream_number
from stormproof.imaging.gpu import ragged, triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch, Lazy, OneByOne, OnePerImage
from stormproof.imaging.gpu.each import BySize, is_mixed, of_each
from stormproof.imaging.gpu.ragged import Ragged
from stormproof.imaging.gpu.tensors import keep_on_device, take_entries, to_device

_LOW = 0xFFFFFFFF


def philox(block: Tensor, stream: int, k0: Tensor, k1: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four 32-bit words for each block of a stream, in 64-bit integers."""
    c0, c1, c2, c3 = block & _LOW, block >> 32, 0 * block + stream, 0 * block
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = ((p1 >> 32) & _LOW) ^ c1 ^ k0, p1 & _LOW, ((p0 >> 32) & _LOW) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    return c0, c1, c2, c3


_FACTORS = np.array([0xD2511F53, 0xCD9E8D57], np.uint64).reshape(2, 1, 1)
_STEPS = np.array([0x9E3779B9, 0xBB67AE85], np.uint64).reshape(2, 1, 1)
_LOW_WORD, _WORD = np.uint64(_LOW), np.uint64(32)


def philox_words(keys: npt.NDArray[np.int64], stream: int, count: int) -> npt.NDArray[np.uint32]:
    """The first words of a stream for each row of `keys`, on the host; N × count.

    Both halves of a round are one operation: with few words, each costs the same however many it treats.
    """
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    rounds = np.arange(10, dtype=np.uint64).reshape(-1, 1, 1, 1)
    schedule = (keys.T.astype(np.uint64)[..., None] + rounds * _STEPS) & _LOW_WORD  # 10 × 2 × N × 1
    shape = 2, len(keys), len(blocks)
    factors, others = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    factors[0], factors[1] = blocks, stream
    for key in schedule:
        products = factors * _FACTORS
        factors = (products[::-1] >> _WORD) ^ others ^ key
        others = products[::-1] & _LOW_WORD
    words = np.stack((factors[0], others[0], factors[1], others[1]), axis=2)
    return words.reshape(len(keys), -1)[:, :count].astype(np.uint32)


def philox_bits(keys: Tensor, stream: int, count: int) -> Tensor:
    """The first `count` 16-bit numbers of a stream for each row (k0, k1) of `keys`; N × count, int32."""
    blocks = torch.arange(-(-count // 8), device=keys.device)[None]
    words = torch.stack(philox(blocks, stream, keys[:, :1], keys[:, 1:]), dim=2)
    halves = torch.stack((words & 0xFFFF, words >> 16), dim=3).to(torch.int32)
    return halves.reshape(len(keys), -1)[:, :count].contiguous()


def uniforms(keys: Tensor, stream: int, count: int, scale: float, low: float) -> Tensor:
    field = philox_bits(keys, stream, count).to(torch.float32)
    field += 0.5
    field *= scale
    field += low
    return field


def _chosen(keys: Tensor, stream: int, count: int, values: Tensor) -> Tensor:
    return take_entries(values, philox_bits(keys, stream, count))


def _integers(keys: Tensor, stream: int, count: int, low: int, high: int) -> Tensor:
    return ((philox_bits(keys, stream, count) * (high - low) >> 16) + low).to(torch.int8)


class Bits(Lazy):
    """16 random bits for every element."""

    def __init__(self, keys: Tensor, stream: int, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.keys, self.stream = keys, stream

    def make(self) -> Tensor:
        kernel = triton_kernels.philox_bits
        bits = triton_kernels.run(kernel, philox_bits, self.keys, self.stream, prod(self.shape))
        return bits.reshape(len(self.keys), *self.shape)


class Uniforms(Lazy):
    """Numbers in (low, high), one per element."""

    def __init__(self, keys: Tensor, stream: int, shape: tuple[int, ...], low: float, high: float) -> None:
        super().__init__(shape)
        self.keys, self.stream = keys, stream
        self._ends = low, high

    @property
    def scale(self) -> float:
        return float(np.float32((self._ends[1] - self._ends[0]) / U16))

    @property
    def low(self) -> float:
        return float(np.float32(self._ends[0]))

    def make(self) -> Tensor:
        rest = self.stream, prod(self.shape), self.scale, self.low
        field = triton_kernels.run(triton_layers.uniforms, uniforms, self.keys, *rest)
        return field.reshape(len(self.keys), *self.shape)


class Packed(Lazy):
    """Whole numbers of images of several sizes: those of one image without gaps, then unused ones.

    Only primitives that know of several sizes can read them.
    """

    def __init__(self, flat: Tensor, shape: tuple[Any, ...]) -> None:
        super().__init__(shape)
        self.flat = flat

    def make(self) -> Tensor:
        raise BySize

    def part(self, rows: list[int]) -> Tensor:
        """The numbers of some images, all of one size."""
        shape = [int(of_each(side, len(self.flat))[rows[0]]) for side in self.shape]
        return self.flat[rows, : prod(shape)].reshape(len(rows), *shape)


class _ImageDraw(Draw):
    """The draw of one image; its numbers come from a table for the whole batch."""

    __slots__ = ("_draws", "_index")
    _draws: Draws
    _index: int

    def __init__(self, draws: Draws, index: int) -> None:
        object.__setattr__(self, "_draws", draws)  # a draw is frozen
        object.__setattr__(self, "_index", index)

    @property
    def _whole(self) -> Draw:
        return self._draws.draws[self._index]

    @property
    def key(self) -> Key:
        return self._whole.key

    @property
    def identity(self) -> tuple[str | int, ...]:
        return self._whole.identity

    @property
    def time(self) -> float:
        return self._whole.time

    @property
    def streams(self) -> Mapping[str, Key]:
        return self._whole.streams

    def words(self, stream: str, count: int) -> npt.NDArray[np.uint32]:
        own: npt.NDArray[np.uint32] = self._draws.words(stream, count)[self._index]
        return own

    def uniform(self, stream: str, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * float(self._draws.shares(stream)[self._index])


class Draws:
    """`Draw` for a batch of images."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._keys: dict[str, npt.NDArray[np.int64]] = {}
        self._tensors: dict[str, Tensor] = {}
        self._words: dict[tuple[str, int], npt.NDArray[np.uint32]] = {}
        self._shares: dict[str, npt.NDArray[np.float64]] = {}
        self.draws = draws
        self._alike = isinstance(draws, KeyedDraws)  # no clips: every stream has its image's key
        self._other = frozenset(() if self._alike else (name for draw in draws for name in draw.streams))

    @property
    def time(self) -> float:
        """The time of the batch that is farthest from 0; `each` gives every image its own."""
        return 0.0 if self._alike else max((draw.time for draw in self.draws), key=abs)

    def _owner(self, stream: str) -> str:
        return stream if stream in self._other else ""  # all other streams have the same keys

    def _keys_of(self, stream: str) -> npt.NDArray[np.int64]:
        """The keys of a stream for every image."""
        owner = self._owner(stream)
        if owner not in self._keys:
            if isinstance(self.draws, KeyedDraws):
                self._keys[owner] = self.draws.keys
            else:
                self._keys[owner] = np.array([draw.key_of(stream) for draw in self.draws], np.int64)
        return self._keys[owner]

    def _on_device(self, stream: str) -> Tensor:
        owner = self._owner(stream)
        if owner not in self._tensors:
            self._tensors[owner] = to_device(self._keys_of(stream))
        return self._tensors[owner]

    def words(self, stream: str, count: int) -> npt.NDArray[np.uint32]:
        """The first words of a stream of every image, on the host; N × count."""
        if (stream, count) not in self._words:
            self._words[stream, count] = philox_words(self._keys_of(stream), stream_number(stream), count)
        return self._words[stream, count]

    def shares(self, stream: str) -> npt.NDArray[np.float64]:
        """The first number in [0, 1) of a stream of every image, as `Draw.uniforms` makes it."""
        if stream not in self._shares:
            words = self.words(stream, 2).astype(np.uint64)
            bits = (words[:, 0] << np.uint64(21)) ^ (words[:, 1] >> np.uint64(11))
            self._shares[stream] = bits.astype(np.float64) * 2.0**-53
        return self._shares[stream]

    def each_uniform(self, stream: str, low: float, high: float) -> npt.NDArray[np.float64]:
        return low + (high - low) * self.shares(stream)

    def each_integer(self, stream: str, count: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.minimum((self.shares(stream) * count).astype(np.int64), np.subtract(count, 1))

    def each(self, plan: Callable[[Draw], Any]) -> Any:
        """`plan(draw)` for every image; tuples become a tuple of lists, which a recipe can unpack."""
        made = [plan(_ImageDraw(self, index)) for index in range(len(self.draws))]
        if isinstance(made[0], tuple):
            return tuple(OnePerImage(column) for column in zip(*made, strict=True))
        return OnePerImage(made)

    def _only(self) -> Draw:
        if len(self.draws) != 1:
            raise OneByOne
        return _ImageDraw(self, 0)

    def uniforms(self, stream: str, count: int) -> npt.NDArray[np.float64]:
        return self._only().uniforms(stream, count)

    def uniform(self, stream: str, low: float = 0.0, high: float = 1.0) -> float:
        return self._only().uniform(stream, low, high)

    def integer(self, stream: str, count: int) -> int:
        return self._only().integer(stream, count)

    def bits(self, stream: str, shape: tuple[int, ...]) -> Bits:
        return Bits(self._on_device(stream), stream_number(stream), tuple(shape))

    def uniform_field(self, stream: str, shape: tuple[int, ...], low: float, high: float) -> Batch:
        keys, number = self._on_device(stream), stream_number(stream)
        if not is_mixed(shape):
            return Uniforms(keys, number, tuple(shape), low, high)
        sizes, least, most = ragged.sizes_in(shape), *(of_each(end, len(keys)) for end in (low, high))
        numbers = np.stack(((most - least) / U16, least), 1).astype(np.float32)

        def alone(rows: ragged.Rows, size: Size) -> Tensor:
            return Uniforms(keys[rows], number, size, float(least[rows[0]]), float(most[rows[0]])).data

        kernel = triton_layers.uniforms_ragged
        return Ragged(ragged.run(kernel, alone, sizes, keys, number, to_device(numbers)), sizes)

    def normal_field(self, stream: str, shape: tuple[int, ...], mean: float, sd: float) -> Batch:
        keys, number = self._on_device(stream), stream_number(stream)
        table = keep_on_device(_normal_table(mean, sd))
        if is_mixed(shape):
            sizes = ragged.sizes_in(shape)

            def alone(rows: ragged.Rows, size: Size) -> Tensor:
                return _chosen(keys[rows], number, prod(size), table).reshape(-1, *size)

            return Ragged(ragged.run(triton_layers.chosen_ragged, alone, sizes, keys, number, table), sizes)
        field = triton_kernels.run(triton_layers.chosen, _chosen, keys, number, prod(shape), table)
        return Batch(field.reshape(len(self.draws), *shape))

    def integer_field(self, stream: str, shape: tuple[int, ...], low: int, high: int) -> Batch:
        counts = of_each(prod(shape), len(self.draws))
        rest = stream_number(stream), int(counts.max()), low, high
        field = triton_kernels.run(triton_layers.integers, _integers, self._on_device(stream), *rest)
        if is_mixed(shape):
            return Packed(field, tuple(shape))
        return Batch(field.reshape(len(self.draws), *shape))


@lru_cache(maxsize=16)
def _normal_table(mean: float, sd: float) -> npt.NDArray[np.float32]:
    return (normal_quantiles() * sd + mean).astype(np.float32)
