"""Ground truth and predictions of a whole set as flat arrays: one array per column, one entry per object.

The ground truth is flattened and indexed once for all conditions. Predictions are checked against it; an
error message names the image, the detection and the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np

from stormproof.core.errors import InvalidPrediction, InvalidTruth, first_few
from stormproof.core.federated import Federated
from stormproof.core.kernels import kernel
from stormproof.core.sample import RLE, Bools, Floats, Instances, Ints, Prediction
from stormproof.core.threads import cached
from stormproof.metrics.ordering import by_falling_score

# Columns of objects in `Instances` and here, beside their image and track.
OBJECT_COLUMNS = ("boxes", "labels", "crowd", "ignore", "area", "sides", "occlusion", "distance")
_NOTHING = Instances(np.zeros((0, 4)), np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class DetectionTruth:
    """The objects of every image of a set. Make it with `DetectionTruth.of`.

    `image` holds positions in `ids`. In clips, an object has the same `track` in all frames; `clip` is the
    number of an image's clip, `step` the image's place in it. `data` are further arrays of objects by name.
    """

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    image: Ints
    boxes: Floats
    labels: Ints
    crowd: Bools
    ignore: Bools
    area: Floats
    masks: tuple[RLE | None, ...]
    sides: Floats = None  # type: ignore[assignment]  # width and height; by default, those of `boxes`
    occlusion: Floats = None  # type: ignore[assignment]  # hidden fraction; NaN where unknown
    distance: Floats = None  # type: ignore[assignment]  # metres; NaN where unknown
    track: Ints = None  # type: ignore[assignment]  # −1 where unknown
    clip: Ints = None  # type: ignore[assignment]  # one entry per image; −1 for an image of no clip
    step: Ints = None  # type: ignore[assignment]  # one entry per image
    data: Mapping[str, Floats] = field(default_factory=dict)
    federated: Federated | None = None  # if images were searched for some classes only

    def __post_init__(self) -> None:
        counts = {"track": len(self.boxes), "clip": len(self.ids), "step": len(self.ids)}
        for name, count in counts.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(count, -1))
        if self.sides is None:
            object.__setattr__(self, "sides", self.boxes[:, 2:] - self.boxes[:, :2])
        for name in ("occlusion", "distance"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(len(self.boxes), np.nan))

    @classmethod
    def of(cls, truths: Iterable[tuple[str, Instances]], classes: Sequence[str]) -> Self:
        """From (image id, objects) pairs; labels index `classes`."""
        pairs = list(truths)
        ids = tuple(name for name, _ in pairs)
        if len(set(ids)) != len(ids):
            twice = next(name for i, name in enumerate(ids) if name in ids[:i])
            raise InvalidTruth(f"Image {twice!r} is in the truth twice; give each image its own id.")
        columns = _flatten([objects for _, objects in pairs], _NOTHING, (*OBJECT_COLUMNS, "tracks"))
        return cls(ids, tuple(classes), track=columns.pop("tracks"), **columns)._checked()

    @classmethod
    def of_columns(cls, ids: Sequence[str], image: Ints, objects: Instances, classes: Sequence[str]) -> Self:
        """From the objects of all images; `image` is the place in `ids` of each object's image, ascending."""
        masks = objects.masks or (None,) * len(objects)
        columns: dict[str, Any] = {name: getattr(objects, name) for name in OBJECT_COLUMNS}
        columns |= {"track": objects.tracks, "data": objects.data}
        return cls(tuple(ids), tuple(classes), image, masks=masks, **columns)._checked()

    def _checked(self) -> Self:
        bad = (self.labels < 0) | (self.labels >= len(self.classes))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise InvalidTruth(
                f"Image {self.owner(i)!r}: an object has label {self.labels[i]}, but there "
                f"are {len(self.classes)} classes (0 to {len(self.classes) - 1})."
            )
        return self

    def __len__(self) -> int:
        return len(self.boxes)

    @cached
    def position(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.ids)}

    @cached
    def rank(self) -> Ints:
        """The order of images in a tie: by number if all ids are numbers, as in COCO, else as given."""
        place = np.arange(len(self.ids))
        if all(len(name) < 1000 and name.isdecimal() for name in self.ids):  # int() refuses longer strings
            place[sorted(range(len(self.ids)), key=lambda i: int(self.ids[i]))] = np.arange(len(self.ids))
        return place

    @cached
    def keys(self) -> Ints:
        """A number for each object that stands for its image and class."""
        return self.image * len(self.classes) + self.labels

    @cached
    def grouped(self) -> Ints:
        """The objects sorted by key; equal keys keep their order."""
        return np.argsort(self.keys, kind="stable")

    @property
    def in_clips(self) -> bool:
        """Whether objects can be followed from frame to frame."""
        return bool((self.clip >= 0).any() and (self.track >= 0).any())

    @property
    def excused(self) -> Bools:
        """Objects that are neither counted nor penalised: crowds and ignored ones."""
        return self.crowd | self.ignore

    def of_images(self, chosen: Ints) -> DetectionTruth:
        """The objects of the chosen images, renumbered."""
        entries, image = entries_of(self.image, chosen, len(self.ids))
        ids, clip, step = tuple(self.ids[i] for i in chosen.tolist()), self.clip[chosen], self.step[chosen]
        known = None if self.federated is None else self.federated.of_images(chosen)
        return replace(select(self, entries), ids=ids, image=image, clip=clip, step=step, federated=known)

    def owner(self, entry: int) -> str:
        """The id of the image that an object belongs to."""
        return self.ids[int(self.image[entry])]


