"""LVIS: AP of rare, common and frequent classes, and recall at 300 detections per image.

AP itself follows LVIS' rule wherever annotations are federated (`core.federated`).
"""

from __future__ import annotations

import numpy as np

from stormproof.metrics.coco import MASKS, coco_scored
from stormproof.metrics.cocomatching import Matches
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import Measure, Scored, Weights, mean_of_known, metric

GROUPS = {"APr": ("r", "rare"), "APc": ("c", "common"), "APf": ("f", "frequent")}


def lvis_scored(matches: Matches, weights: Weights, frequency: tuple[str, ...], prefix: str = "") -> Scored:
    """AP by group of classes, and AR at 300 detections."""
    every = slice(None)
    whole = coco_scored(matches, weights, prefix, {"AP": (every, 0)}, {"AR300": (every, 0, -1)})
    parts = {f"{prefix}AR300": whole.parts[f"{prefix}AR300"]}
    optimism = {name: values for name, values in whole.optimism.items() if name in parts}
    for name, (letter, _) in GROUPS.items():
        group = np.array(frequency) == letter
        parts[prefix + name] = whole.per_class[f"{prefix}AP"][:, group]
        if f"{prefix}AP" in whole.optimism:
            optimism[prefix + name] = whole.optimism[f"{prefix}AP"][group]
    return Scored({name: mean_of_known(table) for name, table in parts.items()}, {}, parts, optimism)


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
