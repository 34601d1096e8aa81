"""What the page says of detection rates, made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stormproof.report.elements import Kind
from stormproof.report.sections.slices import rate_section
from stormproof.results.detection_rate import Bin, DetectionRates


def rates(**more: list[float]) -> DetectionRates:
    rng = np.random.default_rng(0)
    bins = tuple(
        Bin(f"{10 * k}–{10 * k + 10} m", 10.0 * k, 10.0 * k + 10, 10.0 * k + 5, 60, 50) for k in range(4)
    )
    values = {"clean": [1.0, 0.9, 0.8, 0.7], "haze[visibility=100]": [0.9, 0.7, 0.3, 0.1], **more}
    drawn = {
        text: np.concatenate([[row], np.array(row) + rng.normal(0, 0.02, (100, 4))])
        for text, row in values.items()
    }
    return DetectionRates("net", "distance", "m", ("person",), 0.4, bins, drawn, 50)


def test_the_section_says_from_where_people_are_lost() -> None:
    section = rate_section({"net": rates()})
    # Between 15 m (0.7) and 25 m (0.3), where the line crosses one half: 20 m.
    said = "Where the detection rate of person falls below 50 %: clean, nowhere; haze[visibility=100], 20 m"
    assert section.text.startswith(said)
    (figure,) = section.figures
    assert figure.kind is Kind.LINES
    assert not figure.panel, "one corruption needs no panels"
    hazy = [row for row in figure.rows if row["series"] == "visibility=100"]
    assert [row["x"] for row in hazy] == [5, 15, 25, 35]
    assert [row["y"] for row in hazy] == pytest.approx([90, 70, 30, 10])
    assert all(row["low"] < row["y"] < row["high"] for row in hazy)
    (table,) = section.tables
    assert table.rows[2][0] == "haze[visibility=100]"
    assert str(table.rows[2][-1]).startswith("20 m (95 %: ")


def test_clean_images_stand_in_every_panel() -> None:
    section = rate_section({"net": rates(**{"fog@3": [0.4, 0.3, 0.2, math.nan]})})
    (figure,) = section.figures
    assert figure.panel == "corruption"
    clean = {row["panel"] for row in figure.rows if row["series"] == "clean"}
    assert clean == {"haze", "fog"}
    assert "fog@3, from the nearest on" in section.text
    assert len([row for row in figure.rows if row["series"] == "severity 3"]) == 3, "no objects, no mark"