@dataclass(frozen=True, eq=False)
class Detections:
    """A model's detections on a set of images as flat arrays; `image` holds positions in the truth's `ids`.

    An image without entries is one in which nothing was found: build from arrays only if every image was run.
    """

    image: Ints
    boxes: Floats
    scores: Floats
    labels: Ints
    masks: tuple[RLE | None, ...] = ()
    sides: Floats = None  # type: ignore[assignment]  # width and height; by default, those of `boxes`
    data: Mapping[str, Floats] = field(default_factory=dict)  # further arrays of the detections by name

    def __post_init__(self) -> None:
        if self.sides is None and self.boxes.shape[1:] == (4,):  # `lay_out` refuses others
            object.__setattr__(self, "sides", self.boxes[:, 2:] - self.boxes[:, :2])

    @classmethod
    def of(cls, predictions: Mapping[str, Prediction], truth: DetectionTruth) -> Self:
        """From one prediction per image of `truth`; a missing image is an error, not an empty prediction."""
        _check_images(predictions, truth)
        rows = [predictions[name] for name in truth.ids]
        return cls(**_flatten(rows, Prediction(), ("boxes", "scores", "labels", "sides")))

    def of_images(self, chosen: Ints) -> Detections:
        """The detections of the chosen images, renumbered."""
        images = max(int(chosen.max(initial=-1)), int(self.image.max(initial=-1))) + 1
        entries, image = entries_of(self.image, chosen, images)
        return replace(select(self, entries), image=image)

    @cached
    def order(self) -> Ints:
        """The detections by falling score; equal scores keep their order."""
        return by_falling_score(self.scores)

    def __len__(self) -> int:
        return len(self.boxes)


Predictions = Mapping[str, Prediction] | Detections
Records = TypeVar("Records", DetectionTruth, Detections)


def select(objects: Records, chosen: Ints) -> Records:
    """The chosen objects or detections."""
    columns: dict[str, Any] = {
        name: np.take(getattr(objects, name), chosen, axis=0)
        for name in ("image", "scores", "track", *OBJECT_COLUMNS)
        if hasattr(objects, name)
    }
    masks = tuple(objects.masks[i] for i in chosen.tolist()) if objects.masks else ()
    data = {name: np.take(values, chosen, axis=0) for name, values in objects.data.items()}
    return replace(objects, masks=masks, data=data, **columns)


def entries_of(image: Ints, chosen: Ints, images: int) -> tuple[Ints, Ints]:
    """The entries that belong to the chosen images, out of `images`, and each entry's place in `chosen`.

    An image may be chosen twice.

    >>> [column.tolist() for column in entries_of(np.array([0, 1, 1]), np.array([1, 0, 1]), 2)]
    [[1, 2, 0, 1, 2], [0, 0, 1, 2, 2]]
    """
    order = np.argsort(image, kind="stable")
    starts = np.searchsorted(image[order], np.arange(images + 1))
    counts = (starts[1:] - starts[:-1])[chosen]
    first = np.repeat(starts[chosen] - (np.cumsum(counts) - counts), counts)
    return order[first + np.arange(counts.sum())], np.repeat(np.arange(len(chosen)), counts)


def keep_judgeable(detections: Detections, truth: DetectionTruth) -> Detections:
    """The detections that annotations can judge: all, unless these are federated."""
    if truth.federated is None:
        return detections
    return select(detections, truth.federated.kept(detections.image, detections.labels, detections.scores))


def lay_out(predictions: Predictions, truth: DetectionTruth) -> Detections:
    """Predictions as flat arrays, checked against `truth`; those that it can judge."""
    return keep_judgeable(_check(predictions, truth), truth)


