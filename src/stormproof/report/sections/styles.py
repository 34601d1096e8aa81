"""Sequences of style strengths (*theodoridis*): curves by size, mode and space, and model distances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid
from stormproof.metrics.sequences import SIZES, distance_matrix, relative_performance
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.results.scores import Scores

STYLE, STRENGTH = "style", "alpha"
MODES = {"": "image"}  # a style condition without `on` changes the whole image
_SPACES = "feature"  # and without `space` works on features


class Variant(NamedTuple):
    """One sequence: where the style goes, and where it is blended."""

    mode: str
    space: str


Sequence = dict[float, Mapping[str, float]]


def sequences(asked: Asked) -> Section | None:
    """α curves of the style conditions that the runs hold."""
    lines: list[Row] = []
    curves: dict[tuple[str, Variant], dict[str, dict[str, dict[float, float]]]] = {}
    for what, prefix in (("masks", "mask "), ("boxes", "")):
        for subject in asked.subjects:
            for variant, sequence in _sequences(subject, prefix).items():
                clean = {name: subject.score(prefix + name) for name in SIZES}
                lines += _absolute(subject, what, variant, sequence, clean)
                try:
                    relative = relative_performance(sequence, clean)
                except IncompleteGrid:
                    continue
                lines += _relative(subject, what, variant, relative)
                curves.setdefault((what, variant), {})[subject.name] = relative
    if not lines:
        return None
    figures = [
        Figure(
            "alpha",
            "Performance along the strength of style",
            Kind.LINES,
            Axis("α, strength of style (0 to 1)"),
            Axis("AP or rAP (%)", zero=True),
            lines,
            series="model",
            panel="objects",
            pick=("Of", "Scale", "Mode", "Space"),
            cite="theodoridis, Fig. 4 to 9, 14, 16 to 19",
            by_run=True,
            note="Group by a tag (backbone, neck, framework, pre-training) to average models that share it.",
        ),
        *_distances(curves),
    ]
    return Section(
        "styles",
        "Along the strength of style",
        "Objects are small below 32² pixels, large from 96². rAP is AP as a share of the clean AP.",
        tuple(figures),
    )


def _sequences(subject: Scores, prefix: str) -> dict[Variant, Sequence]:
    """Scores by α for each variant; pixel space begins at clean and ends at feature space's α = 1."""
    found: dict[Variant, Sequence] = {}
    for condition in subject.corrupted:
        variant = _variant(condition)
        row = {name: subject.score(prefix + name, str(condition)) for name in SIZES}
        if variant is not None and not all(map(math.isnan, row.values())):
            found.setdefault(variant, {})[float(dict(condition.params)[STRENGTH])] = row
    for variant, sequence in found.items():
        feature = found.get(Variant(variant.mode, _SPACES), {})
        if variant.space == "pixel":
            sequence[0.0] = {name: subject.score(prefix + name) for name in SIZES}
            if 1.0 in feature:
                sequence[1.0] = feature[1.0]
    return found


def _variant(condition: Condition) -> Variant | None:
    params = dict(condition.params)
    if condition.corruption != STYLE or not isinstance(params.get(STRENGTH), int | float):
        return None
    mode = str(params.get("on", ""))
    return Variant(MODES.get(mode, mode), str(params.get("space", _SPACES)))


def _absolute(
    subject: Scores, what: str, variant: Variant, sequence: Sequence, clean: Mapping[str, float]
) -> list[Row]:
    return [
        {
            "x": alpha,
            "y": 100 * row[name],
            "series": subject.name,
            "panel": name,
            "pick": (what, "absolute", *variant),
        }
        for alpha, row in sorted(sequence.items())
        for name in clean
        if math.isfinite(row[name])
    ]


def _relative(
    subject: Scores, what: str, variant: Variant, relative: Mapping[str, Mapping[float, float]]
) -> list[Row]:
    return [
        {
            "x": alpha,
            "y": 100 * value,
            "series": subject.name,
            "panel": f"r{name}",
            "pick": (what, "relative", *variant),
        }
        for name, row in relative.items()
        for alpha, value in row.items()
        if math.isfinite(value)
    ]


def _distances(
    curves: Mapping[tuple[str, Variant], dict[str, dict[str, dict[float, float]]]],
) -> list[Figure]:
    rows: list[Row] = []
    for (what, variant), models in curves.items():
        if len(models) < 2:
            continue
        try:
            found = distance_matrix(models)
        except IncompleteGrid:
            continue
        rows += [
            {"x": a, "y": b, "v": float(found.matrix[i, j]), "pick": (what, *variant)}
            for i, a in enumerate(found.models)
            for j, b in enumerate(found.models)
        ]
    return (
        [
            Figure(
                "distances",
                "Distance between models' curves",
                Kind.HEAT,
                Axis("model", names=True),
                Axis("model", names=True),
                rows,
                pick=("Of", "Mode", "Space"),
                value="Euclidean distance over α",
                cite="theodoridis, Fig. 15",
            )
        ]
        if rows
        else []
    )
