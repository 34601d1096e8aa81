"""An operational design domain (ODD): its dimensions, cells and requirements.

A dimension is a physical quantity that a corruption varies, an attribute of objects, or a tag of images. Its
range is cut into cells, and a cell of the domain is one cell of every dimension. `results.domain_file` reads
domains from YAML.

Names of ISO 34503:2023, the taxonomy of operational design domains for automated driving, are given beside
dimensions where they fit, for the reader; nothing here claims conformity with it. They are those on which
public transcriptions of the standard agree; it was not at hand itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import counted
from stormproof.corruptions import find
from stormproof.corruptions.chain import in_order
from stormproof.results.detection_rate import MIN_SCORE

SEVERITY = "severity"  # as a parameter and as a unit


@dataclass(frozen=True, slots=True)
class VariedQuantity:
    """A physical quantity: the corruption's parameter that varies it, which end of a range is worse, and its
    value where the corruption is absent, with the word for it. `taxonomy` is its place in ISO 34503:2023,
    `openlabel` its tag in the ontology of ASAM OpenLABEL 1.0.0; empty where they have none."""

    corruption: str
    parameter: str
    unit: str
    worse: str
    absent: float
    word: str = ""
    taxonomy: str = ""
    openlabel: str = ""
    fixed: tuple[tuple[str, float], ...] = ()  # parameters that the quantity needs beside it
    highest: float = math.inf  # beyond which a higher value is not milder


_ENVIRONMENT = "Environmental conditions"
QUANTITIES = {
    "visibility": VariedQuantity(
        "haze", "visibility", "m", "low", math.inf, "clear",
        f"{_ENVIRONMENT} / Particulates / Non-precipitating water droplets", "ParticulatesWater",
    ),
    "rain": VariedQuantity(
        "rain", "rate", "mm/h", "high", 0.0, "",
        f"{_ENVIRONMENT} / Weather / Rainfall intensity", "WeatherRain",
    ),
    "illuminance": VariedQuantity(
        "night", "lux", "lux", "low", math.inf, "day",
        f"{_ENVIRONMENT} / Illumination", "IlluminationLowLight",
        highest=40.0,  # the exposure of `night`: brighter streets are overexposed
    ),
    "glare": VariedQuantity(
        "sun_glare", "lux", "lux", "high", 0.0, "",
        f"{_ENVIRONMENT} / Illumination", "DaySunPosition",
    ),
    "sun_elevation": VariedQuantity(
        "sun_glare", "elevation", "degrees", "low", 90.0, "",
        f"{_ENVIRONMENT} / Illumination / Elevation of the sun", "DaySunElevation", (("lux", 20000.0),),
    ),
    "jpeg_quality": VariedQuantity("jpeg_compression", "quality", "of 100", "low", 100.0),
}  # fmt: skip
ATTRIBUTES = {
    "distance": ("distance", "m"),
    "object_size": ("size", "px²"),
    "occlusion": ("occlusion", "share"),
}


@dataclass(frozen=True, slots=True)
class DimensionPart:
    """One cell of one dimension: a range, or values of a tag."""

    name: str
    low: float = -math.inf
    high: float = math.inf
    values: tuple[str, ...] = ()

    @property
    def numbers(self) -> str:
        return f"{self.low:g}–{self.high:g}"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension: `kind` is quantity, attribute or tag. A quantity may be varied by any of several
    corruptions, one `VariedQuantity` for each."""

    name: str
    kind: str
    unit: str
    parts: tuple[DimensionPart, ...]
    quantities: tuple[VariedQuantity, ...] = ()
    source: str = ""  # the attribute of objects, or the tag

    @property
    def word(self) -> str:
        return self.quantities[0].word if self.quantities else ""

    @property
    def absent(self) -> float:
        return self.quantities[0].absent if self.quantities else math.nan

    @property
    def lower_is_worse(self) -> bool:
        return bool(self.quantities) and self.quantities[0].worse == "low"

    def hardest(self, part: DimensionPart) -> float:
        """The end of a range where it is worst."""
        return part.low if self.lower_is_worse else part.high

    def contains(self, part: DimensionPart, value: float) -> bool:
        """Whether a value belongs to a cell: its worse end does, its other end does not, unless it is the
        mildest of the dimension."""
        if self.kind == "attribute":
            return part.low <= value < part.high
        if part.low == part.high:
            return value == part.low
        mild = part.high if self.lower_is_worse else part.low
        if value == mild:  # of the mildest cell, unless another is that value alone
            milder = [p for p in self.parts if p is not part and mild in (p.low, p.high)]
            return not milder
        return part.low <= value <= part.high

    def show(self, part: DimensionPart) -> str:
        """A cell in words: 'fog (100–300 m)'."""
        if self.kind == "tag" or part.low == part.high:
            return part.name
        ends = [self.word if math.isinf(end) else f"{end:g}" for end in (part.low, part.high)]
        span = f"{ends[0]}–{ends[1]} {self.unit}"
        return span if part.name == span else f"{part.name} ({span})"


