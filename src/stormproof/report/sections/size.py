"""What is left of the clean score against how far pixels moved (*michaelis* Fig. 6, *kamann* Fig. 20)."""

from __future__ import annotations

import math
from statistics import fmean

from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import RELATIVE, all_levels, graded, group_of, share
from stormproof.results.scores import Scores

RMSE = Axis("RMSE against the clean image (grey levels)", zero=True)
SNR = Axis("signal-to-noise ratio (dB)")


def against_size(asked: Asked) -> Section | None:
    """Relative performance against RMSE and SNR, where the runs kept them."""
    measured = [s for s in asked.subjects if s.quality and math.isfinite(s.score(asked.measure))]
    if not measured:
        return None
    arrows = len(measured) == 2 and measured[0].dataset == measured[1].dataset
    subjects = measured[:1] if arrows else measured
    rows = [row for s in subjects for row in _by_corruption(s, asked.measure)]
    if not rows:
        return None
    note = ""
    if arrows:
        after = {row["label"]: row for row in _by_corruption(measured[1], asked.measure)}
        rows = [_arrow(row, after) for row in rows]
        note = f"Dots are {measured[0].name}; arrows end at {measured[1].name}."
    by_rmse = Figure(
        "rmse",
        "What is left against RMSE, mean of each corruption",
        Kind.POINTS,
        RMSE,
        RELATIVE,
        rows,
        series="group",
        panel="" if arrows or len(subjects) == 1 else "model",
        note=note,
        cite="michaelis, Fig. 6",
    )
    lines = [row for s in measured for row in _by_snr(s, asked.measure)]
    by_snr = Figure(
        "snr",
        "What is left against SNR, each condition",
        Kind.LINES,
        SNR,
        RELATIVE,
        lines,
        series="corruption",
        pick=("Model", "Group"),
        cite="kamann, Fig. 20",
    )
    return Section(
        "size",
        "Is it the size of the change?",
        "A corruption above another at equal RMSE or SNR hurts less than its size says.",
        (by_rmse, by_snr) if lines else (by_rmse,),
    )


def _by_corruption(subject: Scores, measure: str) -> list[Row]:
    rows: list[Row] = []
    for name, levels in all_levels(subject.corrupted).items():
        errors = [subject.quality.get(str(c), {}).get("rmse", math.nan) for c in levels]
        scores = [subject.score(measure, str(c)) for c in levels]
        left = share(fmean(scores), subject.score(measure))
        if all(map(math.isfinite, (*errors, left))):
            rows.append(
                {
                    "x": fmean(errors),
                    "y": left,
                    "label": name,
                    "series": group_of(name),
                    "panel": subject.name,
                }
            )
    return rows


def _arrow(row: Row, after: dict[str, Row]) -> Row:
    end = after.get(row["label"])
    return row if end is None else {**row, "x2": end["x"], "y2": end["y"]}


def _by_snr(subject: Scores, measure: str) -> list[Row]:
    return [
        {
            "x": snr,
            "y": share(score, subject.score(measure)),
            "series": name,
            "pick": (subject.name, group_of(name)),
        }
        for name, levels in graded(subject.corrupted).items()
        if len(levels) > 1
        for c in levels
        if math.isfinite(snr := subject.quality.get(str(c), {}).get("snr", math.nan))
        and math.isfinite(share(score := subject.score(measure, str(c)), subject.score(measure)))
    ]
