"""How long the model takes for an image under a condition: noise can make suppression many times slower.

A run with `timed` (--timed) calls the model image by image and keeps the milliseconds of every call. They are
those of the machine that ran it, with whatever else it did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stormproof.core.forms import MODEL_MS, Column, Form, form
from stormproof.core.sample import Floats, Ints
from stormproof.metrics.inputs import MetricInput, RunReader
from stormproof.metrics.metric import Measure, Scored, Weights, metric, units_of
from stormproof.metrics.task import Task, task


@dataclass(frozen=True, eq=False)
class Timings(MetricInput):
    """The milliseconds that the model took for each image under one condition, images × 1; 0: not known."""

    table: Floats

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("timings",)

    @property
    def scored_names(self) -> tuple[str, ...]:
        return ()

    def of_images(self, chosen: Ints) -> Timings:
        return replace(self, table=self.table[chosen])


def _collect(reader: RunReader) -> Iterator[tuple[str, Timings]]:
    for text, table in reader.by_image(MODEL_MS):
        if table is not None:
            yield text, Timings(table)


FORM = form(
    Form(
        "timing", "times of the model", of_objects=False, derived=(Column(MODEL_MS),), inputs=("timings",),
        collect=_collect, scored_by=MODEL_MS,
    ),
    __name__,
)  # fmt: skip


@metric(
    "timings",
    Measure(MODEL_MS, "median milliseconds of the model for an image (run --timed)", section="timings",
            higher=False, fraction=False, unbounded=True, calibrated=((80, 50),)),
)  # fmt: skip
def _median(timings: Timings, weights: Weights) -> Scored:
    """The median: a machine that is busy for a moment moves a mean of a hundred calls by several per cent."""
    timed = np.flatnonzero(timings.table[:, 0])  # not the first call of a process: it pays for the start
    order = timed[np.argsort(timings.table[timed, 0], kind="stable")]
    reached = np.cumsum(weights[:, order].astype(np.int64), axis=1)
    half = reached[:, -1:] / 2
    low, high = (np.argmax(reached >= half, axis=1), np.argmax(reached > half, axis=1))
    spent = timings.table[order, 0]
    return Scored(
        {MODEL_MS: np.where(half[:, 0] > 0, (spent[low] + spent[high]) / 2, np.nan)},
        optimism={MODEL_MS: np.zeros(1)},  # a median is not too good on few images
        units={MODEL_MS: units_of(weights, timed)},
    )


task(
    Task(
        "timing", 1000, FORM, headline=MODEL_MS, per_class=MODEL_MS, section="timings",
        fits=lambda given: isinstance(given, Timings),
        image_errors=lambda timings: timings.table[:, 0],
        shown=lambda timings: timings.table[:, :0] > 0,
    ),
    __name__,
)  # fmt: skip
