"""Several runs beside each other: models as rows, and their clean scores beside what their cards promise."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from stormproof.results.aggregates import MEAN
from stormproof.results.score import Scores
from stormproof.results.tables import percent

FAR = 0.005  # half a point: more than the usual differences between decoders and resizing


def models_table(every: Mapping[str, Scores]) -> Table:
    """One row for each run: its headline measure on clean images, under corruption, and their ratio.

    Where the conditions are no benchmark or suite, there is a mean over them instead.
    """
    table = Table(title="Models (in %)", title_justify="left")
    for name in ("model", "dataset", "measure"):
        table.add_column(name, overflow="fold")
    totals = {name: scores.aggregates.get(scores.headline, {}) for name, scores in every.items()}
    unnamed = [MEAN] if any(MEAN in found for found in totals.values()) else []
    for name in ("P", "mPC", "rPC", *unnamed, "conditions"):
        table.add_column(name, justify="right")
    for name, scores in every.items():
        found = totals[name]
        clean = scores.by_measure[scores.headline].get("clean", math.nan)
        cells = [percent(value) for value in (clean, *map(found.get, ("mPC", "rPC", *unnamed)))]
        table.add_row(
            Text(name), Text(scores.record.dataset.name), scores.headline, *cells,
            str(len(scores.record.conditions) - len(scores.missing)),
        )  # fmt: skip
    return table


def expectations(scores: Scores) -> list[str]:
    """Warnings about clean scores that are not what the model's card promises."""
    found = []
    for measure, promised in scores.record.expect.items():
        clean = scores.by_measure.get(measure, {}).get("clean", math.nan)
        if math.isnan(clean):
            found.append(f"no clean {measure} to compare with the expected {100 * promised:.1f}.")
        elif abs(clean - promised) > FAR:
            found.append(
                f"clean {measure} is {100 * clean:.1f}, expected {100 * promised:.1f}: check the model's "
                "size, normalisation and classes, and that these are the card's images."
            )
    return found
