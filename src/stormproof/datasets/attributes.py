"""Attributes of images, by which scores can be sliced, and the distance of objects where depth is known.

Attributes come from the dataset, a CSV file or a list of ids, are measured on the pixels, or count the
objects. Numbers are cut into tertiles of the images that are scored; names stay names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError, InvalidOption, UnknownName, counted
from stormproof.core.files import locate
from stormproof.core.sample import Image, Instances, as_rgb
from stormproof.datasets.annotations import read_csv
from stormproof.datasets.chosen import read_ids
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.datasets.image_files import names_of

MOST = 60  # slices; a column with more values than this is an id, not an attribute
_FEW = 6  # different numbers up to which each is a slice of its own
_LEVELS = ("low", "middle", "high")


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute and its value for each image asked about; None where it is unknown.

    `slices` are its values in the order of the table, `note` explains them to the reader.
    """

    name: str
    values: tuple[str | None, ...]
    slices: tuple[str, ...]
    note: str = ""


def brightness(image: Image) -> float:
    """The mean of luma, in grey levels.

    >>> brightness(np.full((4, 4), 100, np.uint8))
    100.0
    """
    return float(_luma(image).mean())


def contrast(image: Image) -> float:
    """The standard deviation of luma, in grey levels."""
    return float(_luma(image).std())


def sharpness(image: Image) -> float:
    """The variance of luma's Laplacian (Pech-Pacheco et al. 2000): less where an image is blurred."""
    return float(cv2.Laplacian(_luma(image), cv2.CV_64F).var())


def _luma(image: Image) -> Image:
    return np.asarray(cv2.cvtColor(as_rgb(image), cv2.COLOR_RGB2GRAY), np.uint8)


MEASURED: Mapping[str, Callable[[Image], float]] = {
    "brightness": brightness,
    "contrast": contrast,
    "sharpness": sharpness,
}
COUNT = "count"


def with_distances(objects: Instances, depth: npt.NDArray[np.float32]) -> Instances:
    """The objects, with the median depth of their pixels as distance where the dataset states none.

    An object's pixels are its mask's, else its box's; sky and pixels of unknown depth do not count.

    >>> depth = np.full((10, 10), 30, np.float32)
    >>> depth[2:8, 2:8] = 12
    >>> with_distances(Instances([[2, 2, 8, 8]], [0]), depth).distance.tolist()
    [12.0]
    """
    distance = objects.distance.copy()
    for k in np.flatnonzero(np.isnan(distance)).tolist():
        if objects.masks is not None:
            pixels = depth[objects.masks[k].to_mask()]
        else:
            x1, y1, x2, y2 = np.maximum(objects.boxes[k], 0)  # a box may begin outside the image
            pixels = depth[int(y1) : math.ceil(y2), int(x1) : math.ceil(x2)]
        known = pixels[np.isfinite(pixels) & (pixels > 0)]
        distance[k] = np.median(known) if known.size else np.nan
    return replace(objects, distance=distance)


