"""What the forms of truth may ask a run for when they collect the input of metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.forms import OBJECTS, Form
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.datasets.dataset import thing_classes
from stormproof.metrics.object_error import MatchingRule
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.task import scored_forms
from stormproof.models.classes import ClassMatch, match_classes
from stormproof.results import rows
from stormproof.results.truths import (
    ClassSelection,
    Truths,
    chosen_classes,
    chosen_labels,
    iter_matches,
)

if TYPE_CHECKING:
    from stormproof.results.run import Run


@dataclass(frozen=True, eq=False)
class Reader:
    """A run as forms see it (`metrics.inputs.RunReader`), for some of its classes and conditions."""

    run: Run
    asked: ClassSelection = None
    conditions: Sequence[str] = ()
    rule: MatchingRule = field(default_factory=MatchingRule)

    @property
    def images(self) -> int:
        return len(self.run.readable)

    @cached_property
    def truths(self) -> Truths:
        return Truths.of_run(self.run, self.asked)

    @cached_property
    def _maps(self) -> ClassMatch:
        return match_classes(self.run.record.model.semantic_classes, self.run.dataset.semantic_classes)

    @property
    def map_classes(self) -> tuple[str, ...]:
        return self._maps.dataset

    @property
    def map_labels(self) -> Ints:
        return np.asarray(self._maps.labels, np.int64)

    @cached_property
    def scored_maps(self) -> tuple[int, ...]:
        model, dataset = self.run.record.model, self.run.dataset
        chosen = chosen_classes(model.semantic_classes, dataset.semantic_classes, self.asked)
        return chosen_labels(self.map_classes, chosen)

    @property
    def things(self) -> Bools:
        countable = thing_classes(self.run.dataset)
        return np.array([name in countable for name in self.map_classes], np.bool_)

    @property
    def person(self) -> int | None:
        return self.truths.person

    @cached_property
    def has_masks(self) -> bool:
        return self.run.has("masks") and self.truths.has_masks

    def pixel_counts(
        self, columns: tuple[str, str, str]
    ) -> Iterator[tuple[str, tuple[Ints, Ints, Ints], Ints]]:
        return rows.read_counts(self.run, self.conditions, columns)

    def by_image(self, column: str) -> Iterator[tuple[str, Floats | None]]:
        return rows.by_image(self.run, self.conditions, column)

    def objects(
        self, *, masks: bool = False, forms: Sequence[str] = ()
    ) -> Iterator[tuple[str, DetectionTruth, Detections]]:
        return iter_matches(self.run, self.truths, self.conditions, masks=masks, forms=forms)

    def forms(self) -> Iterator[Form]:
        """The forms that this run is scored in."""
        for each in scored_forms():
            if each.scored_by and not self.run.has(each.scored_by):
                continue
            if not each.of_objects or (
                self.truths.answered_by(self.run) and (each.name == OBJECTS or self.truths.carry(each.name))
            ):
                yield each
