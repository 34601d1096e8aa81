"""What replicates say about a number: standard error, interval, and how sure a difference is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from stormproof.core.sample import Floats

Z = 1.959963984540054  # the normal distribution's 97.5 % point
FEW = 100  # images below which an interval is printed with a warning
NEW_IMAGES = "new images like these"
THIS_SET = "this set, if every cell were run"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, its standard error and its 95 % interval; all NaN where replicates say too little.

    `bias` is how much the mean of the replicates exceeds the estimate: average precision on few images is too
    high, and a replicate holds fewer different images than the set. It is reported and widens the interval,
    and is never subtracted from the estimate.
    """

    estimate: float
    low: float
    high: float
    se: float
    bias: float = 0.0

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """An interval of a difference, and the probability of one as large by chance if there were none.

    `holm` is that probability corrected for the number of differences that were looked at together.
    """

    interval: Interval
    p: float
    holm: float

    @property
    def clear(self) -> bool:
        """Whether chance is no explanation, at 5 % for the whole family of differences."""
        return self.holm < 0.05

    def as_dict(self) -> dict[str, Any]:
        return {**self.interval.as_dict(), "p": self.p, "holm": self.holm, "clear": self.clear}


def around(estimate: float, replicates: Floats, *, images: int | None = None) -> Interval:
    """θ ± (1.96 standard errors + what the replicates show of bias), for a single value (docs/adr/0103).

    `images` are those that show what is scored; of a single image there is no spread to see.

    >>> found = around(0.5, np.array([0.4, 0.6, 0.56]))
    >>> [round(value, 3) for value in (found.low, found.high, found.se, found.bias)]
    [0.273, 0.727, 0.106, 0.02]
    """
    se, bias = _spread(estimate, replicates) if images is None or images > 1 else (math.nan, math.nan)
    half = Z * se + abs(bias)
    return Interval(estimate, estimate - half, estimate + half, se, bias)


def percentile(estimate: float, replicates: Floats) -> Interval:
    """From the 2.5 % to the 97.5 % quantile of the replicates, for a paired difference.

    Of 200 replicates, the 5th from either end, so that a new one is as likely to fall outside as it says;
    NumPy's usual quantile is the 6th, which covers a point less.
    """
    se, bias = _spread(estimate, replicates)
    if math.isnan(se):
        return Interval(estimate, math.nan, math.nan, se, bias)
    low, high = np.nanquantile(replicates, (0.025, 0.975), method="weibull").tolist()
    return Interval(estimate, low, high, se, bias)


def paired(estimates: Mapping[str, float], replicates: Mapping[str, Floats]) -> dict[str, Difference]:
    """Differences that are looked at together, with Holm's correction over them."""
    found = {name: percentile(estimate, replicates[name]) for name, estimate in estimates.items()}
    chances = {name: _chance(interval) for name, interval in found.items()}
    corrected = holm(chances)
    return {name: Difference(found[name], chances[name], corrected[name]) for name in found}


def holm(chances: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction (Holm 1979); a NaN stays one and does not count.

    >>> {name: round(p, 4) for name, p in holm({"fog": 0.01, "snow": 0.04, "frost": 0.03}).items()}
    {'fog': 0.03, 'snow': 0.06, 'frost': 0.06}
    """
    ranked = sorted((p, name) for name, p in chances.items() if not math.isnan(p))
    corrected = dict.fromkeys(chances, math.nan)
    largest = 0.0
    for rank, (p, name) in enumerate(ranked):
        largest = max(largest, min(1.0, p * (len(ranked) - rank)))
        corrected[name] = largest
    return corrected


def _chance(interval: Interval) -> float:
    """Two-sided, from the normal distribution: 200 replicates cannot show a probability below 1 %."""
    if math.isnan(interval.se):
        return math.nan
    if interval.se == 0:
        return 1.0 if interval.estimate == 0 else 0.0
    return float(2 * ndtr(-abs(interval.estimate) / interval.se))


def _spread(estimate: float, replicates: Floats) -> tuple[float, float]:
    """Standard error and bias; NaN if most replicates have no value, as for a class of very few images."""
    finite = replicates[np.isfinite(replicates)]
    if math.isnan(estimate) or len(finite) < max(2, len(replicates) / 2):
        return math.nan, math.nan
    return float(finite.std(ddof=1)), float(finite.mean() - estimate)
