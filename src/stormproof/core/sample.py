"""What flows through Stormproof: an image, its truth and context, and a model's prediction.

Images are H×W×C uint8, RGB or grey, at every boundary; boxes are xyxy float pixels; depth is float32
metres with infinity for the sky. Every class here is frozen and validates its values once, when it is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidImage, InvalidPrediction, InvalidTruth, counted
from stormproof.core.forms import OBJECTS
from stormproof.core.object_arrays import (
    ALMOST_ONE,
    Error,
    checked_boxes,
    checked_sides,
    exact,
    object_data,
    per_object,
    require_same_sides,
    thin_confidence,
)
from stormproof.core.randomness import Frame

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# What `Instances` hold for each object: the type, and the value where none is given.
_COLUMNS: dict[str, tuple[type[np.generic], Any]] = {
    "labels": (np.int64, 0), "crowd": (np.bool_, False), "ignore": (np.bool_, False), "area": (np.float64, 0),
    "ids": (np.int64, 0), "occlusion": (np.float64, np.nan), "truncation": (np.float64, np.nan),
    "distance": (np.float64, np.nan), "tracks": (np.int64, -1),
}  # fmt: skip


def check_image(image: object, name: str = "image") -> Image:
    """Return `image` unchanged if Stormproof can work on it, else raise InvalidImage.

    >>> check_image(np.zeros((2, 3, 3), np.uint8)).shape
    (2, 3, 3)
    """
    if not isinstance(image, np.ndarray):
        raise InvalidImage(
            f"{name} must be a numpy array, not {type(image).__name__}; np.asarray(it) may help."
        )
    if image.dtype != np.uint8:
        fix = "scale it to 0..255 and call .astype(np.uint8)"
        raise InvalidImage(f"{name} must be uint8, not {image.dtype}; {fix}.")
    if image.ndim == 3 and image.shape[2] == 4:
        raise InvalidImage(
            f"{name} has 4 channels {image.shape}; drop the alpha channel with image[..., :3]."
        )
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise InvalidImage(f"{name} must be H×W, H×W×1 or H×W×3, not {image.shape}.")
    if image.size == 0:
        raise InvalidImage(f"{name} is empty: {image.shape}.")
    return image


def as_rgb(image: Image) -> Image:
    """The image with three channels; a grey channel is repeated."""
    if image.ndim == 3 and image.shape[2] == 3:
        return image
    return np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2)


@dataclass(frozen=True, slots=True, eq=False)
class RLE:
    """A binary mask as run lengths down the columns, zeros first, as COCO stores it.

    >>> mask = np.array([[False, True], [False, True]])
    >>> RLE.from_mask(mask).counts.tolist()
    [2, 2]
    """

    size: tuple[int, int]
    counts: npt.NDArray[np.uint32]

    def __post_init__(self) -> None:
        height, width = self.size
        try:
            counts = exact(self.counts, np.uint32)
        except (ValueError, OverflowError, TypeError):
            raise InvalidTruth(
                f"RLE runs {self.counts!r:.80} must be whole numbers from 0 to 2³² − 1."
            ) from None
        if int(counts.sum(dtype=np.int64)) != height * width:
            raise InvalidTruth(
                f"RLE runs add up to {int(counts.sum(dtype=np.int64))} pixels, "
                f"but its size {height}×{width} has {height * width}."
            )
        object.__setattr__(self, "counts", np.array(counts))  # a copy, as the arrays of predictions are

    @classmethod
    def from_mask(cls, mask: npt.NDArray[Any]) -> Self:
        flat = np.ravel(np.asarray(mask, dtype=bool), order="F")
        turns = np.flatnonzero(flat[1:] != flat[:-1]) + 1
        edges = np.concatenate(([0], turns, [flat.size]))
        counts = np.diff(edges)
        if flat.size and flat[0]:
            counts = np.concatenate(([0], counts))
        return cls((int(mask.shape[0]), int(mask.shape[1])), counts.astype(np.uint32))

    def to_mask(self) -> Bools:
        values = np.arange(len(self.counts)) % 2 == 1
        return np.repeat(values, self.counts).reshape(self.size, order="F")

    @property
    def area(self) -> int:
        return int(self.counts[1::2].sum(dtype=np.int64))


def _masks(value: Any, count: int, error: Error = InvalidTruth) -> tuple[RLE, ...] | None:
    """One run-length mask per box, from such masks or an N×H×W array."""
    if value is None:
        return None
    if len(value) != count:
        raise error(f"{count} boxes but {len(value)} masks; give one mask per box.")
    if isinstance(value, np.ndarray) and value.ndim != 3:
        raise error(f"masks have shape {value.shape}; give N×H×W, one for each of {count} boxes.")
    return tuple(mask if isinstance(mask, RLE) else RLE.from_mask(np.asarray(mask) > 0.5) for mask in value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Instances:
    """The objects in one image, one entry per object in every array.

    `labels` index the dataset's class names. `crowd` marks regions that cover many objects, `ignore` those
    that neither count nor penalise (VOC's difficult, KITTI's DontCare). `area` decides the size bin: the
    annotation's own where given, else the mask's, else the box's. `occlusion` and `truncation` are the
    fractions hidden by other objects and cut off by the frame; NaN means unknown.
    `sides` are widths and heights as a file states them: x + w − x is not always w (docs/adr/0006).
    `distance` is in metres along the camera's axis; NaN means unknown.
    `tracks` number the objects of a clip: one has the same number in all its frames; −1 means unknown.
    `data` holds further arrays by name, as a task declares them (`core.forms`): key points, corners.
    """

    boxes: Floats
    labels: Ints
    masks: tuple[RLE, ...] | None = None  # or an N×H×W array, which becomes this
    crowd: Bools = None  # type: ignore[assignment]  # filled in below, as are the others
    ignore: Bools = None  # type: ignore[assignment]
    area: Floats = None  # type: ignore[assignment]
    ids: Ints = None  # type: ignore[assignment]
    occlusion: Floats = None  # type: ignore[assignment]
    truncation: Floats = None  # type: ignore[assignment]
    sides: Floats = None  # type: ignore[assignment]
    distance: Floats = None  # type: ignore[assignment]
    tracks: Ints = None  # type: ignore[assignment]
    data: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        boxes = checked_boxes(self.boxes)
        put(self, "data", object_data(self.data, len(boxes), InvalidTruth))
        masks, sides = _masks(self.masks, len(boxes)), checked_sides(self.sides, boxes, InvalidTruth)
        put(self, "boxes", boxes)
        put(self, "masks", masks)
        put(self, "sides", sides)
        if self.area is None:
            own = sides.prod(axis=1) if masks is None else np.array([m.area for m in masks], np.float64)
            put(self, "area", own)
        if self.ids is None:
            put(self, "ids", np.arange(len(boxes)))
        for name, (dtype, default) in _COLUMNS.items():
            put(self, name, per_object(getattr(self, name), len(boxes), dtype, name, default))

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]], *columns: str) -> Self:
        """Objects from rows of a box, a label and what `columns` name.

        >>> Instances.of([((0, 0, 2, 2), 1, True), ((1, 1, 3, 3), 0, False)], "ignore").ignore.tolist()
        [True, False]
        """
        names = ("boxes", "labels", *columns)
        values: list[Any] = [*zip(*rows, strict=True)] or [()] * len(names)
        return cls(**dict(zip(names, values, strict=True)))

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'object')}{'' if self.masks is None else ' with masks'}>"


@dataclass(frozen=True, slots=True, eq=False)
class SemanticMap:
    """A class index for every pixel (uint8 or uint16); `ignore` marks pixels without truth."""

    labels: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
    ignore: int = 255

    def __post_init__(self) -> None:
        if self.labels.ndim != 2 or self.labels.dtype not in (np.uint8, np.uint16):
            raise InvalidTruth(
                f"A semantic map must be H×W uint8 or uint16, not {self.labels.dtype} {self.labels.shape}."
            )
        if not 0 <= self.ignore <= np.iinfo(self.labels.dtype).max:
            raise InvalidTruth(f"ignore={self.ignore} does not fit a {self.labels.dtype} semantic map.")


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Everything a dataset knows about what an image shows.

    `panoptic` holds the id of each pixel's segment, 0 where there is none. The class of a segment is what the
    semantic map says on its pixels. `crowds` are the ids of segments that neither count nor penalise: regions
    of many objects, and objects too small to judge.
    """

    instances: Instances | None = None
    semantic: SemanticMap | None = None
    panoptic: npt.NDArray[np.int32] | None = None
    crowds: tuple[int, ...] = ()

    @property
    def objects(self) -> Instances:
        """The objects; none where nothing is known about them."""
        return Instances.of(()) if self.instances is None else self.instances

    @property
    def maps(self) -> dict[str, npt.NDArray[Any]]:
        """The maps that there are, by form."""
        semantic = None if self.semantic is None else self.semantic.labels
        planes = {"semantic": semantic, "panoptic": self.panoptic}
        return {name: plane for name, plane in planes.items() if plane is not None}

    def change_maps(self, change: Callable[[npt.NDArray[Any], int], npt.NDArray[Any]]) -> Truth:
        """The truth with other maps: `change` is given a map, and what its pixels without a class hold."""
        semantic, panoptic = self.semantic, self.panoptic
        if semantic is not None:
            semantic = replace(semantic, labels=change(semantic.labels, semantic.ignore))
        return replace(
            self, semantic=semantic, panoptic=None if panoptic is None else change(panoptic, NO_SEGMENT)
        )

    @property
    def map_bytes(self) -> bytes:
        """Everything that its maps say, for fingerprints."""
        labels = self.semantic and bytes([self.semantic.ignore & 255]) + self.semantic.labels.tobytes()
        segments = None if self.panoptic is None else self.panoptic.tobytes() + repr(self.crowds).encode()
        return (labels or b"") + (segments or b"")

    def value(self, form: str) -> Any:
        """The truth of that form; None if there is none."""
        if form == OBJECTS:
            return self.instances
        carried = {} if self.instances is None else self.instances.data
        return carried.get(form, getattr(self, form, None))


