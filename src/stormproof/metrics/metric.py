"""A metric is one function of a condition's matches and of weights for its images.

    @metric("boxes", Measure("AP50", "AP at IoU 0.5", section="boxes"))
    def _score(objects: Objects, weights: Weights) -> Scored: ...

`weights` has one row per replicate and one column per image. A row of ones gives the score itself, random
weights give its spread, and weights of 0 for images that were not run give an estimate: every metric has an
interval, a difference, a gate and an estimate without further code.

A metric names its input, which also decides when it is called:

- "boxes": `Objects`, always
- "masks": `Objects`, if both objects and detections have masks
- "people": `Objects`, if the dataset has a class of people and the run includes the clean images
- "clips": `Objects`, if images are frames of clips and objects have track ids
- "federated": `Objects`, if images were searched for some classes only, as in LVIS; "federated masks" also
- "maps": `Maps`
- "confidences": `Maps`, if the model reports a confidence for each pixel
- "segments": `Segments`
- an input of a form that another file declares (`core.forms.Form.inputs`): what that form collects

A metric that cannot be weighted is declared with `weighted=False`. It gets no weights and returns a plain
number for each measure; for a replicate it is called with every image repeated as often as its weight says.

Other packages provide metrics through the entry point group `stormproof.metrics`, users through a file given
as `--plugin FILE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core import extensions
from stormproof.core.errors import InvalidOption
from stormproof.core.forms import FORMS
from stormproof.core.registry import Registry
from stormproof.core.sample import Floats, Ints

Weights = npt.NDArray[Any]  # replicates × images, not negative
INPUTS = (
    "maps", "confidences", "segments", "boxes", "masks", "people", "clips", "federated", "federated masks",
)  # fmt: skip
# Every list of measures is in this order; then come those named after an input of another form.
SECTIONS = (
    "boxes", "masks", "maps", "panoptic", "objects", "people", "flaws", "errors", "calibration", "clips",
)  # fmt: skip

_COUNTED = 100  # detections of an image: no more are counted (precision.MAX_DETECTIONS)
# From how many images on an interval is calibrated, by number of classes (docs/calibrated.md); see `Measure`.
Calibrated = tuple[tuple[int, int], ...]
MOST_CLASSES = 80  # in the simulations that calibrate intervals


@dataclass(frozen=True, slots=True)
class Measure:
    """The description of a number: its name, a short explanation, its section, whether higher is better."""

    name: str
    words: str
    section: str
    higher: bool = True
    fraction: bool = True  # printed as a percentage
    aggregate: bool = True  # whether a mean over conditions is meaningful
    fading: float = 0.0  # exponent by which the bias on few images shrinks near 1; see results.estimate
    unbounded: bool = False  # whether a single image can have any value, such as a time or a distance
    share: bool = False  # a share of objects, images, pixels or costs: its interval is binomial
    # For at most so many classes, the interval is calibrated from so many images on (docs/calibrated.md), by
    # rising number of classes. Empty: not known to be, so no verdict relies on it.
    calibrated: Calibrated = ()

    @property
    def scale(self) -> float:
        """The factor by which a value is multiplied for printing: fractions are printed in per cent."""
        return 100.0 if self.fraction else 1.0

    @property
    def most(self) -> float:
        """The highest value that a single image can have."""
        return math.inf if self.unbounded else 1.0 if self.fraction else float(_COUNTED)

    @property
    def unit(self) -> str:
        """The unit of a printed value; empty for counts."""
        return "%" if self.fraction else ""

    def calibrated_from(self, classes: int) -> int | None:
        """The number of images from which on the interval is calibrated; None if no number is known.

        More classes than were tested need more images, in proportion.

        >>> measure = Measure("hits", "share of hits", "boxes", calibrated=((8, 50), (80, 100)))
        >>> measure.calibrated_from(1), measure.calibrated_from(80), measure.calibrated_from(160)
        (50, 100, 200)
        >>> Measure("hits", "share of hits", "boxes").calibrated_from(1) is None
        True
        """
        for most, images in self.calibrated:
            if classes <= most:
                return images
        most, images = self.calibrated[-1] if self.calibrated else (0, 0)
        return math.ceil(images * classes / most) if most == MOST_CLASSES else None


@dataclass(frozen=True, slots=True, eq=False)
class ByClass:
    """Values by class, for numbers that are not plain means over classes.

    `values` is replicates × anything × classes, NaN for a class without objects. `numbers` computes the
    numbers from the values of all classes, or of some.
    """

    values: Floats
    numbers: Callable[[Floats], Mapping[str, Floats]]


@dataclass(frozen=True, slots=True)
class Scored:
    """One condition's numbers under every row of weights.

    `numbers` holds one value per replicate for each measure, `per_class` replicates × classes. For a number
    that is a mean, `parts` holds the values averaged (replicates × parts, NaN where a replicate has none).
    `optimism` estimates by how much few images inflate a score, by measure and class; only some metrics
    estimate it, and only if there are replicates. `units` counts the images, or clips, that decide a number,
    if they are not all. `by_class` is for numbers that depend on the choice of
    classes without being means over them; `|` drops it.
    """

    numbers: Mapping[str, Floats]
    per_class: Mapping[str, Floats] = field(default_factory=dict)
    parts: Mapping[str, Floats] = field(default_factory=dict)
    optimism: Mapping[str, Floats] = field(default_factory=dict)
    by_class: ByClass | None = None
    units: Mapping[str, int] = field(default_factory=dict)

    @property
    def scores(self) -> dict[str, float]:
        """The numbers under the first row of weights."""
        return {name: float(values[0]) for name, values in self.numbers.items()}

    def __or__(self, other: Scored) -> Scored:
        return Scored(
            {**self.numbers, **other.numbers},
            {**self.per_class, **other.per_class},
            {**self.parts, **other.parts},
            {**self.optimism, **other.optimism},
            units={**self.units, **other.units},
        )


Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A declared metric: its input, its function and its measures."""

    given: str
    function: Function
    measures: tuple[Measure, ...]
    weighted: bool

    def score(self, content: Any, weights: Weights) -> Scored:
        """The metric's numbers for every row of weights."""
        names = [measure.name for measure in self.measures]
        if self.weighted:
            scored: Scored = self.function(content, weights)
        else:
            rows = [self.function(content.repeated(row)) for row in weights]
            returned = [name for name in names if name in rows[0]]
            scored = Scored({name: np.array([row[name] for row in rows], float) for name in returned})
        for name in names:
            if name not in scored.numbers:
                metric = self.function.__name__
                raise InvalidOption(f"The metric {metric!r} declares {name!r} but did not return it.")
        return scored


