"""The only place where random bits are born.

Every number is a pure function of (seed, image id, corruption, severity), the name of the stream it
belongs to and its index in that stream. Nothing depends on order, worker, batch or machine. The
generator is Philox4x32-10 (Salmon et al. 2011); a hash of the identity is its key.

Fields use 16 bits a value: two pixels' worth per generated word, and coarse enough that a table of
all outcomes fits in a cache, which is what makes noise fast and exact on every device.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.kernel import kernel

U16 = 65536


@kernel(inline=True)
def _philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """One block: 128 bits of counter in, 128 random bits out, as four uint32 held in uint64."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & low, (p0 >> half) ^ c3 ^ k1, p0 & low
        k0 = (k0 + np.uint64(0x9E3779B9)) & low
        k1 = (k1 + np.uint64(0xBB67AE85)) & low
    return c0, c1, c2, c3


@kernel
def _fill(out: Any, k0: Any, k1: Any, stream: Any, start: Any) -> None:
    """Blocks start, start + 1, … of a stream; `out` is uint32 with four words per block."""
    for i in range(out.shape[0] // 4):
        block = start + np.uint64(i)
        a, b, c, d = _philox(
            block & np.uint64(0xFFFFFFFF), block >> np.uint64(32), stream, np.uint64(0), k0, k1
        )
        out[4 * i] = a
        out[4 * i + 1] = b
        out[4 * i + 2] = c
        out[4 * i + 3] = d


@kernel
def _take(table: Any, bits: Any, out: Any) -> None:
    for i in range(bits.shape[0]):
        out[i] = table[bits[i]]


@kernel
def _span(bits: Any, count: Any, low: Any, out: Any) -> None:
    for i in range(bits.shape[0]):
        out[i] = np.int32((np.uint32(bits[i]) * count) >> np.uint32(16)) + low


@kernel
def _absorb(words: Any, lanes: Any) -> None:
    """Eight multiply–xor hashes side by side, so that the loop becomes vector instructions."""
    for i in range(words.shape[0]):
        for lane in range(8):
            h = (lanes[lane] ^ words[i, lane]) * np.uint64(0x9FB21C651E98DF25)
            lanes[lane] = h ^ (h >> np.uint64(29))


def digest(image: npt.NDArray[np.uint8]) -> str:
    """A name made of an image's content, for images that come without an id. Not cryptographic."""
    flat = np.ascontiguousarray(image).reshape(-1)
    whole = flat.size // 64 * 64
    lanes = np.arange(1, 9, dtype=np.uint64)
    _absorb(flat[:whole].view("<u8").reshape(-1, 8), lanes)
    tail = repr(image.shape).encode() + flat[whole:].tobytes()
    return hashlib.blake2b(lanes.astype("<u8").tobytes() + tail, digest_size=16).hexdigest()


@lru_cache(maxsize=4096)
def _stream(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little")


@lru_cache(maxsize=1)
def normal_quantiles() -> npt.NDArray[np.float64]:
    """The standard normal's value for each of the 65,536 equally likely 16-bit draws."""
    from scipy.special import ndtri  # here, so that the world renders with NumPy and Numba alone

    quantiles: npt.NDArray[np.float64] = ndtri((np.arange(U16) + 0.5) / U16)
    # The mid-points of the outermost bins miss a little of the tails' weight; restore unit variance.
    quantiles /= quantiles.std()
    return quantiles


@dataclass(frozen=True, slots=True)
class Draw:
    """Random numbers for one image under one condition; ask for them by stream name.

    >>> Draw.keyed(0, "a.png", "fog", 3).uniform("angle") == Draw.keyed(0, "a.png", "fog", 3).uniform("angle")
    True
    >>> Draw.keyed(0, "a.png", "fog", 3).uniform("angle") == Draw.keyed(0, "b.png", "fog", 3).uniform("angle")
    False
    """

    key: tuple[int, int]
    identity: tuple[str | int, ...] = ()  # whose numbers these are; only for what is looked up by it

    @classmethod
    def keyed(cls, seed: int, *identity: str | int) -> Draw:
        """The draw that belongs to an identity: usually (image id, corruption, severity)."""
        text = json.dumps([seed, *identity], ensure_ascii=True, separators=(",", ":"))
        digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"stormproof-draw").digest()
        return cls((int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")), identity)

    def words(self, stream: str, count: int) -> npt.NDArray[np.uint32]:
        """The first `count` 32-bit words of a stream."""
        out = np.empty((count + 3) // 4 * 4, np.uint32)
        _fill(out, np.uint64(self.key[0]), np.uint64(self.key[1]), np.uint64(_stream(stream)), np.uint64(0))
        return out[:count]

    def bits(self, stream: str, shape: tuple[int, ...]) -> npt.NDArray[np.uint16]:
        """16 random bits for every element of `shape`, in C order."""
        count = prod(shape)
        return (
            self.words(stream, (count + 1) // 2).astype("<u4", copy=False).view("<u2")[:count].reshape(shape)
        )

    def uniforms(self, stream: str, count: int) -> npt.NDArray[np.float64]:
        """`count` numbers in [0, 1) with 53 random bits each."""
        words = self.words(stream, 2 * count).astype(np.uint64).reshape(count, 2)
        return ((words[:, 0] << np.uint64(21)) ^ (words[:, 1] >> np.uint64(11))).astype(np.float64) * 2.0**-53

    def uniform(self, stream: str, low: float = 0.0, high: float = 1.0) -> float:
        """One number in [low, high)."""
        return low + (high - low) * float(self.uniforms(stream, 1)[0])

    def integer(self, stream: str, count: int) -> int:
        """One integer in [0, count)."""
        return min(int(self.uniform(stream) * count), count - 1)

    def uniform_field(
        self, stream: str, shape: tuple[int, ...], low: float, high: float
    ) -> npt.NDArray[np.float32]:
        """Independent numbers in (low, high), one per element."""
        field = self.bits(stream, shape).astype(np.float32)
        field += np.float32(0.5)
        field *= np.float32((high - low) / U16)
        field += np.float32(low)
        return field

    def normal_field(
        self, stream: str, shape: tuple[int, ...], mean: float, sd: float
    ) -> npt.NDArray[np.float32]:
        """Independent normal numbers, one per element."""
        table = (normal_quantiles() * sd + mean).astype(np.float32)
        out = np.empty(shape, np.float32)
        _take(table, self.bits(stream, shape).reshape(-1), out.reshape(-1))
        return out

    def integer_field(self, stream: str, shape: tuple[int, ...], low: int, high: int) -> npt.NDArray[np.int8]:
        """Independent integers in [low, high), one per element; bounds within int8."""
        out = np.empty(shape, np.int8)
        _span(self.bits(stream, shape).reshape(-1), np.uint32(high - low), np.int32(low), out.reshape(-1))
        return out
