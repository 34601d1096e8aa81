"""Which of several numbers is the highest or the lowest, beyond chance.

Of fifteen equal numbers, one is always the lowest, so naming it needs a test. A number is a leader unless a
rival is clearly ahead of it: their paired difference, tested at 2.5 % over all rivals (Bonferroni). So the
number that is truly first is among the leaders for at least 97.5 % of sets of images (comparisons with the
best, Hsu 1996). Leaders are named only if there are few of them. If all numbers are equal, names come up in
about 5 % of sets of two, 1 % of three, and fewer of more (`tests/results/test_leaders.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from stormproof.core.sample import Floats
from stormproof.results.interval import LEVEL, interval_around

_NAMED = 4  # leaders that a sentence can name


def leaders(
    values: Mapping[str, float], drawn: Mapping[str, Floats], *, highest: bool, images: int | None = None
) -> list[str]:
    """The names that may be the highest (or the lowest) of all, the first of them first.

    `drawn` are the draws of each value (`results.interval.draws`), over the same halves of the images.

    >>> import numpy as np
    >>> halves = np.random.default_rng(0).normal(0, 0.01, (3, 202))
    >>> values = {"fog": 0.30, "snow": 0.31, "frost": 0.50}
    >>> drawn = {name: value + noise for (name, value), noise in zip(values.items(), halves)}
    >>> leaders(values, drawn, highest=True), leaders(values, drawn, highest=False)
    (['frost'], ['fog', 'snow'])
    """
    sign = 1 if highest else -1
    allowed = (1 - LEVEL) / 2 / max(1, len(values) - 1)

    def beats(rival: str, name: str) -> bool:
        ahead = sign * (values[rival] - values[name])
        if not ahead > 0:
            return False
        gap = interval_around(ahead, sign * (drawn[rival] - drawn[name]), images=images)
        return gap.chance_above(0.0) < allowed  # False where too little is known

    ordered = sorted(values, key=lambda name: sign * values[name], reverse=True)
    return [name for name in ordered if not any(beats(rival, name) for rival in ordered)]


def standouts(
    values: Mapping[str, float], drawn: Mapping[str, Floats], *, highest: bool, images: int | None = None
) -> list[str]:
    """The leaders, if there are few enough to stand out: at most half of all, and at most four; else none."""
    first = leaders(values, drawn, highest=highest, images=images)
    return first if len(first) <= min(_NAMED, max(1, len(values) // 2)) else []
