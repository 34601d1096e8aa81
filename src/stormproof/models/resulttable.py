"""A COCO results file as columns: read and checked once, kept outside the memory, looked up by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, InvalidTruth, ModelError
from stormproof.core.files import read_json
from stormproof.core.masks import mask_boxes, segmentation_mask
from stormproof.core.sample import RLE, Floats, Ints, Prediction
from stormproof.datasets.annotations import is_coco_box, is_number

_ALMOST_ONE = 1 + 1e-6  # as in a Prediction


@dataclass(frozen=True, eq=False)
class ResultTable:
    """The rows of one file, those of an image side by side in the order of the file.

    Seventy files of half a million boxes would not fit many memories; the columns lie in unnamed files
    that the system reads, and forgets, as needed.
    """

    path: Path
    spans: Mapping[str, tuple[int, int]]  # first and end row of each image
    boxes: Floats  # x y width height, as stated
    scores: Floats
    labels: Ints
    masks: _Masks | None

    def prediction(self, image: str) -> Prediction:
        """What the file says about an image; nothing where it is not named."""
        if image not in self.spans:
            return Prediction()
        rows = slice(*self.spans[image])
        box, masks = np.array(self.boxes[rows]), None if self.masks is None else self.masks.of(rows)
        corners = np.hstack([box[:, :2], box[:, :2] + box[:, 2:]])
        labels = np.array(self.labels[rows])
        try:
            return Prediction(corners, np.array(self.scores[rows]), labels, masks, sides=box[:, 2:])
        except InvalidPrediction as error:
            raise ModelError(f"{self.path}, image {image!r}: {error}") from None


@dataclass(frozen=True, eq=False)
class _Masks:
    """Run lengths one after another; `ends` bounds those of each row."""

    runs: npt.NDArray[np.uint32]
    ends: Ints
    sizes: Ints

    def of(self, rows: slice) -> tuple[RLE, ...]:
        return tuple(
            RLE(
                (int(self.sizes[i, 0]), int(self.sizes[i, 1])),
                np.array(self.runs[self.ends[i] : self.ends[i + 1]]),
            )
            for i in range(rows.start, rows.stop)
        )


def read_table(path: Path, numbers: Sequence[int], ids: frozenset[str] | None) -> ResultTable:
    """Read a file; `numbers` are the category ids of the labels (none: they are the labels), `ids` the images
    there are."""
    content = read_json(path, error=ModelError)
    rows = content.get("annotations") if isinstance(content, Mapping) else content
    if not isinstance(rows, list):
        raise ModelError(f"{path} is not COCO results: a list of {{image_id, category_id, bbox, score}}.")
    labels = {number: label for label, number in enumerate(numbers)}
    for i, row in enumerate(rows):
        problem = _problem(row, labels, ids)
        if problem:
            raise ModelError(f"{path}, result {i}: {problem}")
    images = [str(row["image_id"]) for row in rows]
    place = {image: k for k, image in enumerate(dict.fromkeys(images))}
    owners = np.array([place[image] for image in images], np.int64)
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(len(place) + 1))
    rows = [rows[i] for i in order.tolist()]
    masks = _read_masks(rows, path)
    if masks is not None and not all("bbox" in row for row in rows):
        corners = mask_boxes(masks)
        boxes = np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]])
    else:
        boxes = np.array([row["bbox"] for row in rows], np.float64).reshape(-1, 4)
    return ResultTable(
        path,
        {image: (int(starts[k]), int(starts[k + 1])) for image, k in place.items()},
        _kept(boxes),
        _kept(np.array([row["score"] for row in rows], np.float64)),
        _kept(np.array([labels.get(row["category_id"], row["category_id"]) for row in rows], np.int64)),
        None if masks is None else _packed(masks),
    )


def _problem(row: object, labels: Mapping[Any, int], ids: frozenset[str] | None) -> str:
    """What is wrong with one result, if anything."""
    if not isinstance(row, Mapping):
        return f"is {row!r:.60}, not an object."
    missing = [key for key in ("image_id", "category_id", "score") if key not in row]
    if missing or not ({"bbox", "segmentation"} & {*row}):
        return f"lacks {', '.join(missing) or 'bbox or segmentation'}."
    category, image, score, box = row["category_id"], row["image_id"], row["score"], row.get("bbox")
    if not is_number(category) or category != int(category) or abs(category) >= 1 << 31:
        return f"category_id {category!r:.60} is not a whole number."
    if labels and category not in labels:
        return f"category_id {category!r} is not one of the dataset's ({min(labels)} to {max(labels)})."
    if not isinstance(image, int | str) or len(str(image)) > 1000:
        return f"image_id {image!r:.60} is neither a whole number nor a string."
    if ids is not None and str(image) not in ids:
        return f"image_id {image!r} is not in the dataset."
    if not is_number(score) or not 0 <= score <= _ALMOST_ONE:
        return f"score {score!r:.60} must lie in [0, 1]."
    if "bbox" in row and not is_coco_box(box):
        return f"bbox {box!r:.80} must be x, y, width, height, finite, with width and height ≥ 0."
    return ""


def _read_masks(rows: Sequence[Mapping[str, Any]], path: Path) -> tuple[RLE, ...] | None:
    """The masks, where every row has one."""
    lacking = [row for row in rows if "segmentation" not in row]
    if lacking or not rows:
        if any("bbox" not in row for row in rows):
            image = lacking[0]["image_id"]
            raise ModelError(f"{path}, image {image!r}: some results have no bbox, others no segmentation.")
        return None
    masks = []
    for row in rows:
        try:
            masks.append(segmentation_mask(row["segmentation"], *_size(row)))
        except InvalidTruth as error:
            raise ModelError(f"{path}, image {row['image_id']!r}: {error}") from None
    return tuple(masks)


def _size(row: Mapping[str, Any]) -> tuple[int, int]:
    shape = row["segmentation"]
    size = shape.get("size") if isinstance(shape, Mapping) else None
    if (
        not isinstance(size, list)
        or len(size) != 2
        or not all(type(s) is int and 0 < s < 1 << 20 for s in size)
    ):
        raise InvalidTruth("segmentation must be run lengths with a size, as COCO results have.")
    return size[0], size[1]


def _packed(masks: Sequence[RLE]) -> _Masks:
    ends = np.concatenate([[0], np.cumsum([len(mask.counts) for mask in masks])]).astype(np.int64)
    runs = np.concatenate([mask.counts for mask in masks]) if masks else np.zeros(0, np.uint32)
    return _Masks(_kept(runs), ends, np.array([mask.size for mask in masks], np.int64))


def _kept(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in a file without a name, which goes when they are no longer needed."""
    if not column.size:
        return column
    with TemporaryFile() as file:
        column.tofile(file)
        return np.memmap(file, column.dtype, "r", shape=column.shape)
