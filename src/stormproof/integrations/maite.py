"""MAITE: our corruptions as its augmentations, its object detection datasets and models as ours.

    maite.tasks.evaluate(model=…, dataset=…, metric=…, augmentation=Augmentation("fog@3"))

    stormproof run --model maite:package.module:model --data maite:package.module:dataset …

MAITE's protocols are structural, so nothing here imports it. Its images are C×H×W: uint8, or floats from 0
to 1, which are rounded to 8 bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.loading import load_attribute
from stormproof.core.sample import Floats, Image, Instances, Ints, Sample, Truth
from stormproof.corruptions import apply
from stormproof.corruptions.grammar import read_condition
from stormproof.models.python import FunctionModel, function_model

Batch = tuple[Sequence[Any], Sequence[Any], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """MAITE's target of object detection."""

    boxes: Floats
    labels: Ints
    scores: Floats


class Augmentation:
    """A condition as a MAITE augmentation. Noise depends on the seed and the datum's id, not on the batch.

    Boxes move with the image where the condition moves labels (`elastic_transform@3[labels=moved]`).

    >>> inputs, _, _ = Augmentation("fog@3")(([np.zeros((3, 8, 8), np.uint8)], [None], [{"id": "a"}]))
    >>> inputs[0].shape
    (3, 8, 8)
    """

    def __init__(self, condition: str | Condition, *, seed: int = 0) -> None:
        self.condition, self.seed = read_condition(condition), seed
        self.metadata = {"id": f"stormproof {self.condition}, seed {seed}"}

    def __call__(self, batch: Batch, /) -> tuple[list[Any], list[Any], list[Mapping[str, Any]]]:
        made = [self._corrupted(*datum) for datum in zip(*batch, strict=True)]
        return [image for image, _ in made], [target for _, target in made], list(batch[2])

    def _corrupted(self, image: Any, target: Any, metadata: Mapping[str, Any]) -> tuple[Any, Any]:
        objects = None if target is None else _instances(target)
        sample = Sample(str(metadata["id"]), _pixels(image), Truth(objects))
        after = apply(sample, self.condition, seed=self.seed)
        if objects is not None and after.truth.instances is not objects:
            moved = after.truth.instances
            assert moved is not None
            target = Target(moved.boxes, moved.labels, np.asarray(target.scores)[moved.ids])
        return _like(after.image, image), target


@dataclass(frozen=True, slots=True)
class MaiteDataset:
    """A MAITE dataset; targets and sizes were read when it was opened, images are read on demand."""

    source: Any
    name: str
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    truths: tuple[Truth, ...]
    sizes: tuple[tuple[int, int], ...]
    fingerprint: str
    semantic_classes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        image = _pixels(self.source[index][0])
        return Sample(self.ids[index], image, self.truths[index], classes=self.classes)

    def truth(self, index: int) -> Truth:
        return self.truths[index]

    def size(self, index: int) -> tuple[int, int]:
        return self.sizes[index]


def open_dataset(main: str) -> MaiteDataset:
    """The dataset at `package.module:attribute`, or the one that calling it makes."""
    return dataset(_load(main, "__getitem__"))


def open_model(main: str) -> FunctionModel:
    """The model at `package.module:attribute`, or the one that calling it makes."""
    return model(_load(main, "metadata"))


def dataset(source: Any) -> MaiteDataset:
    """A MAITE object detection dataset as one of ours.

    Every datum is read once, for its id, size, truth and content.
    """
    metadata = _metadata(source)
    classes = _names(metadata)
    total = hashlib.blake2b(repr((metadata["id"], classes)).encode(), digest_size=16)
    ids, truths, sizes = [], [], []
    for index in range(len(source)):
        image, target, own = source[index]
        pixels, objects = _pixels(image), _instances(target)
        ids.append(str(own["id"]))
        truths.append(Truth(objects))
        sizes.append((pixels.shape[0], pixels.shape[1]))
        for column in (objects.boxes, objects.labels, pixels):
            total.update(ids[-1].encode() + b"\0" + column.tobytes())
    return MaiteDataset(
        source, str(metadata["id"]), classes, tuple(ids), tuple(truths), tuple(sizes), total.hexdigest()
    )


def model(source: Any) -> FunctionModel:
    """A MAITE object detection model as one of ours.

    It is identified by its metadata and, if it has one, its `fingerprint` attribute: set one if the weights
    change.
    """
    metadata, own = _metadata(source), getattr(source, "fingerprint", None)

    def predict(images: Sequence[Image]) -> list[dict[str, Any]]:
        return [_detections(target) for target in source([image.transpose(2, 0, 1) for image in images])]

    predict.fingerprint = [dict(metadata), own]  # type: ignore[attr-defined]
    return function_model(predict, name=str(metadata["id"]), classes=_names(metadata))


def _detections(target: Any) -> dict[str, Any]:
    labels, scores = np.asarray(target.labels, np.int64), np.asarray(target.scores, np.float64)
    if scores.ndim == 2:  # one score per class
        scores = scores[np.arange(len(scores)), labels]
    return {"boxes": np.asarray(target.boxes, np.float64), "scores": scores, "labels": labels}


def _instances(target: Any) -> Instances:
    boxes = np.asarray(target.boxes, np.float64)
    return Instances(boxes, np.asarray(target.labels, np.int64).reshape(-1))


def _pixels(image: Any) -> Image:
    """C×H×W of uint8, or of floats from 0 to 1, as H×W×C uint8."""
    array = np.asarray(image)
    if array.ndim != 3 or array.shape[0] not in (1, 3):
        raise InvalidImage(f"A MAITE image must be 3×H×W or 1×H×W, not {array.shape}.")
    if array.dtype != np.uint8:
        if array.dtype.kind != "f" or not (array.min() >= 0 and array.max() <= 1):
            reach = f"{array.dtype} from {array.min()} to {array.max()}"
            raise InvalidImage(f"A MAITE image must be uint8, or floats from 0 to 1, not {reach}.")
        array = np.rint(array * 255).astype(np.uint8)
    return np.ascontiguousarray(array.transpose(1, 2, 0))


def _like(pixels: Image, given: Any) -> Any:
    """C×H×W in the type that was given."""
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    values = planes if np.asarray(given).dtype == np.uint8 else (planes / 255).astype(np.asarray(given).dtype)
    return given.new_tensor(values) if hasattr(given, "new_tensor") else values


def _metadata(source: Any) -> Mapping[str, Any]:
    metadata = getattr(source, "metadata", None)
    if not isinstance(metadata, Mapping) or "id" not in metadata:
        raise InvalidOption(f"{type(source).__name__} is not a MAITE object: it has no metadata with an id.")
    return metadata


def _names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of labels 0, 1, …; empty if the metadata do not name any."""
    labels = metadata.get("index2label", {})
    return tuple(str(labels.get(index, f"class {index}")) for index in range(max(labels, default=-1) + 1))


def _load(main: str, member: str) -> Any:
    named = load_attribute(main)
    return named if hasattr(named, member) and not isinstance(named, type) else named()