def _check(predictions: Predictions, truth: DetectionTruth) -> Detections:
    detections = predictions if isinstance(predictions, Detections) else Detections.of(predictions, truth)
    count = len(detections.boxes)
    for name in ("image", "scores", "labels"):
        if getattr(detections, name).shape != (count,):
            raise InvalidPrediction(f"{count} boxes, but {name} has shape {getattr(detections, name).shape}.")
    if detections.boxes.shape != (count, 4):
        raise InvalidPrediction(f"Boxes have shape {detections.boxes.shape}; they must be n×4 (x1 y1 x2 y2).")
    if detections.masks and len(detections.masks) != count:
        raise InvalidPrediction(
            f"{count} boxes, but {len(detections.masks)} masks; give one per box or none."
        )
    columns = detections.image, detections.boxes, detections.scores, detections.labels
    if _all_valid(*columns, len(truth.ids), len(truth.classes)):
        return detections
    stray = (detections.image < 0) | (detections.image >= len(truth.ids))
    if stray.any():
        i = int(np.flatnonzero(stray)[0])
        raise InvalidPrediction(
            f"Detection {i} belongs to image number {detections.image[i]}, but the set has "
            f"{len(truth.ids)} images (0 to {len(truth.ids) - 1})."
        )
    classes, (x1, y1, x2, y2) = len(truth.classes), detections.boxes.T
    for noun, values, valid, rule in (
        ("score", detections.scores, (detections.scores >= 0) & (detections.scores <= 1),
         "scores must lie in [0, 1]"),
        ("box", detections.boxes, np.isfinite(detections.boxes).all(axis=1) & (x1 <= x2) & (y1 <= y2),
         "boxes are x1 y1 x2 y2, finite, with x2 ≥ x1 and y2 ≥ y1"),
        ("label", detections.labels, (detections.labels >= 0) & (detections.labels < classes),
         f"the set has {classes} classes (0 to {classes - 1})"),
    ):  # fmt: skip
        bad = np.flatnonzero(~valid)
        if len(bad):
            i = int(bad[0])
            place = int((detections.image[:i] == detections.image[i]).sum())
            more = f" ({len(bad)} such detections in all)" if len(bad) > 1 else ""
            raise InvalidPrediction(
                f"Image {truth.ids[int(detections.image[i])]!r}, detection {place}: "
                f"{noun} {values[i].tolist()}; {rule}{more}."
            )
    return detections


@kernel
def _all_valid(image: Any, boxes: Any, scores: Any, labels: Any, images: Any, classes: Any) -> Any:
    """Whether all detections are valid; if not, `lay_out` looks for the first that is not."""
    for d in range(len(image)):
        x1, y1, x2, y2 = boxes[d]
        if not (
            0 <= image[d] < images
            and 0 <= labels[d] < classes
            and 0 <= scores[d] <= 1
            and -np.inf < x1 <= x2 < np.inf
            and -np.inf < y1 <= y2 < np.inf
        ):
            return False
    return True


def _check_images(predictions: Mapping[str, Prediction], truth: DetectionTruth) -> None:
    strangers = [repr(name) for name in predictions if name not in truth.position]
    if strangers:
        raise InvalidPrediction(
            f"Predictions for images that are not in the set: {first_few(strangers)}. "
            "Use the dataset's ids, including the file extension."
        )
    holes = [repr(name) for name in truth.ids if name not in predictions]
    if holes:
        raise InvalidPrediction(
            f"No prediction for {len(holes)} of {len(truth.ids)} images: "
            f"{first_few(holes)}. Give an empty Prediction() where the model found nothing."
        )


def _flatten(
    images: Sequence[Instances] | Sequence[Prediction], empty: Instances | Prediction, names: Sequence[str]
) -> dict[str, Any]:
    """The named columns of all images, in the types of `empty`; the image, mask and data of each entry."""
    columns = {name: np.concatenate([getattr(each, name) for each in (empty, *images)]) for name in names}
    return columns | {
        "image": np.repeat(np.arange(len(images)), np.array([len(each) for each in images], np.int64)),
        "masks": tuple(mask for each in images for mask in each.masks or [None] * len(each)),
        "data": _join_data(images),
    }


def _join_data(images: Sequence[Instances] | Sequence[Prediction]) -> dict[str, Floats]:
    """The further arrays of all images; NaN for the objects of an image that lacks one."""
    names = dict.fromkeys(name for each in images for name in each.data)
    return {name: _join(name, images) for name in names}


def _join(name: str, images: Sequence[Instances] | Sequence[Prediction]) -> Floats:
    held = {each.data[name].shape[1:] for each in images if name in each.data and len(each)}
    if len(held) > 1:
        raise InvalidTruth(f"{name} have the shapes {sorted(held)} in different images; give all the same.")
    shape = held.pop() if held else ()
    parts = [each.data.get(name, np.full((len(each), *shape), np.nan)) for each in images if len(each)]
    return np.concatenate(parts) if parts else np.zeros((0, *shape))
