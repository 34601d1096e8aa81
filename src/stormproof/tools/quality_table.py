"""How much each condition changes images: image quality, measured over a dataset.

Papers compare performance with this perturbation size: *michaelis* (Fig. 6, RMSE), *kamann* (Fig. 20, SNR)
and *liu* (Table 2, SSIM, VIF and IFC). *theodoridis* (Fig. 4) measures objects apart, by their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption, UnknownName
from stormproof.core.processes import explain_killed_workers, worker_pool
from stormproof.core.sample import Image, Instances, Sample
from stormproof.corruptions import apply
from stormproof.corruptions.geometry import select
from stormproof.corruptions.grammar import read_conditions
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.metrics import fidelity, quality
from stormproof.metrics.quality import SIZES, object_quality, size_of


class Quality(NamedTuple):
    """The quality of a corrupted image, compared with the clean one.

    `rmse` in grey levels and `snr` in dB are over all channels; `ssim`, `vif` and `ifc` look at luma.
    Equal images have an infinite SNR, equal luma an infinite IFC. VIF and IFC are NaN below 80 pixels
    a side.
    """

    rmse: float
    snr: float
    ssim: float
    vif: float
    ifc: float


Measured = TypeVar("Measured")  # the result for one image under one condition


@dataclass(frozen=True, slots=True)
class QualityRow:
    """A condition's means over images; None where no image gave a finite value.

    Images that a condition does not change have no finite SNR or IFC: they count in the other means, in
    `images` and in `unchanged`, but not in these two.
    """

    condition: str
    images: int
    unchanged: int
    means: tuple[float | None, ...]

    def record(self) -> dict[str, str | int | float | None]:
        """The row as plain values, in the order of columns."""
        means = dict(zip(Quality._fields, self.means, strict=True))
        return {"condition": self.condition, **means, "images": self.images, "unchanged": self.unchanged}


def whole_images(sample: Sample, corrupted: Iterable[Image]) -> list[Quality]:
    """The quality of each corrupted image of a clean one."""
    clean = sample.image
    try:
        reference = fidelity.Reference(clean)
    except InvalidImage:  # too small for wavelets
        reference = None
    qualities = []
    for image in corrupted:
        vif, ifc = (math.nan, math.nan) if reference is None else reference.vif_and_ifc(image)
        rmse, snr = quality.rmse(clean, image), quality.snr(clean, image)
        qualities.append(Quality(rmse, snr, quality.ssim(clean, image), vif, ifc))
    return qualities


def measure(
    spec: str,
    conditions: Sequence[Condition],
    *,
    indices: Sequence[int],
    seed: int,
    workers: int,
    how: Callable[[Sample, Iterable[Image]], list[Measured]] = whole_images,  # type: ignore[assignment]
) -> Iterator[list[Measured]]:
    """Every chosen image of a dataset under every condition, in the order of `indices`."""
    read_conditions(conditions)  # a mistake must not wait for a worker
    if workers < 1:
        raise InvalidOption(f"{workers} workers: give at least 1.")
    if workers == 1:
        _open(spec, tuple(conditions), seed, how)
        yield from map(_measure_one, indices)
        return
    pool = worker_pool(workers, _open, spec, tuple(conditions), seed, how)
    try:
        with explain_killed_workers():
            yield from pool.map(_measure_one, indices)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def average(conditions: Sequence[Condition], measured: Sequence[Sequence[Quality]]) -> list[QualityRow]:
    """A row per condition; `measured` has a list for each image, with an entry for each condition."""
    rows = []
    for i, condition in enumerate(conditions):
        values = [image[i] for image in measured]
        means = (
            tuple(map(finite_mean, zip(*values, strict=True))) if values else (None,) * len(Quality._fields)
        )
        rows.append(QualityRow(str(condition), len(values), sum(value.rmse == 0 for value in values), means))
    return rows


def over_severities(rows: Sequence[QualityRow]) -> list[QualityRow]:
    """A row per corruption with several severities: the mean of its rows (*liu*, Table 2)."""
    series: dict[str, list[QualityRow]] = {}
    for row in rows:
        condition = Condition.parse(row.condition)
        if condition.severity is not None:
            series.setdefault(condition.series, []).append(row)
    return [
        QualityRow(
            f"{name}, mean",
            max(row.images for row in levels),
            sum(row.unchanged for row in levels),
            tuple(
                finite_mean(value for value in column if value is not None)
                for column in zip(*(row.means for row in levels), strict=True)
            ),
        )
        for name, levels in series.items()
        if len(levels) > 1
    ]


def finite_mean(values: Iterable[float]) -> float | None:
    """The mean of the finite values, summed exactly, so that it does not depend on their order."""
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else None


_worker: tuple[Dataset, tuple[Condition, ...], int, Callable[..., list[Any]]]


def _open(spec: str, conditions: tuple[Condition, ...], seed: int, how: Callable[..., list[Any]]) -> None:
    global _worker
    _worker = (read_dataset(spec), conditions, seed, how)


def _measure_one(index: int) -> list[Any]:
    """One image under every condition."""
    dataset, conditions, seed, how = _worker
    sample, names = dataset[index], {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
    return how(sample, (apply(sample, condition, seed=seed, **names).image for condition in conditions))


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
    means: Mapping[str, float | None]

    def record(self) -> dict[str, str | int | float | None]:
        """The row as plain values, in the order of columns."""
        return {"condition": self.condition, "size": self.size, **self.means, "count": self.count}


def by_size(names: Sequence[str], *, objects: bool) -> Callable[[Sample, Iterable[Image]], list[Found]]:
    """A function that measures one image under every condition, and its objects if asked for."""
    if not names:
        raise InvalidOption(f"Name some measures: {', '.join(MEASURES)}.")
    for name in names:
        if name not in MEASURES:
            raise UnknownName("measure", name, MEASURES, f"Measures: {', '.join(MEASURES)}.")
    return partial(_measure_by_size, tuple(names), objects)


def _measure_by_size(
    names: tuple[str, ...], objects: bool, sample: Sample, corrupted: Iterable[Image]
) -> list[Found]:
    truth = sample.truth.instances if objects else None
    counted = None if truth is None else select(truth, np.flatnonzero(~(truth.crowd | truth.ignore)))
    return [_measure(names, sample.image, image, counted) for image in corrupted]


def _measure(names: tuple[str, ...], clean: Image, corrupted: Image, objects: Instances | None) -> Found:
    measured: Found = {WHOLE: [tuple(MEASURES[name](clean, corrupted) for name in names)]}
    if objects is not None:
        columns = (object_quality(clean, corrupted, objects, MEASURES[name]).tolist() for name in names)
        for area, values in zip(objects.area.tolist(), zip(*columns, strict=True), strict=True):
            if not all(map(math.isnan, values)):  # boxes outside the image give NaN
                measured.setdefault(size_of(area), []).append(values)
    return measured


def average_by_size(
    names: Sequence[str], conditions: Sequence[Condition], measured: Sequence[Sequence[Found]]
) -> list[SizeRow]:
    """Rows of the measures by condition, then by size; sizes that no object has are left out."""
    rows = []
    for k, condition in enumerate(conditions):
        for size in (WHOLE, *SIZES):
            values = [entry for image in measured for entry in image[k].get(size, ())]
            if values:
                means = map(finite_mean, zip(*values, strict=True))
                rows.append(SizeRow(str(condition), size, len(values), dict(zip(names, means, strict=True))))
    return rows
