"""Where a score falls below a requirement as a corruption grows: a monotone fit and its crossing.

Scores at several strengths of one corruption on the same images. More corruption is taken to do no good: the
fit is the isotonic regression of the scores, with the clean one at the weak end, and straight lines between
its points. Fitting every bootstrap replicate alike gives the interval of the crossing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.optimize import isotonic_regression

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Floats


class Answer(StrEnum):
    BREAKS = "breaks"
    NEVER = "never in this range"
    WEAKEST = "already below at the weakest strength"
    CLEAN = "already below when clean"


@dataclass(frozen=True, slots=True)
class Seen:
    """A score at one strength: its estimate and its replicates."""

    score: float
    replicates: Floats


@dataclass(frozen=True, slots=True)
class BreakingPoint:
    """Where a score falls below `threshold`. Strengths are None where there is no crossing in the range.

    `low` and `high` bound 95 % of the replicates' crossings; −∞ and +∞ where they lie outside the range, or
    where most replicates show no object.
    """

    answer: Answer
    threshold: float
    strength: float | None
    low: float
    high: float
    clean: float
    scores: Mapping[float, float]  # strength → score, by rising strength

    @property
    def confirmed(self) -> bool:
        """Whether a score on the weak side of the interval meets the threshold and one beyond it does not."""
        above = [score for strength, score in self.scores.items() if strength <= self.low]
        below = [score for strength, score in self.scores.items() if strength >= self.high]
        return bool(above and below) and above[-1] >= self.threshold > below[0]


Look = Callable[[Sequence[float]], Mapping[float, Seen]]


def crossing(strengths: Floats, scores: Floats, threshold: float) -> float:
    """Where the falling monotone fit goes below the threshold; ∓∞ before the first and after the last.

    >>> round(crossing(np.array([1.0, 2, 3]), np.array([0.6, 0.5, 0.2]), 0.4), 3)
    2.333
    """
    fit = isotonic_regression(scores, increasing=False).x
    if fit[0] < threshold:
        return -math.inf
    if fit[-1] >= threshold:
        return math.inf
    after = int(np.argmax(fit < threshold))
    share = (fit[after - 1] - threshold) / (fit[after - 1] - fit[after])
    return float(strengths[after - 1] + share * (strengths[after] - strengths[after - 1]))


def breaking_point(clean: Seen, seen: Mapping[float, Seen], threshold: float) -> BreakingPoint:
    """The crossing of what has been seen, with its interval."""
    strengths = np.array(sorted(seen))
    table = np.stack([seen[s].replicates for s in strengths.tolist()])
    scores = np.array([seen[s].score for s in strengths.tolist()])
    held = dict(zip(strengths.tolist(), scores.tolist(), strict=True))
    if not np.isfinite([clean.score, *scores]).all():
        raise InvalidOption(
            "These images have no score: none of them shows an object. Search on more images."
        )
    # The fit may not rise above the clean score: corruption does no good.
    point = crossing(strengths, np.minimum(scores, clean.score), threshold)
    capped = np.minimum(table, clean.replicates)
    known = capped[:, np.isfinite(capped).all(axis=0)]  # of very few images, a replicate may show nothing
    replicates = np.array([crossing(strengths, column, threshold) for column in known.T])
    low, high = -math.inf, math.inf
    if 2 * len(replicates) >= capped.shape[1]:
        low, high = np.quantile(replicates, (0.025, 0.975), method="inverted_cdf").tolist()
    if clean.score < threshold:
        answer = Answer.CLEAN
    elif point == -math.inf:
        answer = Answer.WEAKEST
    else:
        answer = Answer.NEVER if point == math.inf else Answer.BREAKS
    strength = point if answer is Answer.BREAKS else None
    return BreakingPoint(answer, threshold, strength, low, high, clean.score, held)


def search(
    look: Look, clean: Seen, first: Sequence[float], threshold: float, *, tolerance: float, digits: int = 2
) -> BreakingPoint:
    """Look at the `first` strengths, then where the fit crosses until neighbours are `tolerance` apart, and
    last on either side of the interval, which confirms it.

    Only the strengths asked for are run, all on the same images. `digits` are those of a strength.
    """
    if len(first) < 2:
        raise InvalidOption(f"A search needs two strengths at least, not {len(first)}.")
    seen = dict(look(first))
    lowest, highest = min(first), max(first)
    found = breaking_point(clean, seen, threshold)
    while found.strength is not None:
        asked = round(found.strength, digits)
        below = max((s for s in seen if s <= found.strength), default=lowest)
        above = min((s for s in seen if s >= found.strength), default=highest)
        if above - below <= tolerance:
            break
        if asked - below < tolerance / 4 or above - asked < tolerance / 4:
            asked = round((below + above) / 2, digits)
        if asked in seen:
            break
        seen |= look([asked])
        found = breaking_point(clean, seen, threshold)
    if found.strength is None:
        return found
    for _ in range(3):  # each side moves the interval a little, and may ask for one more
        sides = [
            round(min(max(edge, lowest), highest), digits)
            for edge in (found.low - tolerance / 2, found.high + tolerance / 2)
        ]
        asked_sides = [side for side in dict.fromkeys(sides) if side not in seen]
        if found.confirmed or not asked_sides:
            break
        seen |= look(asked_sides)
        found = breaking_point(clean, seen, threshold)
    return found
