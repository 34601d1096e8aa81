"""The compiled loops of `randomness`: Philox4x32-10 (Salmon et al. 2011), and fields made from its words."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.kernels import kernel


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
def fill(out: Any, k0: Any, k1: Any, stream: Any, start: Any) -> None:
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
def take(table: Any, bits: Any, out: Any) -> None:
    for i in range(bits.shape[0]):
        out[i] = table[bits[i]]


@kernel
def span(bits: Any, count: Any, low: Any, out: Any) -> None:
    for i in range(bits.shape[0]):
        out[i] = np.int32((np.uint32(bits[i]) * count) >> np.uint32(16)) + low


@kernel
def absorb(words: Any, lanes: Any) -> None:
    """Eight multiply–xor hashes side by side, so that the compiler vectorizes the loop.

    The multiplier is that of rrmxmx, as in XXH3; its products spread every bit well.
    """
    for i in range(words.shape[0]):
        for lane in range(8):
            h = (lanes[lane] ^ words[i, lane]) * np.uint64(0x9FB21C651E98DF25)
            lanes[lane] = h ^ (h >> np.uint64(29))
