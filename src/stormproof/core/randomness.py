"""The only source of random bits.

Every number is a pure function of (seed, image id, corruption, severity), the name of the stream it
belongs to and its index in that stream. Nothing depends on order, worker, batch or machine. The
generator is Philox4x32-10 (Salmon et al. 2011), keyed by a hash of the identity. In a clip, streams that
belong to the camera or the scene are keyed by the clip instead of the image.

Fields use 16 bits per value: two values per generated word, and a table of all outcomes fits in a cache,
which makes noise fast and exact on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii
from math import prod
from types import ModuleType
from typing import Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from stormproof.core.identity import blake2b, compact_json

U16 = 65536

T = TypeVar("T")
Key = tuple[int, int]

# What random numbers are tied to in a clip: the frame, so they are drawn anew (sensor noise); the camera,
# so that they stay (dirt); or the scene, so that they stay and move with time (rain). For single images the
# choice makes no difference.
Owner = Literal["frame", "camera", "scene"]
OWNERS: tuple[Owner, ...] = ("frame", "camera", "scene")


@dataclass(frozen=True, slots=True)
class Frame:
    """The identity of an image in a clip: its id, its sequence, and its time in seconds.

    An image without a sequence is identified by its id alone; wherever a frame is taken, so is a plain id.
    """

    id: str
    sequence: str = ""
    time: float = 0.0


@cache
def _loops() -> ModuleType:
    """The compiled loops, imported on first use: draws on a GPU do not need Numba."""
    from stormproof.core import philox

    return philox


def digest(image: npt.NDArray[np.uint8]) -> str:
    """A hash of an image's content, for images without an id. Not cryptographic."""
    flat = np.ascontiguousarray(image).reshape(-1)
    whole = flat.size // 64 * 64
    lanes = np.arange(1, 9, dtype=np.uint64)
    _loops().absorb(flat[:whole].view("<u8").reshape(-1, 8), lanes)
    tail = repr(image.shape).encode() + flat[whole:].tobytes()
    return blake2b(lanes.astype("<u8").tobytes() + tail, digest_size=16).hexdigest()


@lru_cache(maxsize=4096)
def stream_number(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little")


def _ndtri(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Quantiles of the normal distribution by SciPy or, without SciPy, by torch: both use Cephes."""
    try:
        from scipy.special import ndtri  # here: rendering the world needs NumPy and Numba alone

        return np.asarray(ndtri(shares))
    except ImportError:
        import torch

        return np.asarray(torch.special.ndtri(torch.from_numpy(shares)).numpy())


@lru_cache(maxsize=1)
def normal_quantiles() -> npt.NDArray[np.float64]:
    """The standard normal's value for each of the 65,536 equally likely 16-bit draws."""
    quantiles = _ndtri((np.arange(U16) + 0.5) / U16)
    # The mid-points of the outermost bins cut the tails a little; restore unit variance.
    quantiles /= quantiles.std()
    return quantiles


def _text(identity: list[str | int]) -> bytes:
    return compact_json(identity).encode()


def _hash(text: bytes) -> bytes:
    return blake2b(text, digest_size=8, person=b"stormproof-draw").digest()


@dataclass(frozen=True, slots=True)
class Draw:
    """Random numbers for one image under one condition; ask for them by stream name.

    >>> Draw.keyed(0, "a.png", "fog", 3).uniform("angle") == Draw.keyed(0, "a.png", "fog", 3).uniform("angle")
    True
    >>> Draw.keyed(0, "a.png", "fog", 3).uniform("angle") == Draw.keyed(0, "b.png", "fog", 3).uniform("angle")
    False
    """

    key: Key
    identity: tuple[str | int, ...] = ()  # of the image, for recipes that look something up by it
    time: float = 0.0  # seconds by which the scene has moved; 0 for a single image
    streams: Mapping[str, Key] = field(default_factory=dict, hash=False)  # keys of those with another owner

    @classmethod
    def keyed(cls, seed: int, *identity: str | int) -> Draw:
        """The draw for an identity: usually (image id, corruption, severity)."""
        digest = _hash(_text([seed, *identity]))
        return cls((int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")), identity)

    def each(self, plan: Callable[[Draw], T]) -> T:
        """`plan(draw)`; draws of a batch return one result per image.

        For numbers that the host needs before it touches pixels, such as the path of a motion. A recipe that
        asks for them this way runs once for a whole batch.
        """
        return plan(self)

    def key_of(self, stream: str) -> Key:
        return self.streams.get(stream, self.key)

    def words(self, stream: str, count: int) -> npt.NDArray[np.uint32]:
        """The first `count` 32-bit words of a stream."""
        out = np.empty((count + 3) // 4 * 4, np.uint32)
        k0, k1 = self.key_of(stream)
        _loops().fill(out, np.uint64(k0), np.uint64(k1), np.uint64(stream_number(stream)), np.uint64(0))
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

    def each_uniform(self, stream: str, low: float, high: float) -> float:
        """`uniform`; draws of a batch return an array, one number per image."""
        return self.uniform(stream, low, high)

    def each_integer(self, stream: str, count: int) -> int:
        """`integer`; draws of a batch return an array, and take one for `count`."""
        return self.integer(stream, int(count))

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
        _loops().take(table, self.bits(stream, shape).reshape(-1), out.reshape(-1))
        return out

    def integer_field(self, stream: str, shape: tuple[int, ...], low: int, high: int) -> npt.NDArray[np.int8]:
        """Independent integers in [low, high), one per element; bounds within int8."""
        out = np.empty(shape, np.int8)
        _loops().span(
            self.bits(stream, shape).reshape(-1), np.uint32(high - low), np.int32(low), out.reshape(-1)
        )
        return out


class KeyedDraws(Sequence[Draw]):
    """`Draw.keyed(seed, id, *rest)` for many ids: hashed in one pass, each `Draw` made when it is asked for.

    >>> KeyedDraws(0, ["a.png", "b.png"], "fog", 3)[1] == Draw.keyed(0, "b.png", "fog", 3)
    True
    """

    def __init__(self, seed: int, ids: Sequence[str], *rest: str | int) -> None:
        self.ids, self.rest = ids, rest
        # The JSON text of (seed, id, *rest), of which only the id changes.
        before, after = _text([seed])[:-1] + b",", b"," * bool(rest) + _text([*rest])[1:]
        hashes = [_hash(before + encode_basestring_ascii(name).encode() + after) for name in ids]
        self.keys = np.frombuffer(b"".join(hashes), "<u4").reshape(-1, 2).astype(np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Draw: ...

    @overload
    def __getitem__(self, index: slice) -> KeyedDraws: ...

    def __getitem__(self, index: int | slice) -> Draw | KeyedDraws:
        if isinstance(index, int):
            k0, k1 = self.keys[index].tolist()
            return Draw((k0, k1), (self.ids[index], *self.rest))
        part = KeyedDraws.__new__(KeyedDraws)
        part.ids, part.rest, part.keys = self.ids[index], self.rest, self.keys[index]
        return part