METRICS: Registry[Metric] = Registry(
    extensions.METRICS, "stormproof.metrics", order=lambda declared: declared.function.__module__
)


def metric(
    given: str, *measures: Measure, weighted: bool = True, calibrated: Mapping[str, Calibrated] | None = None
) -> Callable[[Function], Function]:
    """Declare the function that computes some measures; `given` is one of `INPUTS`, or an input that a form
    declares. `calibrated` says where intervals are calibrated, by measure, instead of each measure itself."""
    if calibrated is not None:
        measures = tuple(replace(each, calibrated=calibrated.get(each.name, ())) for each in measures)
    others = [name for declared in FORMS.declared.values() for name in declared.inputs if name not in INPUTS]
    inputs, sections = (*INPUTS, *others), (*SECTIONS, *others)
    if given not in inputs or any(measure.section not in sections for measure in measures):
        raise ValueError(f"a metric reads one of {inputs} and lists its measures in one of {sections}")

    def register(function: Function) -> Function:
        name = f"{function.__module__}.{function.__qualname__}"
        declared = {key: other for key, other in METRICS.declared.items() if key != name}
        known = {measure.name: key for key, other in declared.items() for measure in other.measures}
        for called in (measure.name for measure in measures):
            if called in known:
                raise ValueError(f"two measures are called {called!r}: by {known[called]} and {name}")
        METRICS.add(name, Metric(given, function, measures, weighted), module=function.__module__)
        return function

    return register


