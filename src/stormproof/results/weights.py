"""Bootstrap weights by identity: how often each image counts in each replicate.

Poisson(1) weights instead of draws with replacement: an image's weight is then a function of (seed, image id)
alone. Every condition and every model of a comparison sees the same weights, so that grids and pairs keep
their correlation, whatever the order, the shard or the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption
from stormproof.core.randomness import Draw

Weights = npt.NDArray[np.uint8]  # replicates × images
REPLICATES = 200
_STREAM = "bootstrap"


def poisson_weights(ids: Sequence[str], *, replicates: int = REPLICATES, seed: int = 0) -> Weights:
    """One row per replicate, one column per image.

    More replicates continue the rows of fewer, and more images the columns.

    >>> poisson_weights(["a.png", "b.png"], replicates=5).T.tolist()
    [[2, 0, 0, 1, 2], [1, 0, 1, 1, 0]]
    """
    if replicates < 2:
        raise InvalidOption(f"{replicates} replicates say nothing about spread; ask for 2 at least.")
    weights = np.empty((len(ids), replicates), np.uint8)
    for row, name in zip(weights, ids, strict=True):
        row[:] = np.searchsorted(_bounds(), Draw.keyed(seed, name).words(_STREAM, replicates), side="right")
    return np.ascontiguousarray(weights.T)


@lru_cache(maxsize=1)
def _bounds() -> npt.NDArray[np.uint64]:
    """The 32-bit words at which a Poisson(1) weight steps up; beyond the twelfth step none is left."""
    masses = [math.exp(-1) / math.factorial(k) for k in range(13)]
    return np.round(np.cumsum(masses) * 2.0**32).astype(np.uint64)
