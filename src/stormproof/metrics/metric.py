"""A metric is one function of a condition's matches and of weights on its images.

    @metric("boxes", Measure("AP50", "AP at IoU 0.5", section="boxes"))
    def _score(objects: Objects, weights: Weights) -> Scored: ...

`weights` has one row per replicate and one column per image. A row of ones gives the score itself, random
weights give its spread, and weights that are 0 where a cell was not run give an estimate: every metric has an
interval, a difference, a gate and an estimate without further code.

The input of a metric, and when it is called:

- "boxes": `Objects`, always
- "masks": `Objects`, if truth and detections have masks
- "people": `Objects`, if the dataset has a class of people and the run includes the clean images
- "clips": `Objects`, if images are frames of clips and objects have tracks
- "maps": `Maps`
- "confidences": `Maps`, where the model says how sure it is of pixels
- "segments": `Segments`

A metric that cannot be weighted is declared with `weighted=False`. It gets no weights and returns plain
numbers by measure; its spread comes from repeating images as often as a replicate weighs them.

Metrics of other packages are found by the entry point group `stormproof.metrics`, those of a file that the
user names by `--plugin FILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption
from stormproof.core.loading import load_package, offered
from stormproof.core.sample import Floats

Weights = npt.NDArray[Any]  # replicates × images, not negative
INPUTS = ("maps", "confidences", "segments", "boxes", "masks", "people", "clips")
# Every list of measures is in this order.
SECTIONS = (
    "boxes", "masks", "maps", "panoptic", "objects", "people", "flaws", "errors", "calibration", "clips",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measure:
    """The description of a number: what it is in words, where it is listed, whether more is better."""

    name: str
    words: str
    section: str
    higher: bool = True
    fraction: bool = True  # printed as a percentage
    aggregate: bool = True  # whether a mean over conditions is meaningful
    fading: float = 0.0  # how a score on few images errs near 1; see results.estimate

    @property
    def scale(self) -> float:
        """What a value is multiplied by when it is printed: fractions are in per cent."""
        return 100.0 if self.fraction else 1.0

    @property
    def unit(self) -> str:
        """The unit of a printed value; empty for counts."""
        return "%" if self.fraction else ""


@dataclass(frozen=True, slots=True, eq=False)
class ByClass:
    """Values by class from which numbers follow that are not plain means over classes.

    `values` are replicates × anything × classes, NaN for a class without objects; `numbers` makes the numbers
    of all of them, or of the chosen classes.
    """

    values: Floats
    numbers: Callable[[Floats], Mapping[str, Floats]]


@dataclass(frozen=True, slots=True)
class Scored:
    """One condition's numbers under every row of weights.

    `numbers` are by measure, `per_class` by measure and class (replicates × classes). For a number that is a
    mean, `parts` are the values averaged (replicates × parts, NaN where a replicate has none). `optimism` is
    how much too high a score is on so few images, by measure and class, for measures that can tell; it is
    computed only with replicates. `by_class` is for numbers that are not means over classes but depend on
    which classes there are; results that are joined do not keep it.
    """

    numbers: Mapping[str, Floats]
    per_class: Mapping[str, Floats] = field(default_factory=dict)
    parts: Mapping[str, Floats] = field(default_factory=dict)
    optimism: Mapping[str, Floats] = field(default_factory=dict)
    by_class: ByClass | None = None

    def __or__(self, other: Scored) -> Scored:
        return Scored(
            {**self.numbers, **other.numbers},
            {**self.per_class, **other.per_class},
            {**self.parts, **other.parts},
            {**self.optimism, **other.optimism},
        )


Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A declared metric: its input and its measures."""

    given: str
    function: Function
    measures: tuple[Measure, ...]
    weighted: bool

    def score(self, cell: Any, weights: Weights) -> Scored:
        """Its numbers for every row of weights."""
        if self.weighted:
            found: Scored = self.function(cell, weights)
            self._require(found.numbers)
            return found
        rows = [self.function(cell.repeated(row)) for row in weights]
        self._require(rows[0])
        return Scored({m.name: np.array([row[m.name] for row in rows], float) for m in self.measures})

    def _require(self, numbers: Mapping[str, Any]) -> None:
        for measure in self.measures:
            if measure.name not in numbers:
                name = self.function.__name__
                raise InvalidOption(f"The metric {name!r} declares {measure.name!r} but did not return it.")