@dataclass(frozen=True, slots=True)
class DomainRequirement:
    """A requirement on every cell, or on those that `where` names: the share of objects of a class that are
    found, or a measure of scores."""

    id: str
    metric: str
    found: str | None
    bound: str
    threshold: float
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    min_score: float = MIN_SCORE

    @property
    def text(self) -> str:
        what = f"{self.found} found" if self.found else self.metric
        return f"{what} {self.bound.replace('_', ' ')} {self.threshold:g}"


DomainCell = tuple[tuple[str, str], ...]  # of the domain: the name of a dimension and of its cell, for each


@dataclass(frozen=True)
class Domain:
    """The whole domain; `outside` says in words what is not part of it."""

    name: str
    dimensions: tuple[Dimension, ...]
    requirements: tuple[DomainRequirement, ...]
    excluded: tuple[DomainCell, ...] = ()
    outside: tuple[str, ...] = ()
    planned_images: int | None = None

    @cached_property
    def by_name(self) -> dict[str, Dimension]:
        return {each.name: each for each in self.dimensions}

    def part(self, dimension: str, name: str) -> DimensionPart:
        return next(part for part in self.by_name[dimension].parts if part.name == name)

    def cells(self, requirement: DomainRequirement) -> list[DomainCell]:
        """The cells that a requirement is judged in. Attributes of objects do not cut measures of scores,
        because false positives have none."""
        where = dict(requirement.where)
        cut = [d for d in self.dimensions if requirement.found or d.kind != "attribute"]
        choices = [
            [(d.name, part.name) for part in d.parts if part.name in where.get(d.name, (part.name,))]
            for d in cut
        ]
        return [cell for cell in product(*choices) if not self.is_excluded(cell)]

    def is_excluded(self, cell: DomainCell) -> bool:
        return any(set(combination) <= set(cell) for combination in self.excluded)

    def show(self, cell: DomainCell) -> str:
        return (
            ", ".join(f"{name} {self.by_name[name].show(self.part(name, part))}" for name, part in cell)
            or "all of it"
        )

    def corners(self, cell: DomainCell) -> list[Condition]:
        """The conditions at the worst end of every quantity of a cell: one, or one for each of a dimension's
        corruptions. Clean where no corruption is in the cell."""
        choices = []
        for name, part_name in cell:
            dimension = self.by_name[name]
            if dimension.kind == "quantity":
                value = dimension.hardest(self.part(name, part_name))
                choices.append([(q, value) for q in dimension.quantities])
        return [compose_quantities(chosen) for chosen in product(*choices)]

    @property
    def attributes(self) -> list[str]:
        return [d.source for d in self.dimensions if d.kind == "attribute"]

    @property
    def gaps(self) -> list[str]:
        """The ranges between the cells of a dimension, which are not part of the domain."""
        return [
            f"{d.name} above {one.high:g} {d.unit}, short of {d.word or 'none'}" if math.isinf(two.low)
            else f"{d.name} {one.high:g}–{two.low:g} {d.unit}"
            for d in self.dimensions if d.kind != "tag"
            for one, two in pairwise(sorted(d.parts, key=lambda part: part.low))
            if one.high < two.low
        ]  # fmt: skip


def compose_quantities(chosen: Sequence[tuple[VariedQuantity, float]]) -> Condition:
    """The condition in which quantities have some values. Weather comes before light, since fog and rain are
    lit by what light there is; then the order of light through the camera."""
    params: dict[str, dict[str, float]] = {}
    severity: dict[str, float] = {}
    for quantity, value in chosen:
        if value == quantity.absent:
            continue
        if quantity.parameter == SEVERITY:
            severity[quantity.corruption] = value
        else:
            params.setdefault(quantity.corruption, dict(quantity.fixed))[quantity.parameter] = value
    parts = [Condition.of(name, int(v) if v == int(v) else v) for name, v in severity.items()]
    parts += [Condition.of(name, None, values) for name, values in params.items()]
    parts.sort(key=lambda part: find(str(part.corruption)).family != "weather")
    if not parts:
        return Condition()
    return in_order(Condition.composed(parts)) if len(parts) > 1 else parts[0]


def describe(domain: Domain) -> dict[str, Any]:
    """The domain as plain data, for evidence and for the page."""
    return {
        "name": domain.name,
        "cells": counted(math.prod(len(d.parts) for d in domain.dimensions), "cell"),
        "dimensions": [
            {
                "name": d.name, "kind": d.kind, "unit": d.unit, "source": d.source,
                "varied_by": [f"{q.corruption}, {q.parameter}" for q in d.quantities],
                "ISO 34503:2023": next((q.taxonomy for q in d.quantities if q.taxonomy), None),
                "cells": {
                    part.name: list(part.values) if d.kind == "tag" else
                    [None if math.isinf(end) else end for end in (part.low, part.high)]
                    for part in d.parts
                },
            }
            for d in domain.dimensions
        ],
        "requirements": [
            {"id": r.id, "requirement": r.text, "where": {name: list(parts) for name, parts in r.where}}
            for r in domain.requirements
        ],
        "outside": [*domain.outside, *domain.gaps, *(domain.show(cell) for cell in domain.excluded)],
    }  # fmt: skip
