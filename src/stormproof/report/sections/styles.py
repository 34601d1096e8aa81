"""Sequences of style strengths (*theodoridis*): curves by size, mode and space, and distances of models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from stormproof.core.errors import IncompleteGrid
from stormproof.metrics.sequences import SIZES, curve_of, distance_matrix, relative_performance
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import Scope, section
from stormproof.results.scores import Scores


class Variant(NamedTuple):
    """One sequence: what is stylized (image, objects, background), and in which space it is blended."""

    mode: str
    space: str


Sequence = dict[float, Mapping[str, float]]  # α → score name → score
Relative = dict[str, dict[float, float]]  # score name → α → share of the clean score


@section(place=50, paper=True)
def sequences(scope: Scope) -> Section | None:
    """α curves of the style conditions that the runs hold."""
    lines: list[Datum] = []
    overlaid: list[Datum] = []
    curves: dict[tuple[str, Variant], dict[str, Relative]] = {}
    for objects, prefix in (("masks", "mask "), ("boxes", "")):
        for run in scope.runs:
            clean = {name: run.score(prefix + name) for name in SIZES}
            for variant, sequence in _sequences(run, prefix).items():
                absolute = {name: {a: row[name] for a, row in sequence.items()} for name in SIZES}
                lines += _rows(run, absolute, "", (objects, "absolute", *variant))
                try:
                    relative = relative_performance(sequence, clean)
                except IncompleteGrid:
                    continue
                lines += _rows(run, relative, "r", (objects, "relative", *variant))
                overlaid += _rows(run, relative, "r", (objects, variant.mode), f", {variant.space} space")
                curves.setdefault((objects, variant), {})[run.name] = relative
    if not lines:
        return None
    figure = Figure(
        "alpha", "Performance along the strength of style", Kind.LINES, Axis("α, strength of style (0 to 1)"),
        Axis("AP or rAP (%)", zero=True), lines, series="model", panel="objects",
        pick=("Of", "Scale", "Mode", "Space"), cite="theodoridis, Fig. 5 to 9, 14, 16 to 19", by_run=True,
        note="Group by a tag (backbone, neck, framework, pre-training) to average models that share it.",
    )  # fmt: skip
    both = len({variant.space for _, variant in curves}) > 1
    spaces = Figure(
        "spaces", "Feature space and pixel space", Kind.LINES, figure.x, Axis("rAP (%)", zero=True),
        overlaid if both else [], series="model and space", panel="objects", pick=("Of", "Mode"),
        cite="theodoridis, Fig. 6", note="Pixel space is the paper's control: it starts at the clean score.",
    )  # fmt: skip
    return Section(
        "styles",
        "Along the strength of style",
        "Objects below 32² pixels are small, from 96² large. rAP is AP as a share of the clean AP.",
        (figure, spaces, _distances(curves)),
        short="Style",
    )


def _sequences(run: Scores, prefix: str) -> dict[Variant, Sequence]:
    """Scores by α for each variant; pixel space begins at clean and ends at feature space's α = 1."""
    sequences: dict[Variant, Sequence] = {}
    for condition in run.corrupted:
        if (curve := curve_of(condition)) is None:
            continue
        space, mode, alpha = curve
        row = {name: run.score(prefix + name, str(condition)) for name in SIZES}
        if not all(map(math.isnan, row.values())):
            sequences.setdefault(Variant(mode, space), {})[alpha] = row
    for variant, sequence in sequences.items():
        feature = sequences.get(Variant(variant.mode, "feature"), {})
        if variant.space == "pixel":
            sequence[0.0] = {name: run.score(prefix + name) for name in SIZES}
            if 1.0 in feature:
                sequence[1.0] = feature[1.0]
    return sequences


def _rows(
    run: Scores, curves: Mapping[str, Mapping[float, float]], r: str, pick: tuple[str, ...], label: str = ""
) -> list[Datum]:
    return [
        {"x": alpha, "y": 100 * value, "series": run.name + label, "panel": f"{r}{name}", "pick": pick}
        for name, curve in curves.items()
        for alpha, value in sorted(curve.items())
    ]


def _distances(curves: Mapping[tuple[str, Variant], dict[str, Relative]]) -> Figure:
    rows: list[Datum] = []
    for (objects, variant), models in curves.items():
        try:
            distances = distance_matrix(models)
        except IncompleteGrid:
            continue
        rows += [
            {"x": a, "y": b, "v": float(distances.matrix[i, j]), "pick": (objects, *variant)}
            for i, a in enumerate(distances.models)
            for j, b in enumerate(distances.models)
            if len(models) > 1
        ]
    return Figure(
        "distances", "Distance between models' curves", Kind.HEAT, Axis("model", names=True),
        Axis("model", names=True), rows, pick=("Of", "Mode", "Space"), value="Euclidean distance over α",
        cite="theodoridis, Fig. 15",
    )  # fmt: skip
