"""Detection rate of people against false positives (*pezzementi* Fig. 4, 5), at fixed sensitivities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from stormproof.core.table import Table
from stormproof.core.text import plain
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import all_conditions, graded, ungraded
from stormproof.results.scores import Scores

FPPI = Axis("false positives per image", log=True)
_MOST = 50  # lines of people lost
RATE = Axis("detection rate (%)", percent=True)


def detection_rates(asked: Asked) -> Section | None:
    """ROC curves where the scores kept them, and the ADR of every condition."""
    rated = [s for s in asked.subjects if math.isfinite(s.score("ADR"))]
    if not rated:
        return None
    rows: list[Row] = []
    for subject in rated:
        for pick, text in _drawn(subject).items():
            curve = subject.roc[text]
            rows += [
                {"x": x, "y": 100 * y, "series": subject.name, "pick": pick}
                for x, y in zip(curve["fppi"], curve["rate"], strict=True)
                if x > 0
            ]
            rows += [
                {"x": x, "y": 100 * y, "series": subject.name, "pick": pick, "mark": True}
                for x, y in zip(curve["marks_fppi"], curve["marks_rate"], strict=True)
                if x > 0
            ]
    figures = (
        (
            Figure(
                "roc",
                "Detection rate of people against false positives",
                Kind.LINES,
                FPPI,
                RATE,
                rows,
                series="model",
                pick=("Condition", "Severity"),
                stepped=True,
                cite="pezzementi, Fig. 4 and 5",
                note="At IoU 0.5. Dots: where thresholds fixed on clean images lead under the condition.",
            ),
        )
        if rows
        else ()
    )
    texts = ["clean", *map(str, all_conditions(rated))]
    table = Table(
        "adr",
        "Average detection rate of people (%)",
        ("condition", *(s.name for s in rated)),
        [(text, *(100 * s.score("ADR", text) for s in rated)) for text in texts],
        note="The mean over nine sensitivities and five IoU. pezzementi, Table IV.",
    )
    return Section(
        "people",
        "Are people still found?",
        "A deployed detector keeps the threshold it was tuned to, so thresholds are fixed on clean images.",
        figures,
        (table, *_lost(rated)),
    )


def _drawn(subject: Scores) -> dict[tuple[str, str], str]:
    """Every condition with a curve, by what the reader picks; of a corruption the hardest severity first."""
    found = {("clean", ""): "clean"}
    for name, levels in graded(subject.corrupted).items():
        found |= {(name, f"{c.severity:g}"): str(c) for c in reversed(levels)}
    found |= {(text, ""): text for text in ungraded(subject.corrupted)}
    return {pick: text for pick, text in found.items() if text in subject.roc}


def _lost(rated: Sequence[Scores]) -> list[Table]:
    """People that a condition makes hardest to find again (*pezzementi*, Fig. 6)."""
    rows = [
        (plain(one["id"]), s.name, text, one["before"], one["after"], _orders(one))
        for s in rated
        for text, found in s.lost.items()
        for one in found
    ]
    rows.sort(key=lambda row: (-row[5], row[:3]))
    columns = (
        "image",
        "model",
        "condition",
        "false positives per image before",
        "after",
        "orders of magnitude",
    )
    note = "What a sensitivity must tolerate to find the hardest-hit person. A dash: not found at any."
    return [Table("lost", "People hardest to find again", columns, rows[:_MOST], 3, note)] if rows else []


def _orders(one: Mapping[str, Any]) -> float:
    after = one["after"]
    return math.inf if after is None else math.log10(after / one["before"])