@dataclass(frozen=True, slots=True, eq=False)
class Detail:
    """What a metric knows about a condition besides numbers, such as a curve; declared with `detail`."""

    name: str
    given: str
    function: Function


DETAILS: Registry[Detail] = Registry(extensions.METRICS, "stormproof.metrics")


def detail(name: str, given: str) -> Callable[[Function], Function]:
    """Declare a function of an input and weights that returns plain data by name: strings, numbers, arrays,
    lists and dicts of them; None if there is nothing to tell.

    An array of replicates × anything is kept as its first row, with its interval as `low` and `high`. Scores
    hold the data as `details[name][condition]`; sections of the report read it there.
    """

    def register(function: Function) -> Function:
        DETAILS.add(f"{name} of {given}", Detail(name, given, function), module=function.__module__)
        return function

    return register


def measures() -> Mapping[str, Measure]:
    """Every measure by name, sorted by section, then by the file that declares it."""
    return _measures(METRICS.edition)


@lru_cache(maxsize=1)  # tables and sentences ask for one measure tens of thousands of times
def _measures(edition: int) -> Mapping[str, Measure]:
    declared = [measure for one in METRICS.values() for measure in one.measures]
    sections = (*SECTIONS, *sorted({measure.section for measure in declared} - {*SECTIONS}))
    return {one.name: one for one in sorted(declared, key=lambda one: sections.index(one.section))}


def metrics_of(*given: str) -> list[Metric]:
    """Every metric that takes one of these inputs."""
    return [declared for declared in METRICS.values() if declared.given in given]


def ratio(numerator: Any, denominator: Any, least: float = 0.0) -> Any:
    """The quotient of numbers or arrays; NaN where the denominator is not above `least`.

    >>> ratio(1.0, 4.0), ratio(1.0, 0.0)
    (0.25, nan)
    """
    above, below = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    shape = np.broadcast(above, below).shape
    quotient = np.divide(above, below, out=np.full(shape, np.nan), where=below > least)
    return quotient if quotient.ndim else float(quotient)


def mean_of_known(values: Floats, axis: int = -1) -> Floats:
    """The mean of the values that are not NaN: those of the classes that occur, for example."""
    known = ~np.isnan(values)
    mean: Floats = ratio(np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis))
    return mean


def units_of(weights: Weights, image: Ints) -> int:
    """How many units some images are: images of the same weight in every row, as the frames of a clip, are
    one, and those without weight in the first row none.

    >>> units_of(np.array([[1, 1, 1, 0], [0, 0, 1, 1]]), np.array([0, 1, 2, 2, 3]))
    2
    """
    shown = np.unique(image)
    return int(np.unique(weights[:, shown[weights[0, shown] > 0]], axis=1).shape[1])


def weighted_ratios(
    weights: Weights, columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]
) -> dict[str, Floats]:
    """Σ weight · numerator / Σ weight · denominator over images, by replicate, for each pair of columns."""
    table = np.stack([np.asarray(side, np.float64) for pair in columns.values() for side in pair], axis=1)
    sums = weighted_sums(weights, table)
    return {name: ratio(sums[:, 2 * k], sums[:, 2 * k + 1]) for k, name in enumerate(columns)}


def weighted_sums(weights: Weights, table: Floats) -> Floats:
    """Σ weight · value over images, by replicate and by column of an images × columns table.

    A row of ones gives the same bits whatever other rows there are.
    """
    sums: Floats = weights.astype(np.float64) @ table
    sums[(weights == 1).all(axis=1)] = table.sum(axis=0)
    return sums


def reliability_diagram(number: Floats, scores: Floats, hits: Floats) -> dict[str, Floats]:
    """The points of a reliability diagram, from replicates × bins: how many, the sum of scores, how many are
    right."""
    return {"score": ratio(scores[0], number[0]), "precision": ratio(hits, number), "detections": number[0]}
