"""An instance and a semantic network as one panoptic model: `panoptic:INSTANCES,semantic=SEMANTIC`.

    panoptic:builtin:street-masks,semantic=builtin:street-context
    panoptic:onnx:masks.onnx\\,score=0.1,semantic=hf:segformer

Commas inside either spec are written `\\,`. The rule is that of Kirillov et al. 2019, section 7, with the
numbers of panopticapi. The predictions of both networks are kept, so that boxes, masks and semantic maps are
scored next to panoptic quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Image, Ints, Prediction, panoptic_map
from stormproof.datasets.dataset import Dataset, thing_classes
from stormproof.models.classes import is_background, match_classes
from stormproof.models.model import ADAPTERS, Model, Precomputed, Unbound, fingerprint


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How objects and a semantic map become segments.

    Objects that score below `score` are left out. The most confident takes its pixels first; one with more
    than `overlap` of its mask taken is dropped. Classes of stuff fill what is left; those of fewer than
    `area` pixels are dropped.
    """

    score: float = 0.5
    overlap: float = 0.5
    area: int = 64 * 64

    def merge(self, found: Prediction, stuff: npt.NDArray[np.int64], labels: Ints) -> npt.NDArray[np.int32]:
        """The panoptic map. `stuff` holds a class for each pixel, −1 where there is none; `labels` are the
        classes of the objects, −1 for those to leave out."""
        ids, classes = np.zeros(stuff.shape, np.int64), dict[int, int]()
        for k in np.argsort(-found.scores, kind="stable").tolist():
            if found.scores[k] < self.score or labels[k] < 0 or found.masks is None:
                continue
            mask = found.masks[k].to_mask()
            free = mask & (ids == 0)
            area, left = np.count_nonzero(mask), np.count_nonzero(free)
            if left and (area - left) / area <= self.overlap:
                classes[len(classes) + 1] = int(labels[k])
                ids[free] = len(classes)
        rest = np.where(ids == 0, stuff, -1)
        for label, pixels in zip(*np.unique(rest, return_counts=True), strict=True):
            if label >= 0 and pixels >= self.area:
                classes[len(classes) + 1] = int(label)
                ids[rest == label] = len(classes)
        return panoptic_map(ids, classes)


@dataclass(frozen=True, eq=False)
class Merged:
    """The two networks as one model. Its maps have the semantic network's classes, then those that only the
    instance network has.

    `things` are the classes of objects that become segments. Once it is bound to a dataset, these are the
    dataset's things, and all other classes are stuff; before that, all that the instance network knows.
    """

    instances: Model
    semantic: Model
    rule: MergeRule
    things: tuple[str, ...]

    def bind(self, dataset: Dataset) -> Self:
        """The same model with the dataset's division into things and stuff."""
        return replace(self, things=thing_classes(dataset))

    @property
    def name(self) -> str:
        return f"{self.instances.name}+{self.semantic.name}"

    @property
    def classes(self) -> tuple[str, ...]:
        return self.instances.classes

    @cached_property
    def semantic_classes(self) -> tuple[str, ...]:
        held = match_classes(self.classes, self.semantic.semantic_classes)
        return (*self.semantic.semantic_classes, *held.unmatched_model)

    @cached_property
    def fingerprint(self) -> str:
        parts = [self.instances.fingerprint, self.semantic.fingerprint]
        rule = [self.rule.score, self.rule.overlap, self.rule.area]
        return fingerprint((), {"merged": parts, "rule": rule, "things": self.things})

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        both = zip(self.instances(images), self.semantic(images), strict=True)
        return [self._merged(objects, areas) for objects, areas in both]

    def _merged(self, objects: Prediction, areas: Prediction) -> Prediction:
        if areas.semantic is None or (len(objects) and objects.masks is None):
            lacking = "semantic map" if areas.semantic is None else "masks"
            name = self.semantic.name if areas.semantic is None else self.instances.name
            raise InvalidOption(f"{name} returned no {lacking}; a panoptic map is made of masks and a map.")
        stuff, things = self._tables
        panoptic = self.rule.merge(objects, stuff[areas.semantic], things[objects.labels])
        return replace(objects, semantic=areas.semantic, confidence=areas.confidence, panoptic=panoptic)

    @cached_property
    def _tables(self) -> tuple[Ints, Ints]:
        """The class of each value of a semantic map, −1 for things; and of each label of objects, −1 for
        stuff."""
        own = np.array(match_classes(self.classes, self.semantic_classes).labels, np.int64)
        things = np.where(np.array(match_classes(self.classes, self.things).labels) >= 0, own, -1)
        stuff = np.full(1 << 16, -1)
        counted = match_classes(self.semantic.semantic_classes, self.things).pairs
        for value, (name, label) in enumerate(counted):
            if label < 0 and not is_background(name) and name.strip():
                stuff[value] = value
        return stuff, things


@ADAPTERS.declare("panoptic")
def open_merged(
    main: str, *, semantic: str, score: float = 0.5, overlap: float = 0.5, area: int = 64 * 64
) -> Merged:
    """Open the instance network `main` and the network `semantic`, both by their specs.

    `score`, `overlap` (both from 0 to 1) and `area` (in pixels) are the numbers of the rule.
    """
    from stormproof.models import load_model

    if not (0 <= score <= 1 and 0 <= overlap <= 1 and area >= 0):
        raise InvalidOption(
            f"score={score}, overlap={overlap}, area={area}: give two fractions and a number of pixels."
        )
    objects, areas = (_network(load_model(spec), spec) for spec in (main, semantic))
    if not objects.classes or not areas.semantic_classes:
        bare = main if not objects.classes else semantic
        raise InvalidOption(f"{bare}: name the classes, so that things and stuff can be told apart.")
    return Merged(objects, areas, MergeRule(score, overlap, area), objects.classes)


def _network(model: Model | Precomputed, spec: str) -> Model:
    if isinstance(model, Precomputed | Unbound):
        raise InvalidOption(f"{spec}: only networks can be merged; this one needs to know the dataset.")
    return model
