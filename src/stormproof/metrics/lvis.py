"""LVIS: AP of rare, common and frequent classes, and recall at 300 detections per image.

AP itself follows LVIS' rule wherever annotations are federated (`core.federated`), and so do error types, LRP
and whatever else excuses crowds: where a class is not labelled exhaustively, the whole image is a crowd of
it, so that a detection which finds no object is not wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stormproof.core.federated import Federated
from stormproof.core.sample import RLE
from stormproof.metrics.coco import MASKS, coco_scored
from stormproof.metrics.cocomatching import Matches
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import Calibrated, Measure, Scored, Weights, mean_of_known, metric
from stormproof.metrics.records import OBJECT_COLUMNS, DetectionTruth, select

_CALIBRATED: dict[str, Calibrated] = {
    "APr": ((8, 50), (80, 100)),
    "APc": ((80, 50),),
    "APf": ((80, 50),),
    "AR300": ((80, 50),),
}
_FAR = 1e6  # pixels: beyond any image
GROUPS = {"APr": ("r", "rare"), "APc": ("c", "common"), "APf": ("f", "frequent")}


def with_regions(
    truth: DetectionTruth, federated: Federated, sizes: Sequence[tuple[int, int] | None]
) -> DetectionTruth:
    """The truth, with a crowd as large as the image for each class of it that is not labelled exhaustively.

    `sizes` are those of images, for the masks of crowds; None where nothing has a mask.
    """
    image, labels = np.nonzero(~federated.exhaustive)
    count, order = len(image), np.argsort(np.concatenate([truth.image, image]), kind="stable")
    boxes = np.tile([-_FAR, -_FAR, _FAR, _FAR], (count, 1))
    added = DetectionTruth(
        truth.ids, truth.classes, image, boxes, labels, np.ones(count, np.bool_), np.zeros(count, np.bool_),
        np.full(count, np.inf), tuple(_whole(sizes[i]) for i in image.tolist()),
        data={name: np.full((count, *values.shape[1:]), np.nan) for name, values in truth.data.items()},
    )  # fmt: skip
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(truth, name), getattr(added, name)])
        for name in ("image", "track", *OBJECT_COLUMNS)
    }
    data = {name: np.concatenate([values, added.data[name]]) for name, values in truth.data.items()}
    both = replace(truth, masks=truth.masks + added.masks, data=data, federated=federated, **joined)
    return select(both, order)


def _whole(size: tuple[int, int] | None) -> RLE | None:
    return None if size is None else RLE(size, np.array([0, size[0] * size[1]], np.uint32))


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


@metric("federated", *_measures("", "boxes"), calibrated=_CALIBRATED)
def _boxes(objects: Objects, weights: Weights) -> Scored:
    assert objects.truth.federated is not None
    return lvis_scored(objects.boxes, weights, objects.truth.federated.frequency)


@metric(
    "federated masks", *_measures(MASKS, "masks"),
    calibrated={MASKS + name: known for name, known in _CALIBRATED.items()},
)  # fmt: skip
def _masks(objects: Objects, weights: Weights) -> Scored:
    assert objects.truth.federated is not None
    return lvis_scored(objects.masks, weights, objects.truth.federated.frequency, MASKS)
