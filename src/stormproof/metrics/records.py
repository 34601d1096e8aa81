"""Truths and predictions of a whole set, laid out flat: one array per column, one entry per object.

The truth is laid out and indexed once for all conditions; predictions are checked against it, and every error
names the image, the record and the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, InvalidTruth, first_few
from stormproof.core.kernels import kernel
from stormproof.core.sample import RLE, Bools, Floats, Instances, Ints, Prediction
from stormproof.metrics.ordering import by_falling_score


@dataclass(frozen=True, eq=False)
class DetectionTruth:
    """The objects of every image of a set. Make it with `DetectionTruth.of`.

    `image` holds positions in `ids`. Scores that tie are taken in the order of `rank`. In clips, `track` is
    the same for one object in all frames; `clip` numbers the clip of an image, `step` the image in its clip.
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
    sides: Floats = None  # type: ignore[assignment]  # what the corners give, unless stated
    occlusion: Floats = None  # type: ignore[assignment]  # hidden fraction; NaN where unknown
    distance: Floats = None  # type: ignore[assignment]  # metres; NaN where unknown
    track: Ints = None  # type: ignore[assignment]  # −1 where unknown
    clip: Ints = None  # type: ignore[assignment]  # of images; −1 for those of no clip
    step: Ints = None  # type: ignore[assignment]  # of images

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
        """Lay out (image id, objects) pairs; labels index `classes`."""
        pairs = list(truths)
        ids = tuple(name for name, _ in pairs)
        if len(set(ids)) != len(ids):
            twice = next(name for i, name in enumerate(ids) if name in ids[:i])
            raise InvalidTruth(f"Image {twice!r} is in the truth twice; give each image one id.")
        masks: list[RLE | None] = []
        for _, objects in pairs:
            masks.extend(objects.masks or [None] * len(objects))
        truth = cls(
            ids,
            tuple(classes),
            _image_column([len(o) for _, o in pairs]),
            _stack([o.boxes for _, o in pairs], np.zeros((0, 4))),
            _stack([o.labels for _, o in pairs], np.zeros(0, np.int64)),
            _stack([o.crowd for _, o in pairs], np.zeros(0, bool)),
            _stack([o.ignore for _, o in pairs], np.zeros(0, bool)),
            _stack([o.area for _, o in pairs], np.zeros(0)),
            tuple(masks),
            _stack([o.sides for _, o in pairs], np.zeros((0, 2))),
            _stack([o.occlusion for _, o in pairs], np.zeros(0)),
            _stack([o.distance for _, o in pairs], np.zeros(0)),
            _stack([o.tracks for _, o in pairs], np.zeros(0, np.int64)),
        )
        return truth._checked()

    @classmethod
    def of_columns(cls, ids: Sequence[str], image: Ints, objects: Instances, classes: Sequence[str]) -> Self:
        """Lay out all images at once: `image` is the place in `ids` of each object's image, rising."""
        masks = objects.masks or (None,) * len(objects)
        truth = cls(
            tuple(ids), tuple(classes), image, objects.boxes, objects.labels, objects.crowd, objects.ignore,
            objects.area, masks, objects.sides, objects.occlusion, objects.distance, objects.tracks,
        )  # fmt: skip
        return truth._checked()

    def _checked(self) -> Self:
        bad = (self.labels < 0) | (self.labels >= len(self.classes))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise InvalidTruth(
                f"Image {self.owner(i)!r}: a truth has label {self.labels[i]}, but there "
                f"are {len(self.classes)} classes (0 to {len(self.classes) - 1})."
            )
        return self

    def __len__(self) -> int:
        return len(self.boxes)

    @cached_property
    def position(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.ids)}

    @cached_property
    def rank(self) -> Ints:
        """Each image's order in a tie: by number if all ids are numbers, as in COCO, else as given."""
        place = np.arange(len(self.ids))
        if all(len(name) < 1000 and name.isdecimal() for name in self.ids):  # int() takes some thousands
            place[sorted(range(len(self.ids)), key=lambda i: int(self.ids[i]))] = np.arange(len(self.ids))
        return place

    @cached_property
    def keys(self) -> Ints:
        """A number for each object's image and class; equal keys may match the same detections."""
        return self.image * len(self.classes) + self.labels

    @cached_property
    def grouped(self) -> Ints:
        """The objects by key; equal keys keep their order."""
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
        at, image = _of_images(self.image, chosen, len(self.ids))
        ids, clip, step = tuple(self.ids[i] for i in chosen.tolist()), self.clip[chosen], self.step[chosen]
        return replace(taken(self, at), ids=ids, image=image, clip=clip, step=step)

    def owner(self, entry: int) -> str:
        """The id of the image that an object belongs to."""
        return self.ids[int(self.image[entry])]