_DECLARED: list[Metric] = []


def metric(given: str, *measures: Measure, weighted: bool = True) -> Callable[[Function], Function]:
    """Declare a function as the metric of some measures; `given` is one of `INPUTS`."""
    if given not in INPUTS or any(measure.section not in SECTIONS for measure in measures):
        raise ValueError(f"a metric reads one of {INPUTS} and lists its measures in one of {SECTIONS}")

    def register(function: Function) -> Function:
        others = [each for each in _DECLARED if not _is_same(each.function, function)]
        taken = {measure.name for other in others for measure in other.measures}
        for measure in measures:
            if measure.name in taken:
                raise ValueError(f"two measures are called {measure.name!r}")
        _DECLARED[:] = [*others, Metric(given, function, measures, weighted)]
        function.__dict__["declares"] = "metric"  # marks a plugin's file as declaring something
        return function

    return register


def _is_same(one: Function, other: Function) -> bool:
    """Whether one function was declared again: its file was changed, or a notebook cell was run twice."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def measures() -> Mapping[str, Measure]:
    """Every measure by name: by section, then by the file that declares it."""
    return _measures(*_declared())


@lru_cache(maxsize=1)
def _measures(*every: Metric) -> Mapping[str, Measure]:
    found = [measure for declared in every for measure in declared.measures]
    return {measure.name: measure for measure in sorted(found, key=lambda m: SECTIONS.index(m.section))}


def metrics_of(*given: str) -> list[Metric]:
    """Every metric that reads one of these inputs."""
    return [declared for declared in _declared() if declared.given in given]


def _declared() -> list[Metric]:
    """All metrics, in an order that does not depend on the order of imports."""
    load_package("stormproof.metrics")
    _load_entry_points()
    return sorted(_DECLARED, key=lambda declared: declared.function.__module__)


@cache
def _load_entry_points() -> None:
    for entry in offered("stormproof.metrics"):
        entry.load()


def ratio(above: Any, below: Any, least: float = 0.0) -> Any:
    """above / below, for numbers or arrays; NaN where `below` is not more than `least`.

    >>> ratio(1.0, 4.0), ratio(1.0, 0.0)
    (0.25, nan)
    """
    above, below = np.asarray(above, np.float64), np.asarray(below, np.float64)
    shape = np.broadcast(above, below).shape
    found = np.divide(above, below, out=np.full(shape, np.nan), where=below > least)
    return found if found.ndim else float(found)


def mean_of_known(values: Floats, axis: int = -1) -> Floats:
    """The mean over the values that are not NaN, such as those of the classes that occur."""
    present = ~np.isnan(values)
    found: Floats = ratio(np.where(present, values, 0.0).sum(axis=axis), present.sum(axis=axis))
    return found


def weighted_ratios(
    weights: Weights, columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]
) -> dict[str, Floats]:
    """Σ weight · above / Σ weight · below over images, by replicate, for several (above, below) of images."""
    table = np.stack([np.asarray(side, np.float64) for pair in columns.values() for side in pair], axis=1)
    sums = weighted_sums(weights, table)
    return {name: ratio(sums[:, 2 * k], sums[:, 2 * k + 1]) for k, name in enumerate(columns)}


def weighted_sums(weights: Weights, table: Floats) -> Floats:
    """Σ weight · value over images, by replicate and column of an images × columns table.

    The result for a row of ones is the same to the last bit, whatever other rows come with it.
    """
    sums: Floats = weights.astype(np.float64) @ table
    sums[(weights == 1).all(axis=1)] = table.sum(axis=0)
    return sums
