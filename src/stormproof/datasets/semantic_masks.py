"""Semantic truth made from the masks of objects: `coco:val.json,semantic=person`, or `[person,car]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.sample import Instances, SemanticMap, Truth
from stormproof.datasets.dataset import Labels

BACKGROUND = "background"
_MOST = 254  # in one byte, beside background and pixels without truth


def listed_classes(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The classes that an option names, in its order: `person`, or `[person,car]`.

    >>> listed_classes("[car, person]", ("person", "car", "dog"))
    ('car', 'person')
    """
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    names = tuple(name.strip() for name in inner.split(","))
    for name in names:
        if name not in known:
            raise UnknownName("class in semantic=", name, known, f"Classes: {', '.join(known[:8])} ….")
    if len({*names}) < len(names):
        raise InvalidOption(f"semantic={text} names a class twice.")
    if len(names) > _MOST:
        raise InvalidOption(f"semantic= names {len(names)} classes; a map holds at most {_MOST}.")
    return names


@dataclass(frozen=True, eq=False)
class MaskMaps(Labels):
    """The truth of another reader, with a semantic map of the masks of some classes.

    `places` is the map's label for each class of objects, 0 for those that are background. Where masks
    overlap, the smaller object is in front. Pixels of crowds and ignored objects of the named classes are not
    scored, unless another object covers them.
    """

    labels: Labels
    places: tuple[int, ...]

    def size(self, index: int) -> tuple[int, int] | None:
        return self.labels.size(index)

    def truth(self, index: int) -> Truth:
        known, size = self.labels.truth(index), self.labels.size(index)
        if size is None or known.instances is None:
            raise InvalidOption("semantic= needs the height and width of every image in the file.")
        return Truth(known.instances, SemanticMap(draw_masks(known.instances, self.places, size)))


def draw_masks(objects: Instances, places: Sequence[int], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """The map of some objects: large ones first, so that small ones stay visible; excused ones before all."""
    plane = np.zeros(size, np.uint8)
    masks = objects.masks or ()
    excused = objects.crowd | objects.ignore
    order = sorted(range(len(masks)), key=lambda k: (not excused[k], -masks[k].area))
    for k in order:
        if label := places[int(objects.labels[k])]:
            plane[masks[k].to_mask()] = 255 if excused[k] else label
    return plane
