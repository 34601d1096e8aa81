"""How many images would decide what the images so far leave open.

A standard error falls as 1/√images, and so, at most, does optimism. But the estimate moves too: if the images
so far put it one standard error from the bound, the true value may be on the bound or on its other side. So
the number given is the one at which a verdict, either way, has a chance of 80 % given what was seen
(predictive power, Spiegelhalter, Freedman & Blackburn 1986, with a flat prior). With m, the distance from the
bound in standard errors, and r times as many images, the estimate will be m·√r ± √(r − 1) of its own standard
errors from the bound.

An estimate within half a standard error of the bound may as well be on it, where no number of images decides:
then no number is given. docs/confidence.md says how often the number was right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import ndtr, ndtri

from stormproof.results.interval import FEWEST, WRONG, Interval
from stormproof.results.scores import Scores

LIKELY = 0.8  # the chance of a verdict at the number given
NEAREST = 0.5  # standard errors from the bound below which no number means anything
MOST = 20_000  # images above which the number itself is not given
_FEWEST_SEEN = 20  # images that show a spread at all


@dataclass(frozen=True, slots=True)
class Levels:
    """The chance of a wrong verdict above the bound, and of one below it."""

    above: float = WRONG
    below: float = WRONG


def images_to_decide(
    seen: Interval, bound: float, images: int, level_at: Callable[[int], Levels] = lambda _: Levels()
) -> float | None:
    """About how many images like these would likely decide on which side of a bound the true value is.

    `seen` is the interval from `images` images; `level_at` is how strictly a number of images is judged.
    Infinite if more than `MOST` would be needed, None if no number means anything. Two digits, rounded up.

    >>> images_to_decide(Interval(0.03, -0.01, 0.07, 0.02, images=100), 0.0, 100)
    690.0
    """
    if not seen.se > 0 or (seen.images or 0) < _FEWEST_SEEN:  # also if it is unknown
        return None
    distance = (seen.estimate - bound) / seen.se
    if abs(distance) < NEAREST:
        return None
    optimism = seen.optimism / seen.se
    if _chance(distance, optimism, MOST / images, level_at(MOST)) < LIKELY:
        return math.inf
    low, high = math.log(images), math.log(max(MOST, images + 1))
    while high - low > 0.002:
        middle = (low + high) / 2
        number = math.exp(middle)
        enough = _chance(distance, optimism, number / images, level_at(round(number))) >= LIKELY
        low, high = (low, middle) if enough else (middle, high)
    return _two_digits(max(FEWEST, math.exp(high)))


def _chance(distance: float, optimism: float, times: float, level: Levels) -> float:
    """The chance of a verdict on so many times the images."""
    if times <= 1:
        return 0.0
    above = max(0.0, optimism) - ndtri(level.above)
    below = max(0.0, -optimism) - ndtri(level.below)
    mean, spread = distance * math.sqrt(times), math.sqrt(times - 1)
    return float(ndtr((mean - above) / spread) + ndtr((-mean - below) / spread))


def _two_digits(number: float) -> float:
    """Rounded up to two digits.

    >>> _two_digits(101.0), _two_digits(649.9), _two_digits(70.0)
    (110.0, 650.0, 70.0)
    """
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit - 1e-9) * unit


def advice(number: float | None, scores: Scores) -> str:
    """A number of images in words, and how to add them; empty if there is none.

    'About 340 images like these would decide in three of four cases (the dataset has 500): …'
    """
    if number is None or scores.record is None:
        return ""
    dataset, run = scores.record.dataset.images, scores.record.images
    if math.isinf(number):
        return f"More than {MOST:,} images like these would be needed to decide."
    said = f"About {number:,.0f} images like these would decide in three of four cases"
    if number <= dataset:
        return f"{said} (the dataset has {dataset:,}): repeat the run's command with --limit {number:.0f}."
    rest = f" ({run} of them were run)" if run < dataset else ""
    return f"{said}; the dataset has only {dataset:,}{rest}."
