"""LVIS: AP of rare, common and frequent classes, and recall at 300 detections per image.

AP itself follows LVIS' rule wherever annotations are federated (`core.federated`).
"""

from __future__ import annotations

import numpy as np

from stormproof.metrics.coco import MASKS
from stormproof.metrics.cocomatching import Matches
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import Measure, Scored, Weights, mean_of_known, metric
from stormproof.metrics.precision import COCO_POINTS, average_precision

GROUPS = {"APr": ("r", "rare"), "APc": ("c", "common"), "APf": ("f", "frequent")}


def lvis_scored(matches: Matches, weights: Weights, frequency: tuple[str, ...], prefix: str = "") -> Scored:
    """AP by group of classes, and AR at 300 detections."""
    precision, recall = average_precision(matches.judged, weights, COCO_POINTS)
    by_class, found = precision[:, 0, 0].mean(axis=2), recall[:, -1, 0].mean(axis=2)
    values = {f"{prefix}AR300": found}
    for name, (letter, _) in GROUPS.items():
        values[prefix + name] = by_class[:, np.array(frequency) == letter]
    return Scored({name: mean_of_known(table) for name, table in values.items()}, parts=values)


def _measures(prefix: str, what: str) -> list[Measure]:
    groups = [
        Measure(prefix + name, f"LVIS AP of {words} classes, of {what}", "masks" if prefix else "boxes")
        for name, (_, words) in GROUPS.items()
    ]
    recall = f"LVIS AR with 300 detections per image, of {what}"
    return [*groups, Measure(f"{prefix}AR300", recall, "masks" if prefix else "boxes")]


@metric("federated", *_measures("", "boxes"))
def _boxes(objects: Objects, weights: Weights) -> Scored:
    assert objects.truth.federated is not None
    return lvis_scored(objects.boxes, weights, objects.truth.federated.frequency)


@metric("federated masks", *_measures(MASKS, "masks"))
def _masks(objects: Objects, weights: Weights) -> Scored:
    assert objects.truth.federated is not None
    return lvis_scored(objects.masks, weights, objects.truth.federated.frequency, MASKS)
