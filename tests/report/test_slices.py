"""What the page says of detection rates and slices, made by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from helpers.toy_scores import toy_scores
from stormproof.datasets.attributes import Attribute
from stormproof.report.elements import Kind
from stormproof.report.sections import limits
from stormproof.report.sections.slices import rate_section, slice_section
from stormproof.results.detection_rate import Bin, DetectionRates
from stormproof.results.interval import Interval
from stormproof.results.scores import Replicates, Scores
from stormproof.results.slices import Slices


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


def part(name: str, images: int, clean: float, fog: float) -> Scores:
    """Scores under fog of one severity, with replicates that all slices share."""
    noise = np.concatenate([[0.0, 0.0], np.random.default_rng(1).normal(0, 0.01, 100)])
    row = {"clean": clean, "fog@3": fog}
    drawn = {text: value + noise * (1 + clean) for text, value in row.items()}
    return toy_scores(
        name,
        per_condition={"AP": row},
        conditions=tuple(row),
        images=images,
        replicates=Replicates({"AP": drawn}, {}),
    )


def by_light(**fog: float) -> Slices:
    """By day and by night alike when clean, under fog as given; all images score 0.4 there."""
    whole = part("all images", 300, 0.6, 0.4)
    slices = {name: part(name, 150, 0.6, value) for name, value in fog.items()}
    light = Attribute("light", ("day", "night") * 150, tuple(fog))
    return Slices(light, "AP", whole, slices, dict.fromkeys(fog, whole))


def test_slices_that_differ_clearly_under_corruption_are_named_the_worst_first() -> None:
    section = slice_section({"net": by_light(dawn=0.45, day=0.4, night=0.2)})
    said = "Clearly different from all images, in points of AP (mean over 1 condition): night -20.0 ("
    assert section.text.startswith(said)
    assert "; dawn +5.0 (" in section.text
    assert "day " not in section.text.partition(". ")[0].replace("dawn", "")


def test_slices_that_do_not_differ_are_not_named() -> None:
    section = slice_section({"net": by_light(day=0.4, night=0.4)})
    assert section.text.startswith("No slice differs clearly from all images (AP, mean over 1 condition).")
    rows = {(row["x"], row["series"]): row["y"] for row in section.figures[0].rows}
    assert rows["night", "clean"] == pytest.approx(60.0)
    assert rows["night", "mean over 1 condition"] == pytest.approx(40.0)


def test_the_bar_of_a_slice_has_its_interval() -> None:
    found = by_light(day=0.4, night=0.2)
    (figure,) = slice_section({"net": found}).figures
    interval = found["night"].intervals("AP")["mean"]
    row = next(row for row in figure.rows if row["x"] == "night" and row["series"] != "clean")
    assert (row["low"], row["high"]) == pytest.approx((100 * interval.low, 100 * interval.high))
    assert row["low"] < row["y"] < row["high"]


def test_slices_of_fewer_than_a_hundred_images_are_named() -> None:
    held = by_light(day=0.4, night=0.2)
    sizes = {"day": 100, "night": 99}
    found = replace(held, slices={name: replace(held[name], images=count) for name, count in sizes.items()})
    assert found.table().note.endswith("Fewer than 100 images: night.")


def test_a_relative_slice_has_the_confidence_of_the_smaller_slice() -> None:
    held = by_light(day=0.4, night=0.2)
    small = replace(held["night"], images=40)
    found = replace(held, slices={"day": held["day"], "night": small}, clean=held["day"])
    assert {name: interval.images for name, interval in found.relative().items()} == {"day": 150, "night": 40}
    other = replace(held, clean=small)
    assert other.relative()["day"].images == 40


def test_a_rate_is_printed_with_half_the_width_of_its_interval() -> None:
    found = rates()
    row = found.table().rows[2]
    for k, cell in enumerate(row[1:5]):
        interval = found.interval("haze[visibility=100]", k)
        told = str(cell).split(" ± ")
        assert float(told[0]) == pytest.approx(100 * interval.estimate, abs=0.5)
        assert float(told[1]) == pytest.approx(50 * (interval.high - interval.low), abs=0.5)
    near, far = re.findall(r"95 %: (\d+) to (\d+)", str(row[5]))[0]
    assert int(near) <= 20 <= int(far)
    assert int(near) < int(far)


def test_the_section_is_about_the_conditions_that_lose_most() -> None:
    more = {f"fog@{s}": [0.9 - 0.15 * s] * 4 for s in range(1, 6)}
    told = rate_section({"net": rates(**more)}).text.partition(". ")[0]
    named = [text for text in ("clean", *more, "haze[visibility=100]") if f"{text}," in told]
    assert named == ["clean", "fog@3", "fog@4", "fog@5"]


def test_the_interval_of_a_rate_stays_within_its_axis() -> None:
    (figure,) = rate_section({"net": rates(**{"fog@3": [0.01, 0.0, 0.99, 1.0]})}).figures
    assert all(0 <= row["low"] <= row["high"] <= 100 for row in figure.rows)
    assert limits(Interval(0.1, -0.2, 1.3, 0.3), least=0.0, most=100.0) == {"low": 0.0, "high": 100.0}
    assert limits(Interval(0.1, -0.2, 1.3, 0.3)) == pytest.approx({"low": -20.0, "high": 130.0})
