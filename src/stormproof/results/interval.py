"""How certain a number is: its standard error, its interval, and the probability of a value beyond a bound.

A number comes with its draws: two rows with the number minus its optimism, then a row for each random half
of the images (`results.weights`). The same construction serves scores, aggregates, losses and differences,
and intervals, probabilities and verdicts all follow from it:

    θ − t · se − optimism   to   θ + t · se

`se` is the standard deviation over the halves: half of the images vary about their set as the set varies
about the population. t is Student's, with one degree of freedom less than there are images or halves,
whichever are fewer. Optimism is how
much too high a score is on few images; it moves one end outward, towards the true value, and is never
subtracted from the estimate (docs/adr/0028). Optimism is rather overestimated, which is safe for a score but
unsafe for a ratio to that score. So the second row subtracts only the certain part of the clean score's
optimism, and of the two rows, the one that moves an end further counts.

Where no half differs from another, the spread of 0 says nothing about images that were not seen: up to
`unseen_share` of all images may be of another kind, and the interval reaches as far as those could move the
value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv, chdtri, stdtr, stdtrit

from stormproof.core.sample import Floats
from stormproof.metrics.metric import mean_of_known

FEW = 100  # images below which an interval is printed with a warning
FEWEST = 50  # images below which intervals are not calibrated, so that they decide nothing
LEVEL = 0.95
WRONG = (1 - LEVEL) / 2  # the chance that the true value is beyond one end
THIS_SET = "this set, if every cell were run"
LEADING = 2  # rows before the halves in the draws of a number
_CERTAIN_SHARE = 0.8  # the fraction of a clean score's optimism that is certain
_LEAST_LEFT = 0.1  # the fraction of a score that optimism always leaves
_UNKNOWN_NUMBER = 10**6  # of images
_NO_SPREAD = 1e-12  # standard errors up to this are rounding
_NEAR, _FEW_HITS = 0.1, 5  # a fraction so close to 0 or 1 is skewed, most if fewer images make it up


def interval_target(clips: int | None) -> str:
    """What intervals are for: frames of one clip are alike, so a run on clips says nothing about new images
    of the same clips."""
    return "new images like these" if clips is None else "new clips like these"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, its 95 % interval and standard error; all but the estimate are NaN if too little is known.

    `optimism` is how much too high the estimate is on so few images (too low, if negative); `images` is the
    number of images that show what is scored, `replicates` the number of halves. The interval of a share is
    that of a binomial distribution of as many `trials` as have its standard error.
    """

    estimate: float
    low: float
    high: float
    se: float
    optimism: float = 0.0
    images: int | None = None
    replicates: int | None = None
    trials: float | None = None  # of the binomial interval of a share

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def span(self, scale: float = 100.0, *, digits: int = 1, between: str = " to ", sign: str = "") -> str:
        """Both ends in words, in per cent unless `scale` says otherwise; `sign` is that of a number's format.

        >>> Interval(0.3, 0.284, 0.316, 0.01).span()
        '28.4 to 31.6'
        """
        return between.join(f"{scale * end:{sign}.{digits}f}" for end in (self.low, self.high))

    @property
    def reach(self) -> float:
        """How far its farther end is from the estimate."""
        return max(self.high - self.estimate, self.estimate - self.low)

    def of_fraction(self, most: float = 1.0, *, wrong: float = WRONG) -> Interval:
        """The interval of a fraction, within 0 and `most`.

        A fraction close to 0 or 1 is skewed: its spread misses the rare images that would move it. The end
        away from 0 or 1 is at least that of a binomial distribution (Clopper & Pearson 1934) with the same
        standard error (Korn & Graubard 1998) or, if less than five images make it up, with as many trials as
        images.

        >>> round(Interval(0.0, 0.0, 0.0, 0.0, images=100).of_fraction().high, 4)
        0.0362
        >>> round(Interval(0.02, 0.0, 0.04, 0.01, images=100).of_fraction().high, 4)
        0.0704
        """
        wide = self._with_unseen(max(abs(1 - self.estimate), abs(self.estimate)), wrong)
        if math.isnan(wide.se):
            return wide
        far = max(wide._skewed(self.estimate, wrong), wide._skewed(1 - self.estimate, wrong))
        low, high = wide.low, wide.high
        if self.estimate < _NEAR:
            high = max(high, self.estimate + far + max(0.0, -self.optimism))
        elif self.estimate > 1 - _NEAR:
            low = min(low, self.estimate - far - max(0.0, self.optimism))
        se = max(wide.se, far / _student(self.images, self.replicates, wrong))
        return replace(wide, low=max(0.0, low), high=min(most, high), se=se)

    def of_count(self, most: float, *, wrong: float = WRONG) -> Interval:
        """The interval of a mean count per image, of which an image has at most `most`.

        Few counts vary more than their spread shows, so the upper end is at least that of a Poisson
        distribution (Garwood 1936) with as large a standard error.
        """
        wide = self._with_unseen(most, wrong)
        if math.isnan(wide.se):
            return wide
        high = wide.high
        if wide.se == self.se and self.estimate > 0:
            scale = self.se**2 / self.estimate
            high = max(high, float(chdtri(2 * self.estimate / scale + 2, wrong)) / 2 * scale)
        return replace(wide, low=max(0.0, wide.low), high=min(most, high))

    def of_difference(self, most: float = 1.0, *, wrong: float = WRONG) -> Interval:
        """The interval of a difference of two values between 0 and `most`."""
        return self._with_unseen(most + abs(self.estimate), wrong)

    def _skewed(self, small: float, wrong: float) -> float:
        """How far a binomial interval reaches from a small fraction, away from its end; 0 if it is not
        small."""
        if not self.images or not 0 <= small < _NEAR:
            return 0.0
        few = small * self.images < _FEW_HITS or self.se == 0
        trials = self.images if few else small * (1 - small) / self.se**2
        hits = small * trials
        return float(betaincinv(hits + 1, trials - hits, 1 - wrong)) - small

    def _with_unseen(self, reach: float, wrong: float) -> Interval:
        """If there is no spread, the interval that images of a kind not seen allow, each moving the value by
        `reach`."""
        if math.isnan(self.se) or self.se > _NO_SPREAD or not self.images:
            return self
        far = reach * unseen_share(self.images, wrong=wrong)
        se = far / _student(self.images, self.replicates, wrong)
        return replace(self, low=self.low - far, high=self.high + far, se=se)

    def of_share(self, *, wrong: float = WRONG) -> Interval:
        """The interval of a share: Clopper & Pearson's (1934), of as many trials as have this standard error
        (Korn & Graubard 1998), then widened by the optimism.

        Rare events are skewed: the images that show none of them say little about the upper end.

        >>> rare = Interval(0.01, 0.0, 0.02, 0.005, images=400).of_share()
        >>> round(rare.low, 4), round(rare.high, 4)
        (0.0027, 0.0256)
        >>> round(Interval(0.0, 0.0, 0.0, 0.0, images=100).of_share().high, 4)
        0.0362
        """
        if math.isnan(self.se) or not self.images or not 0 <= self.estimate <= 1:
            return self
        share = self.estimate
        trials = share * (1 - share) / self.se**2 if self.se > _NO_SPREAD else float(self.images)
        reach = _student(self.images, self.replicates, wrong)
        trials *= (_student(None, None, wrong) / reach) ** 2 if self.se > _NO_SPREAD else 1.0
        hits = trials * share
        low = float(betaincinv(hits, trials - hits + 1, wrong)) if share > 0 else 0.0
        high = float(betaincinv(hits + 1, trials - hits, 1 - wrong)) if share < 1 else 1.0
        se = self.se or (high - low) / reach
        low, high = low - max(0.0, self.optimism), high + max(0.0, -self.optimism)
        return replace(self, low=max(0.0, low), high=min(1.0, high), se=se, trials=trials)

    def chance_above(self, bound: float) -> float:
        """The probability of an estimate at least as high, if the true value were at the bound.

        It is below 2.5 % exactly if the whole interval is above the bound.
        """
        if self.trials is not None:
            hits, at = self.trials * self.estimate, bound + max(0.0, self.optimism)
            return float(betainc(hits, self.trials - hits + 1, min(1.0, at))) if hits > 0 else 1.0
        return self._tail(self.estimate - max(0.0, self.optimism) - bound)

    def chance_below(self, bound: float) -> float:
        """The probability of an estimate at least as low, if the true value were at the bound."""
        if self.trials is not None:
            hits, at = self.trials * self.estimate, bound - max(0.0, -self.optimism)
            misses = self.trials - hits
            return 1 - float(betainc(hits + 1, misses, max(0.0, at))) if misses > 0 else 1.0
        return self._tail(bound - self.estimate - max(0.0, -self.optimism))

    def _tail(self, distance: float) -> float:
        if math.isnan(self.se):
            return math.nan
        if self.se == 0:
            return 0.0 if distance > 0 else 1.0
        return float(stdtr(_degrees_of_freedom(self.images, self.replicates), -distance / self.se))

    def as_dict(self) -> dict[str, Any]:
        names = ("estimate", "low", "high", "se", "optimism", "images")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Difference:
    """An interval of a difference, and the probability of one as large by chance if there were none.

    `holm` is that probability corrected for the number of differences tested together.
    """

    interval: Interval
    p: float
    holm: float

    @property
    def clear(self) -> bool:
        """Whether chance is an unlikely explanation, at 5 % for the whole family of differences.

        The interval of a clear difference never contains 0: both follow from the same standard error.
        """
        return self.holm < 1 - LEVEL

    def as_dict(self) -> dict[str, Any]:
        return {**self.interval.as_dict(), "p": self.p, "holm": self.holm, "clear": self.clear}


