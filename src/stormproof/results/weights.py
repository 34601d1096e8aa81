"""Weights by identity: which images count in each replicate, and how often.

An image's weights are a function of (seed, image id) alone. Every condition and every model of a comparison
sees the same weights, so that grids and pairs keep their correlation, whatever the order, the shard or the
machine.

Intervals come from random halves of the images. A half varies about its set as the set varies about the
population, and contains no image twice: average precision treats copies of an image as further objects, so
drawing with replacement shows too little spread if classes are rare (docs/adr/0028).
Estimates from part of a grid draw with replacement: their shares are too small to be halved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption, counted
from stormproof.core.randomness import Draw

Weights = npt.NDArray[np.uint8]  # replicates × images
REPLICATES = 200
FEWEST_REPLICATES = 50  # they give a standard error to ± 10 %, two would to ± 70 %
_HALVES, _BOOTSTRAP, _SUBSETS = "halves", "bootstrap", "subsets"  # streams of random words


def require_replicates(count: int) -> int:
    """`count`, if it is enough for an interval."""
    if count < FEWEST_REPLICATES:
        raise InvalidOption(
            f"{counted(count, 'replicate')} are too few for an interval; use at least {FEWEST_REPLICATES}, "
            f"or leave the option out for {REPLICATES}."
        )
    return count


def half_weights(ids: Sequence[str], *, replicates: int = REPLICATES, seed: int = 0) -> Weights:
    """One row per random half: 1 for an image that is in it, 0 for one that is not.

    More replicates continue the rows of fewer, and more images the columns.

    >>> half_weights(["a.png", "b.png"], replicates=5).T.tolist()
    [[1, 0, 1, 0, 0], [0, 1, 1, 0, 1]]
    """
    return np.ascontiguousarray((_words(ids, _HALVES, replicates, seed) >> 31).astype(np.uint8).T)


def subset_weights(units: Sequence[str], size: int, *, subsets: int, seed: int = 0) -> Weights:
    """One row per random subset of `size` units: 1 for the images of a unit that is in it, 0 for the others.

    Each random order of the units is cut into as many subsets as fit, so that every image is in about as many
    subsets as any other; there are at least as many rows as `subsets` says.

    >>> subset_weights(["a", "a", "b", "c", "d"], 2, subsets=4).tolist()
    [[1, 1, 0, 1, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 1], [1, 1, 1, 0, 0]]
    """
    distinct, place = np.unique(np.asarray(units, object).astype(str), return_inverse=True)
    fit = len(distinct) // size
    order = np.argsort(_words(distinct.tolist(), _SUBSETS, max(2, -(-subsets // fit)), seed), axis=0)
    rows = order[: fit * size].T.reshape(-1, size)  # units of each subset
    chosen = np.zeros((len(rows), len(distinct)), np.uint8)
    np.put_along_axis(chosen, rows, 1, axis=1)
    return chosen[:, place]


def poisson_weights(ids: Sequence[str], *, replicates: int = REPLICATES, seed: int = 0) -> Weights:
    """One row per replicate: how often each image was drawn, from a Poisson distribution of mean 1.

    >>> poisson_weights(["a.png", "b.png"], replicates=5).T.tolist()
    [[2, 0, 0, 1, 2], [1, 0, 1, 1, 0]]
    """
    weights = np.searchsorted(_bounds(), _words(ids, _BOOTSTRAP, replicates, seed), side="right")
    return np.ascontiguousarray(weights.astype(np.uint8).T)


def _words(ids: Sequence[str], stream: str, replicates: int, seed: int) -> npt.NDArray[np.uint32]:
    """Random words: images × replicates."""
    words = np.empty((len(ids), replicates), np.uint32)
    for row, name in zip(words, ids, strict=True):
        row[:] = Draw.keyed(seed, name).words(stream, replicates)
    return words


@lru_cache(maxsize=1)
def _bounds() -> npt.NDArray[np.uint64]:
    """The 32-bit words at which a Poisson(1) weight steps up; beyond the twelfth step none is left."""
    masses = [math.exp(-1) / math.factorial(k) for k in range(13)]
    return np.round(np.cumsum(masses) * 2.0**32).astype(np.uint64)
