"""Which objects of a run were found, with their attributes: the share of any selection of them.

Found as in `results.detection_rate`: a detection of the object's class, scored `min_score` or more, matched
to it at IoU 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import Weights, ratio, weighted_sums
from stormproof.results.detection_rate import MIN_SCORE, SCALES
from stormproof.results.interval import WRONG, Interval, draws, interval_around
from stormproof.results.run import Run
from stormproof.results.scoring import weights_of
from stormproof.results.truths import ClassSelection, Truths, check_classes, iter_matches


@dataclass(frozen=True, eq=False)
class Share:
    """The share found of some objects: its value and its value on every random half of the images."""

    values: Floats
    objects: int
    units: int  # images, or clips, that show any of them
    rarer: int  # of those: with a hit or with a miss, whichever are fewer

    @cached_property
    def drawn(self) -> Floats:
        return draws(self.values)

    def interval(self, wrong: float = WRONG) -> Interval:
        """The true share is beyond either end with a chance of `wrong`.

        If misses are rare, the few images that show them are all that the spread is known from, so Student's
        t has as many degrees of freedom.
        """
        known = max(2, self.rarer + 1) if self.rarer else self.units
        found = interval_around(float(self.values[0]), self.drawn, images=known, wrong=wrong)
        return replace(found.of_share(wrong=wrong), images=self.units)


@dataclass(frozen=True, slots=True, eq=False)
class FoundObjects:
    """The objects under one condition: which were found, in which image (by place) they are, and attributes
    by name."""

    hit: Bools
    image: Ints
    attributes: dict[str, Floats]
    unit: Ints  # of each image
    weights: Weights

    def share(self, inside: Bools, images: Bools | None = None) -> Share:
        """The share found of the objects inside, in some of the images if given."""
        if images is not None:
            inside = inside & images[self.image]
        count = self.weights.shape[1]
        columns = [np.bincount(self.image[chosen], minlength=count) for chosen in (inside & self.hit, inside)]
        sums = weighted_sums(self.weights, np.stack(columns, axis=1).astype(np.float64))
        units, hits, misses = (
            len(np.unique(self.unit[self.image[chosen]]))
            for chosen in (inside, inside & self.hit, inside & ~self.hit)
        )
        return Share(ratio(sums[:, 0], sums[:, 1]), int(inside.sum()), units, min(hits, misses))


def iter_found_objects(
    run: Run, conditions: Sequence[str], *,
    classes: ClassSelection, attributes: Sequence[str], replicates: int, min_score: float = MIN_SCORE,
) -> Iterator[tuple[str, FoundObjects]]:  # fmt: skip
    """The objects of some classes under each condition, with 'distance', 'size' or 'occlusion'."""
    run.check()
    if any(text in run.missing for text in conditions):
        run.require_complete("score")  # what was not run is not missed
    check_classes(classes, run.dataset.classes)
    truths = replace(Truths.of_run(run, classes), distances="distance" in attributes)
    if not truths.answered_by(run):
        raise InvalidOption(f"{run.name}: there are no such objects, so no share of them is found.")
    _, unit = np.unique(run.units, return_inverse=True)
    weights = weights_of(run, replicates)
    for text, truth, found in iter_matches(run, truths, conditions, masks=False):
        located = Objects(truth, found).located
        counting = ~truth.excused
        values = {name: SCALES[name].values(truth)[counting] for name in attributes}
        yield text, FoundObjects(located.found_at >= min_score, located.truth_image, values, unit, weights)