@dataclass(frozen=True, eq=False)
class Detections:
    """A model's detections on a set of images, flat; `image` holds positions in the truth's `ids`.

    In an image without entries nothing was found: build from arrays only if every image was run.
    """

    image: Ints
    boxes: Floats
    scores: Floats
    labels: Ints
    masks: tuple[RLE | None, ...] = field(default=())
    sides: Floats = None  # type: ignore[assignment]  # what the corners give, unless stated

    def __post_init__(self) -> None:
        if self.sides is None and self.boxes.ndim == 2:
            object.__setattr__(self, "sides", self.boxes[:, 2:] - self.boxes[:, :2])

    @classmethod
    def of(cls, predictions: Mapping[str, Prediction], truth: DetectionTruth) -> Self:
        """Lay out one prediction per image of `truth`; an image left out is an error, not an empty answer."""
        _check_images(predictions, truth)
        rows = [predictions[name] for name in truth.ids]
        masks: list[RLE | None] = []
        for row in rows:
            masks.extend(row.masks or [None] * len(row))
        return cls(
            _image_column([len(row) for row in rows]),
            _stack([row.boxes for row in rows], np.zeros((0, 4))),
            _stack([row.scores for row in rows], np.zeros(0)),
            _stack([row.labels for row in rows], np.zeros(0, np.int64)),
            tuple(masks),
            _stack([row.sides for row in rows], np.zeros((0, 2))),
        )

    def of_images(self, chosen: Ints) -> Detections:
        """The detections of the chosen images, renumbered."""
        images = max(int(chosen.max(initial=-1)), int(self.image.max(initial=-1))) + 1
        at, image = _of_images(self.image, chosen, images)
        return replace(taken(self, at), image=image)

    @cached_property
    def order(self) -> Ints:
        """The detections by falling score; ties as given."""
        return by_falling_score(self.scores)

    def __len__(self) -> int:
        return len(self.boxes)


Predictions = Mapping[str, Prediction] | Detections
Records = TypeVar("Records", DetectionTruth, Detections)


def taken(objects: Records, chosen: Ints) -> Records:
    """Some of the objects, in every column."""
    columns = (
        "image",
        "boxes",
        "labels",
        "sides",
        "scores",
        "crowd",
        "ignore",
        "area",
        "occlusion",
        "distance",
        "track",
    )
    held: dict[str, Any] = {
        name: np.take(getattr(objects, name), chosen, axis=0) for name in columns if hasattr(objects, name)
    }
    masks = tuple(objects.masks[i] for i in chosen.tolist()) if objects.masks else ()
    return replace(objects, masks=masks, **held)


def _of_images(owners: Ints, chosen: Ints, images: int) -> tuple[Ints, Ints]:
    """The entries of the chosen images, which may repeat, and the new place of each entry's image."""
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(images + 1))
    counts = (starts[1:] - starts[:-1])[chosen]
    first = np.repeat(starts[chosen] - (np.cumsum(counts) - counts), counts)
    return order[first + np.arange(counts.sum())], np.repeat(np.arange(len(chosen)), counts)


def lay_out(predictions: Predictions, truth: DetectionTruth) -> Detections:
    """Predictions as checked flat arrays that fit `truth`."""
    found = predictions if isinstance(predictions, Detections) else Detections.of(predictions, truth)
    count = len(found.boxes)
    for name in ("image", "scores", "labels"):
        if getattr(found, name).shape != (count,):
            raise InvalidPrediction(f"{count} boxes, but {name} has shape {getattr(found, name).shape}.")
    if found.boxes.shape != (count, 4):
        raise InvalidPrediction(f"Boxes have shape {found.boxes.shape}; they must be n×4 (x1 y1 x2 y2).")
    if found.masks and len(found.masks) != count:
        raise InvalidPrediction(f"{count} boxes, but {len(found.masks)} masks; give one per box or none.")
    if _all_valid(found.image, found.boxes, found.scores, found.labels, len(truth.ids), len(truth.classes)):
        return found
    stray = (found.image < 0) | (found.image >= len(truth.ids))
    if stray.any():
        i = int(np.flatnonzero(stray)[0])
        raise InvalidPrediction(
            f"Detection {i} belongs to image number {found.image[i]}, but the set has "
            f"{len(truth.ids)} images (0 to {len(truth.ids) - 1})."
        )
    _refuse(
        ~((found.scores >= 0) & (found.scores <= 1)),
        found,
        truth,
        found.scores,
        "score",
        "scores must lie in [0, 1]",
    )
    unsound = ~np.isfinite(found.boxes).all(axis=1) | (found.boxes[:, 2:] < found.boxes[:, :2]).any(axis=1)
    _refuse(
        unsound, found, truth, found.boxes, "box", "boxes are x1 y1 x2 y2, finite, with x2 ≥ x1 and y2 ≥ y1"
    )
    _refuse(
        (found.labels < 0) | (found.labels >= len(truth.classes)),
        found,
        truth,
        found.labels,
        "label",
        f"the set has {len(truth.classes)} classes (0 to {len(truth.classes) - 1})",
    )
    return found


@kernel
def _all_valid(image: Any, boxes: Any, scores: Any, labels: Any, images: Any, classes: Any) -> Any:
    """Whether all detections are valid; if not, `lay_out` finds the error."""
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
            "Check that ids are the dataset's, extension included."
        )
    holes = [repr(name) for name in truth.ids if name not in predictions]
    if holes:
        raise InvalidPrediction(
            f"No prediction for {len(holes)} of {len(truth.ids)} images: "
            f"{first_few(holes)}. Give an empty Prediction() where the model found nothing."
        )


def _refuse(
    bad: Bools | np.bool_,
    found: Detections,
    truth: DetectionTruth,
    column: npt.NDArray[Any],
    noun: str,
    rule: str,
) -> None:
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        rank = int((found.image[:i] == found.image[i]).sum())
        name = truth.ids[int(found.image[i])]
        more = f" ({int(bad.sum())} such detections in all)" if bad.sum() > 1 else ""
        value = column[i].tolist()
        raise InvalidPrediction(f"Image {name!r}, detection {rank}: {noun} {value}; {rule}{more}.")


def _image_column(counts: Sequence[int]) -> Ints:
    return np.repeat(np.arange(len(counts)), np.asarray(counts, np.int64))


def _stack(parts: Sequence[npt.NDArray[Any]], empty: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([empty, *parts])
