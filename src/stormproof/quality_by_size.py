"""Chosen measures of image quality, on whole images and on objects by their size (*theodoridis*, Fig. 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor

from stormproof.condition import Condition
from stormproof.errors import InvalidOption, UnknownName
from stormproof.metrics import quality
from stormproof.quality_table import finite_mean
from stormproof.sample import Image, Sample

MEASURES: Mapping[str, Callable[[Image, Image], float]] = {
    "rmse": quality.rmse,
    "snr": quality.snr,
    "ssim": quality.ssim,
    "gradient_ssim": quality.gradient_ssim,
    "colour_wasserstein": quality.colour_wasserstein,
}
WHOLE = "image"
SIZES = {
    "small": 32.0**2,
    "medium": 96.0**2,
    "large": float("inf"),
}  # areas below which an object is so called

Found = dict[str, list[tuple[float, ...]]]  # size → a row of measures for each image or object of that size


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A condition's means over the images, or over the objects of one size."""

    condition: str
    size: str
    count: int
    means: tuple[float | None, ...]


def chosen_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The measures of those names."""
    if not names:
        raise InvalidOption(f"Name some measures: {', '.join(MEASURES)}.")
    for name in names:
        if name not in MEASURES:
            raise UnknownName("measure", name, MEASURES, f"Measures: {', '.join(MEASURES)}.")
    return tuple(names)


def by_size(names: Sequence[str], *, objects: bool) -> Callable[[Sample, Iterable[Image]], list[Found]]:
    """How to measure one image under every condition; goes to worker processes."""
    return partial(_measured, chosen_measures(names), objects)


def _measured(
    names: tuple[str, ...], objects: bool, sample: Sample, corrupted: Iterable[Image]
) -> list[Found]:
    places = [(WHOLE, (slice(None), slice(None)))]
    if objects:
        places += _places(sample)
    return [_one(names, sample.image, image, places) for image in corrupted]


def _one(
    names: tuple[str, ...], clean: Image, corrupted: Image, places: Sequence[tuple[str, tuple[slice, slice]]]
) -> Found:
    found: Found = {}
    for size, place in places:
        values = tuple(MEASURES[name](clean[place], corrupted[place]) for name in names)
        found.setdefault(size, []).append(values)
    return found


def _places(sample: Sample) -> list[tuple[str, tuple[slice, slice]]]:
    """The bounding boxes of objects that count, each with the name of its size."""
    truth = sample.truth.instances
    if truth is None:
        return []
    height, width = sample.image.shape[:2]
    places = []
    for k, (x1, y1, x2, y2) in enumerate(truth.boxes.tolist()):
        rows = slice(max(floor(y1), 0), min(ceil(y2), height))
        columns = slice(max(floor(x1), 0), min(ceil(x2), width))
        if truth.crowd[k] or truth.ignore[k] or rows.stop <= rows.start or columns.stop <= columns.start:
            continue
        size = next(name for name, limit in SIZES.items() if truth.area[k] < limit)
        places.append((size, (rows, columns)))
    return places


def average(conditions: Sequence[Condition], measured: Sequence[Sequence[Found]]) -> list[SizeRow]:
    """Rows by condition, then by size; sizes that no object has are left out."""
    rows = []
    for k, condition in enumerate(conditions):
        for size in (WHOLE, *SIZES):
            values = [entry for image in measured for entry in image[k].get(size, ())]
            if values:
                means = tuple(map(finite_mean, zip(*values, strict=True)))
                rows.append(SizeRow(str(condition), size, len(values), means))
    return rows