def draws(values: Floats, optimism: float = math.nan, *, clean: bool = False) -> Floats:
    """The draws of a score: the score minus its optimism, minus only the certain part of it, and every half.

    `values` are the score and its value on every half; `clean` says that other scores are relative to this
    one. If the optimism is unknown, it is estimated from the halves: a bias that falls as 1/images equals the
    gap between half of the images and all of them.

    >>> [round(value, 3) for value in draws(np.array([0.5, 0.4, 0.6, 0.56]), clean=True).tolist()]
    [0.48, 0.484, 0.4, 0.6, 0.56]
    """
    score, halves = values[0], values[1:]
    if math.isnan(optimism):
        optimism = float(mean_of_known(halves)) - score
    least = _LEAST_LEFT * score if score > 0 else -math.inf  # so that ratios to it stay defined
    return np.concatenate(
        [[max(score - share * optimism, least) for share in (1.0, _CERTAIN_SHARE if clean else 1.0)], halves]
    )


def unseen_share(images: int, *, wrong: float = WRONG) -> float:
    """The largest share of all images that may be unlike `images` that are all alike.

    If it were larger, so many alike would have a chance below `wrong`. For 2.5 % it is about 3.69/images.

    >>> round(unseen_share(3), 3), round(unseen_share(1000), 5)
    (0.708, 0.00368)
    """
    return 1 - float(wrong ** (1 / images))


