"""What becomes of the objects of one image under corruption: kept, lost or missed; and what is new.

An object is found by a confident prediction of its class whose box has an IoU of 0.5 or more with its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.boxes import iou

Things = Sequence[Mapping[str, Any]]  # of objects or predictions: the `name` of the class, the `box`
SURE = 0.3  # predictions below this score are ignored
OVERLAP = 0.5  # IoU of a prediction that finds an object


@dataclass(frozen=True, slots=True)
class Fates:
    """For each object whether it was found clean and is found corrupted; and the predictions that are new."""

    found: tuple[tuple[bool, bool], ...]
    new: Things

    @property
    def words(self) -> list[str]:
        """Found under corruption: kept; found clean alone: lost; found in neither: missed."""
        return ["kept" if now else "lost" if was else "missed" for was, now in self.found]

    @property
    def summary(self) -> str:
        """The counts in a sentence; empty without objects."""
        if not self.found:
            return ""
        was, now = (sum(each) for each in zip(*self.found, strict=True))
        return (
            f"{was} of {len(self.found)} objects found clean, {now} corrupted: "
            f"{self.words.count('lost')} lost, {len(self.new)} new."
        )


def find_fates(truth: Things, before: Things, after: Things, *, clean: Things) -> Fates:
    """What became of objects. `clean` are the same objects where the clean image shows them; `before` and
    `after` are the predictions. One of nothing that is there, nor was predicted when clean, is new."""
    pairs = zip(clean, truth, strict=True)
    found = tuple(
        (any(is_same(then, seen) for seen in before), any(is_same(thing, seen) for seen in after))
        for then, thing in pairs
    )
    return Fates(found, [one for one in after if not any(is_same(one, seen) for seen in (*truth, *before))])


def is_same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two outlines are of one object: the same class, and boxes that overlap enough."""
    return a["name"] == b["name"] and float(iou(np.array([a["box"]]), np.array([b["box"]]))[0, 0]) >= OVERLAP


def confident(predictions: Things) -> list[Mapping[str, Any]]:
    """The predictions that count as found objects."""
    return [one for one in predictions if one["score"] >= SURE]
