"""mPC from a part of the grid: the clean run in full, every other cell on its own share of the images.

Average precision on few images is too high, by an amount that depends on the images and the score. Both are
seen on the clean run: c, the clean score on the same shares, beside P, the clean score on all images. With a,
the mean score of the cells on their shares,

    mPC ≈ a − (c − P) · √(a / c)

The correction of the difference (c − P) is too large for a low score and that of the ratio, (c − P) · a / c,
too small; the root between them is empirical (docs/adr/0091, docs/confidence.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stormproof.confidence.interval import Interval, Z
from stormproof.confidence.precision import average_precision, curve, mean_of_known, ratio
from stormproof.metrics.cocomatching import Matches
from stormproof.sample import Floats, Ints

_STEP = 1.15  # the next share is this much larger than the spread so far asks for: spread is itself uncertain


class Cell(Protocol):
    """One condition of a run, to be scored on some of its images with weights."""

    def score(self, images: Ints, weights: npt.NDArray[Any]) -> Floats:
        """By replicate; `weights` are replicates × the images chosen."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """A cell of detections; `thresholds` says over how many IoU thresholds, from 0.5 on, AP is averaged."""

    matches: Matches
    thresholds: int = 10

    def score(self, images: Ints, weights: npt.NDArray[Any]) -> Floats:
        some = self.matches.of_images(images)
        found = curve(some, some.hit[0], some.excused[0], some.inside[0], some.counts[0], self.thresholds)
        return mean_of_known(average_precision(found, weights).mean(axis=2))


@dataclass(frozen=True, slots=True)
class Estimate:
    """mPC and what it came from; `shares` is the mean number of images a corrupted cell was run on."""

    mpc: Interval
    rpc: Interval
    clean: float
    images: int
    shares: float
    inferences: float  # of those of the full grid, a fraction
    by_corruption: Mapping[str, Interval]


def estimate(
    clean: Cell, cells: Mapping[str, Cell], shares: Mapping[str, Ints], *,
    images: int, weights: npt.NDArray[Any], coefficients: Mapping[str, Floats],
) -> Estimate:  # fmt: skip
    """The estimate from cells on their shares of the `images`.

    `coefficients` are the weight of each cell in 'mPC' and in 'by_corruption/…'. The interval is of the value
    that the full grid would give; it narrows to nothing as the shares become the whole set.
    """
    ones = np.ones((1, images))
    every = np.concatenate([ones, weights])  # the first row is the estimate itself
    whole = float(clean.score(np.arange(images), ones)[0])
    a = np.stack([cell.score(shares[text], every[:, shares[text]]) for text, cell in cells.items()])
    c = np.stack([clean.score(shares[text], every[:, shares[text]]) for text in cells])
    mean_share = float(np.mean([len(shares[text]) for text in cells]))
    left = max(0.0, 1 - mean_share / images)  # of a finite set, so much is still unseen
    found = {
        name: _interval(_extrapolated(_mean(row, a), _mean(row, c), whole), left)
        for name, row in coefficients.items()
    }
    mpc = found["mPC"]
    base = whole or float("nan")  # nothing is relative to a clean score of 0
    rpc = Interval(*(value / base for value in (mpc.estimate, mpc.low, mpc.high, mpc.se)))
    done = (1 + len(cells) * mean_share / images) / (1 + len(cells))
    by_corruption = {name.partition("/")[2]: value for name, value in found.items() if "/" in name}
    return Estimate(mpc, rpc, whole, images, mean_share, done, by_corruption)


def next_share(found: Estimate, precision: float) -> int:
    """How many images a cell should have for an interval of ± `precision`; the spread falls as 1/√share."""
    now, n = found.shares, found.images
    if n - now < 1 or found.mpc.half_width <= precision:
        return round(now)
    # var ∝ (1 − m/n)/m, solved for m
    wanted = (precision / found.mpc.half_width) ** 2 * (1 / now - 1 / n) / _STEP
    return min(n, max(round(now) + 2, int(np.ceil(1 / (wanted + 1 / n)))))


def _extrapolated(a: Floats, c: Floats, whole: float) -> Floats:
    result: Floats = a - (c - whole) * np.sqrt(np.divide(a, c, out=np.zeros_like(a), where=c > 0))
    return result


def _mean(row: Floats, values: Floats) -> Floats:
    """Σ row · values over the cells that have a value in a replicate, as if the others were like them."""
    known = ~np.isnan(values)
    return ratio(row @ np.where(known, values, 0.0), row @ known)


def _interval(values: Floats, left: float) -> Interval:
    theta, replicates = float(values[0]), values[1:]
    finite = replicates[np.isfinite(replicates)]
    se = float(finite.std(ddof=1) * np.sqrt(left)) if len(finite) > 1 else float("nan")
    return Interval(theta, theta - Z * se, theta + Z * se, se, float(finite.mean() - theta))