def interval_around(
    estimate: float, drawn: Floats, *, images: int | None = None, wrong: float = WRONG
) -> Interval:
    """The interval of an estimate; the true value is beyond either end with a chance of `wrong`.

    `drawn` is the estimate minus its optimism, in two rows, then its value on every half of the images.
    `images` counts those that show what is scored; a single image shows no spread.

    >>> one = interval_around(0.5, np.array([0.48, 0.49, *[0.4, 0.6] * 100]))
    >>> [round(value, 3) for value in (one.low, one.high, one.se, one.optimism)]
    [0.282, 0.698, 0.1, 0.02]
    """
    every = drawn[LEADING:]
    halves = every[np.isfinite(every)]
    gaps = estimate - drawn[:LEADING]
    optimism = float(gaps[np.argmax(np.abs(gaps))])  # NaN if either is
    single = images is not None and images < 2
    if single or math.isnan(optimism) or len(halves) < max(2, len(every) / 2):
        return Interval(estimate, math.nan, math.nan, math.nan, math.nan, images, len(every))
    se = float(halves.std(ddof=1))
    reach = _student(images, len(every), wrong) * se
    low, high = estimate - reach - max(0.0, optimism), estimate + reach + max(0.0, -optimism)
    return Interval(estimate, low, high, se, optimism, images, len(every))


def paired_differences(
    estimates: Mapping[str, float],
    drawn: Mapping[str, Floats],
    *,
    images: int | Mapping[str, int] | None = None,
    most: float = 1.0,
) -> dict[str, Difference]:
    """Differences that are tested together, with Holm's correction over them.

    `images` counts those that show what is compared, for all differences or for each; `most` is the highest
    value that either side can have.
    """
    shown = images if isinstance(images, Mapping) else dict.fromkeys(estimates, images)
    intervals = {
        name: interval_around(value, drawn[name], images=shown[name]).of_difference(most)
        for name, value in estimates.items()
    }
    chances = {name: _two_sided(interval) for name, interval in intervals.items()}
    corrected = holm(chances)
    return {name: Difference(intervals[name], chances[name], corrected[name]) for name in intervals}


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


def _two_sided(interval: Interval) -> float:
    """The probability of a difference as large either way; below 5 % exactly if the interval excludes 0."""
    if math.isnan(interval.se):
        return math.nan
    return min(1.0, 2 * min(interval.chance_above(0.0), interval.chance_below(0.0)))


def _student(images: int | None, replicates: int | None, wrong: float = WRONG) -> float:
    """How many standard errors an interval reaches on either side."""
    return float(-stdtrit(_degrees_of_freedom(images, replicates), wrong))


def _degrees_of_freedom(images: int | None, replicates: int | None) -> float:
    return min(images or _UNKNOWN_NUMBER, replicates or _UNKNOWN_NUMBER) - 1
