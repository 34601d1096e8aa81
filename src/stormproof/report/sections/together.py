"""What is worse together: what composed conditions cost beyond their parts alone."""

from __future__ import annotations

from dataclasses import replace

from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import Scope, limits, section, unit
from stormproof.results.interaction import Interaction, interaction_table, interactions, worse_together
from stormproof.results.scores import Scores

_SHOWN = 10  # composed conditions in the figure of the largest
_TEXT = (
    "Two corruptions at once may cost more than both alone. The sum of the parts predicts the loss if each "
    "takes as many points as it does alone; the product, if each keeps the share of the score that it keeps "
    "alone. What a composed condition costs beyond either is its interaction."
)
_NAMES = {"sum": "beyond the sum", "product": "beyond the product"}


@section(place=25)
def together(scope: Scope) -> Section | None:
    """The interactions of every run that has composed conditions and their parts."""
    shown = [
        (run, measure, made)
        for run, measure in scope.every()
        if (made := [*interactions(run, measure).values()])
    ]
    if not shown:
        return None
    several = len(shown) > 1
    said = [
        f"{run.name}: {words}" if several else words
        for run, measure, _ in shown
        if (words := worse_together(run, measure))
    ]
    tables = tuple(
        replace(table, id=f"{table.id}-{run.name}", title=f"{run.name}: {table.title}") if several else table
        for run, measure, _ in shown
        for table in [interaction_table(run, measure)]
    )
    return Section(
        "together",
        "What is worse together",
        " ".join((*said, _TEXT)),
        (_largest(shown, several), _predicted(shown, several)),
        tables,
        short="Together",
    )


Found = list[tuple[Scores, str, list[Interaction]]]


def _largest(shown: Found, several: bool) -> Figure:
    """The composed conditions with the largest interactions of each run, with intervals."""
    rows: list[Datum] = [
        {
            "x": one.condition, "y": scale * one.beyond[by].estimate, "series": words,
            **limits(one.beyond[by], scale), **({"pick": (run.name,)} if several else {}),
        }
        for run, measure, made in shown
        for scale in [measures()[measure].scale]
        for one in made[:_SHOWN]
        for by, words in _NAMES.items()
    ]  # fmt: skip
    return Figure(
        "interactions", "Cost beyond the parts alone", Kind.BARS, Axis("composed condition", names=True),
        Axis(f"interaction, {_unit(shown)}", zero=True), rows, series="interaction",
        pick=("Run",) if several else (),
        note="Lines are intervals that hold together for all composed conditions of a run, at 95 %.",
    )  # fmt: skip


def _predicted(shown: Found, several: bool) -> Figure:
    """What the parts predict, against what the composed conditions cost."""
    rows: list[Datum] = [
        {
            "x": scale * one.predicted(by), "y": scale * one.cost.estimate, "series": f"{by} of the parts",
            "label": one.condition, **({"pick": (run.name,)} if several else {}),
        }
        for run, measure, made in shown
        for scale in [measures()[measure].scale]
        for one in made
        for by in _NAMES
    ]  # fmt: skip
    return Figure(
        "predicted-loss", "Loss that the parts alone predict, and loss", Kind.POINTS,
        Axis(f"predicted loss, {_unit(shown)}"), Axis(f"loss, {_unit(shown)}", zero=True), rows,
        series="prediction", pick=("Run",) if several else (),
        note="On the diagonal, single corruptions tell what the composed condition costs.",
    )  # fmt: skip


def _unit(shown: Found) -> str:
    names = dict.fromkeys(unit(measure) for _, measure, _ in shown)
    return next(iter(names)) if len(names) == 1 else "score"
