"""Federated annotations, as LVIS has them: each image was searched for some classes only.

A class was searched for in an image if an object of it is labelled there, or if the image lists it as absent.
Detections of other classes are neither right nor wrong. Of a class that is not labelled exhaustively, some
objects lack a label: a detection that finds none is not wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stormproof.core.sample import Bools, Floats, Ints

MOST = 300  # detections per image that LVIS counts


@dataclass(frozen=True, slots=True, eq=False)
class Federated:
    """What is known about each image and class: `searched` and `exhaustive` are images × classes.

    `frequency` says for each class in how many training images it occurs: r (rare, up to 10), c (common, up
    to 100) or f (frequent).
    """

    searched: Bools
    exhaustive: Bools
    frequency: tuple[str, ...]

    def of(self, images: Sequence[int] | Ints, classes: Sequence[int]) -> Federated:
        """The part about some images and classes."""
        chosen = np.ix_(np.asarray(images, np.int64), np.asarray(classes, np.int64))
        names = tuple(self.frequency[label] for label in classes)
        return Federated(self.searched[chosen], self.exhaustive[chosen], names)

    def of_images(self, chosen: Ints) -> Federated:
        return self.of(chosen, range(len(self.frequency)))

    def kept(self, image: Ints, labels: Ints, scores: Floats) -> Ints:
        """The detections that count, in their order: the best 300 of each image, of classes searched for."""
        order = np.lexsort((np.arange(len(scores)), -scores, image))
        first = np.searchsorted(image[order], np.arange(len(self.searched)))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - first[image[order]]
        known = labels < len(self.frequency)
        searched = np.zeros(len(labels), np.bool_)
        searched[known] = self.searched[image[known], labels[known]]
        return np.flatnonzero((place < MOST) & searched)
