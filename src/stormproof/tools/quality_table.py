"""How much each condition changes images: image quality, measured over a dataset.

Papers compare performance with this perturbation size: *michaelis* (Fig. 6, RMSE), *kamann* (Fig. 20, SNR)
and *liu* (Table 2, SSIM, VIF and IFC).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.processes import explain_killed_workers, worker_pool
from stormproof.core.sample import Image, Sample
from stormproof.corruptions import apply
from stormproof.corruptions.grammar import read_conditions
from stormproof.datasets import open_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.metrics import fidelity, quality


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
class Row:
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
    found = []
    for image in corrupted:
        vif, ifc = (math.nan, math.nan) if reference is None else reference.vif_and_ifc(image)
        rmse, snr = quality.rmse(clean, image), quality.snr(clean, image)
        found.append(Quality(rmse, snr, quality.ssim(clean, image), vif, ifc))
    return found


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


def average(conditions: Sequence[Condition], measured: Sequence[Sequence[Quality]]) -> list[Row]:
    """A row per condition; `measured` has a list for each image, with an entry for each condition."""
    rows = []
    for i, condition in enumerate(conditions):
        values = [image[i] for image in measured]
        means = (
            tuple(map(finite_mean, zip(*values, strict=True))) if values else (None,) * len(Quality._fields)
        )
        rows.append(Row(str(condition), len(values), sum(value.rmse == 0 for value in values), means))
    return rows


def over_severities(rows: Sequence[Row]) -> list[Row]:
    """A row per corruption with several severities: the mean of its rows (*liu*, Table 2)."""
    series: dict[str, list[Row]] = {}
    for row in rows:
        condition = Condition.parse(row.condition)
        if condition.severity is not None:
            series.setdefault(condition.series, []).append(row)
    return [
        Row(
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
    _worker = (open_dataset(spec), conditions, seed, how)


def _measure_one(index: int) -> list[Any]:
    """One image under every condition."""
    dataset, conditions, seed, how = _worker
    sample, names = dataset[index], {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
    return how(sample, (apply(sample, condition, seed=seed, **names).image for condition in conditions))