@dataclass(frozen=True, slots=True)
class Camera:
    """A pinhole camera: focal lengths and principal point in pixels; stereo `baseline` in metres.

    `offset` is added to a disparity before triangulating: how far apart the two principal points are.
    """

    fx: float
    fy: float
    cx: float
    cy: float
    baseline: float | None = None
    offset: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Information about the scene beyond the image; depth-based corruptions need it."""

    depth: npt.NDArray[np.float32] | None = None
    camera: Camera | None = None
    right: Image | None = None
    disparity: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample:
    """One image with a stable id, its truth and its context.

    `classes` name the labels of its objects, `semantic_classes` the values of its semantic map, as its
    dataset lists them; empty where unknown. A frame of a clip has a `sequence` and a `time` in seconds.
    """

    id: str
    image: Image
    truth: Truth = field(default_factory=Truth)
    context: Context = field(default_factory=Context)
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    sequence: str = ""
    time: float = 0.0

    @property
    def frame(self) -> Frame:
        """What random numbers are keyed by."""
        return Frame(self.id, self.sequence, self.time)

    def __post_init__(self) -> None:
        check_image(self.image, f"image of sample {self.id!r}")
        size = self.image.shape[:2]
        maps = {**self.truth.maps, "depth": self.context.depth, "disparity": self.context.disparity}
        for name, array in maps.items():
            if array is not None and array.shape[:2] != size:
                raise InvalidTruth(
                    f"Sample {self.id!r}: the {name} map is {array.shape[:2]}, the image {size}."
                )

    def __repr__(self) -> str:
        truth, context = self.truth, self.context
        parts = {
            f"{len(truth.instances or ())} objects": truth.instances,
            **{f"{name} map": plane for name, plane in truth.maps.items()},
            "depth": context.depth,
            "right image": context.right,
        }
        size = f"{self.image.shape[1]}×{self.image.shape[0]}"
        return f"<sample {self.id}: {', '.join([size, *(k for k, v in parts.items() if v is not None)])}>"


MAPS = ("panoptic", "semantic")  # the forms with a value for each pixel; the first one held is drawn
NO_SEGMENT = 0  # the value of a pixel in a panoptic map that belongs to none
SEGMENTS = 1 << 16  # what a class is multiplied by in the number of a segment


def panoptic_map(ids: npt.NDArray[Any], labels: Mapping[int, int]) -> npt.NDArray[np.int32]:
    """The panoptic map of a prediction, from the segment id of each pixel and the class of each segment.

    Each pixel holds (class + 1) × 65,536 + the number of its segment within the class. Ids that have no class
    become 0: no segment.

    >>> panoptic_map(np.array([[7, 7, 8, 0]]), {7: 2, 8: 2}).tolist()
    [[196608, 196608, 196609, 0]]
    """
    values, places = np.unique(ids, return_inverse=True)
    numbers = np.zeros(len(values), np.int32)
    used: Counter[int] = Counter()
    for k, value in enumerate(values.tolist()):
        label = labels.get(value)
        if label is None:
            continue
        if not 0 <= label < SEGMENTS // 2 - 1 or used[label] == SEGMENTS:
            raise InvalidPrediction(
                f"Segment {value} has class {label} and {used[label]} others of that class before it; "
                f"classes are 0 to {SEGMENTS // 2 - 2}, with at most {SEGMENTS} segments each."
            )
        numbers[k] = (label + 1) * SEGMENTS + used[label]
        used[label] += 1
    return numbers[places].reshape(np.shape(ids))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prediction:
    """A model's output for one image: boxes with scores, labels and optional masks; a semantic map; or a
    panoptic map, as `panoptic_map` makes it. A model may give several of these.

    The arrays are copies: a model may use its own again for the next image.

    `sides` are widths and heights as a results file states them: corners can lose the last bit.
    `confidence` is the probability that a model gives to the class of a pixel. It is kept for every fourth
    row and column, which is enough to judge it; a map of all pixels is thinned out.
    `data` holds further arrays of the objects by name, as a task declares them (`core.forms`).
    """

    boxes: Floats = field(default_factory=lambda: np.zeros((0, 4)))
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    labels: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    masks: tuple[RLE, ...] | None = None
    semantic: npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | None = None
    sides: Floats = None  # type: ignore[assignment]  # filled in below
    confidence: npt.NDArray[np.float32] | None = None
    panoptic: npt.NDArray[np.int32] | None = None
    data: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        boxes, error = checked_boxes(self.boxes, InvalidPrediction), InvalidPrediction
        scores = per_object(self.scores, len(boxes), np.float64, "scores", 0, error)
        bad = ~((scores >= 0) & (scores <= ALMOST_ONE))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise error(f"Score {i} is {scores[i]}; scores must lie in [0, 1].")
        put = object.__setattr__
        put(self, "boxes", np.array(boxes))
        put(self, "scores", np.minimum(scores, 1))
        put(self, "labels", np.array(per_object(self.labels, len(boxes), np.int64, "labels", 0, error)))
        put(self, "masks", _masks(self.masks, len(boxes), error))
        put(self, "sides", np.array(checked_sides(self.sides, boxes, error)))
        require_same_sides(self.boxes, self.sides)
        put(self, "data", object_data(self.data, len(boxes), error))
        for name in MAPS:
            if getattr(self, name) is not None:
                put(self, name, np.array(getattr(self, name)))
        if self.confidence is not None:
            put(self, "confidence", thin_confidence(self.confidence, self.semantic))

    @property
    def forms(self) -> tuple[str, ...]:
        """What it holds beside boxes and masks (`core.forms`)."""
        return (*(name for name in MAPS if getattr(self, name) is not None), *self.data)

    def value(self, form: str) -> Any:
        """What it holds of that form; None if nothing."""
        return self.data.get(form, getattr(self, form, None))

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        objects = f"{counted(len(self), 'object')}{'' if self.masks is None else ' with masks'}"
        best = f", the best at {self.scores.max():.2f}" if len(self) else ""
        maps = (f"a {name} map" for name in MAPS if self.value(name) is not None)
        kind = next(maps, f"{objects}{best}")
        return f"<prediction: {kind}>"
