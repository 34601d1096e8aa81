"""Sections of a report, in the order of the page; each appears when the runs hold what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stormproof.report.elements import Section
from stormproof.results.scores import Scores


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is about: its runs, the measure it compares, and the run others are set against.

    `others` lack that measure, being of another task; where a figure shows one run at a time, they are in it
    by their own.
    """

    subjects: Sequence[Scores]
    measure: str
    reference: Scores
    others: Sequence[Scores] = ()

    def every(self) -> list[tuple[Scores, str]]:
        """Every run with the measure it is shown by."""
        return [*((s, self.measure) for s in self.subjects), *((s, s.headline) for s in self.others)]


Maker = Callable[[Asked], Section | None]


def all_sections(asked: Asked) -> tuple[Section, ...]:
    """Every section that the runs allow."""
    from stormproof.report.sections import (
        camera,
        classes,
        curves,
        degradation,
        overview,
        people,
        prediction,
        size,
        styles,
    )

    makers: tuple[Maker, ...] = (
        overview.grid,
        curves.by_severity,
        size.against_size,
        classes.by_class,
        degradation.degradation,
        camera.errors,
        styles.sequences,
        people.detection_rates,
        prediction.predicted,
        overview.clean_gains,
    )
    return tuple(section for make in makers if (section := make(asked)) is not None)