def read_attribute(dataset: Dataset, asked: str, indices: Sequence[int]) -> Attribute:
    """The attribute of some images: one of the dataset's own, 'brightness', 'contrast', 'sharpness', 'count',
    a CSV file's: 'FILE.csv', or 'FILE.csv:COLUMN' where it has several columns beside the id, or whether
    'FILE.txt' lists them, an id on every line."""
    own = abilities(dataset).attributes
    ids = [dataset.ids[index] for index in indices]
    if not ids:
        raise InvalidOption(f"No image of {dataset.name} can be read, so none has the attribute {asked!r}.")
    if asked in own:
        return _slice(asked, [own[asked].get(name) for name in ids])
    if asked in MEASURED:
        measured = [MEASURED[asked](dataset[index].image) for index in indices]
        return _tertiles(asked, measured, f"{asked} of the clean images")
    if asked == COUNT:
        counts = [_objects(dataset.truth(index).instances) for index in indices]
        return _tertiles(COUNT, counts, "objects that count, in an image")
    if asked.endswith(".txt"):
        listed = {*read_ids(locate(asked), dataset.ids)}
        if not listed & {*ids}:
            fix = f"ids of this dataset look like {ids[0]!r}"
            raise DatasetError(asked, f"lists none of the {counted(len(ids), 'image')}; {fix}.")
        return _slice(Path(asked).stem, ["listed" if name in listed else "others" for name in ids])
    file, colon, column = (asked, "", "") if asked.endswith(".csv") else asked.rpartition(":")
    if not file.endswith(".csv"):
        known = (*own, *MEASURED, COUNT)
        hint = f"Known here: {', '.join(known)}, or give a CSV file or a list of ids (.txt)."
        raise UnknownName("attribute", asked, known, hint)
    path = Path(file)
    name, table = _read_csv(path, column if colon else None)
    names = (names_of(dataset, index) for index in indices)
    values = [next((table[key] for key in each if key in table), None) for each in names]
    if all(value is None for value in values):
        fix = f"ids of this dataset look like {ids[0]!r}"
        raise DatasetError(path, f"has no row for any of the {counted(len(ids), 'image')}; {fix}.")
    return _slice(name, values)


def _read_csv(path: Path, column: str | None) -> tuple[str, dict[str, str]]:
    """A column's name, and its value by image."""
    rows = read_csv(path)
    if not rows or len(rows[0]) < 2:
        raise DatasetError(path, "needs a first line such as 'id,weather' and a row for each image.")
    names = rows[0]
    if column is None and len(names) > 2:
        raise DatasetError(path, f"has {len(names) - 1} attributes; name one, e.g. {path}:{names[1]}.")
    if column is not None and column not in names[1:]:
        raise UnknownName(f"column of {path}", column, names[1:], f"It has {', '.join(names[1:])}.")
    at = 1 if column is None else names.index(column)
    table: dict[str, str] = {}
    for line, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(names):
            raise DatasetError(path, f"has {len(row)} values, the first line {len(names)}.", f"line {line}")
        if row[at] and table.setdefault(row[0], row[at]) != row[at]:
            raise DatasetError(path, f"gives {row[0]!r} another {names[at]} than before.", f"line {line}")
    return names[at], table


def _objects(objects: Instances | None) -> float:
    return math.nan if objects is None else float((~(objects.crowd | objects.ignore)).sum())


def _slice(name: str, values: Sequence[str | None]) -> Attribute:
    """Names as they are; numbers in tertiles, unless there are few different ones."""
    known = sorted({value for value in values if value is not None})
    numbers = [_number(value) for value in known]
    if len(known) > _FEW and all(math.isfinite(number) for number in numbers):
        return _tertiles(name, [math.nan if v is None else _number(v) for v in values], name)
    if len(known) > MOST:
        raise InvalidOption(f"{name!r} has {len(known)} different values; slices need {MOST} at most.")
    order = [value for _, value in sorted(zip(numbers, known, strict=True), key=_by_number)]
    lacking = sum(value is None for value in values)
    note = f"{counted(lacking, 'image')} without {name} left out." if lacking else ""
    return Attribute(name, tuple(values), tuple(order), note)


def _by_number(pair: tuple[float, str]) -> tuple[bool, float, str]:
    number, text = pair
    return (math.isnan(number), 0.0 if math.isnan(number) else number, text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _tertiles(name: str, values: Sequence[float], what: str) -> Attribute:
    """Three slices with about as many images each; images that lie on a bound go below it."""
    numbers = np.asarray(values, np.float64)
    known = np.isfinite(numbers)
    if not known.any():
        raise InvalidOption(f"No image has a {name}.")
    bounds = np.quantile(numbers[known], [1 / 3, 2 / 3])
    level = np.searchsorted(bounds, numbers)
    levels = tuple(_LEVELS[k] if there else None for k, there in zip(level.tolist(), known, strict=True))
    note = f"Tertiles of {what}: low up to {bounds[0]:.4g}, middle up to {bounds[1]:.4g}, high above."
    return Attribute(name, levels, tuple(each for each in _LEVELS if each in levels), note)
