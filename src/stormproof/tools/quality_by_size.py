"""Chosen measures of image quality, on whole images and on objects by their size (*theodoridis*, Fig. 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.sample import Image, Instances, Sample
from stormproof.corruptions.geometry import select
from stormproof.metrics import quality
from stormproof.metrics.crops import SIZES, object_quality, size_of
from stormproof.tools.quality_table import finite_mean

MEASURES: Mapping[str, Callable[[Image, Image], float]] = {
    "rmse": quality.rmse,
    "snr": quality.snr,
    "ssim": quality.ssim,
    "gradient_ssim": quality.gradient_ssim,
    "colour_wasserstein": quality.colour_wasserstein,
}
WHOLE = "image"

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
    """A function that measures one image under every condition, for worker processes."""
    return partial(_measured, chosen_measures(names), objects)


def _measured(
    names: tuple[str, ...], objects: bool, sample: Sample, corrupted: Iterable[Image]
) -> list[Found]:
    truth = sample.truth.instances if objects else None
    counted = None if truth is None else select(truth, np.flatnonzero(~(truth.crowd | truth.ignore)))
    return [_one(names, sample.image, image, counted) for image in corrupted]


def _one(names: tuple[str, ...], clean: Image, corrupted: Image, objects: Instances | None) -> Found:
    found: Found = {WHOLE: [tuple(MEASURES[name](clean, corrupted) for name in names)]}
    if objects is not None:
        columns = (object_quality(clean, corrupted, objects, MEASURES[name]).tolist() for name in names)
        for area, values in zip(objects.area.tolist(), zip(*columns, strict=True), strict=True):
            if not all(map(isnan, values)):  # boxes outside the image give NaN
                found.setdefault(size_of(area), []).append(values)
    return found


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
