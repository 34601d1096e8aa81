"""What the page says about the scores of hand-made runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers.toy_scores import toy_scores
from stormproof.report.sections.calibration import COLUMNS, PERFECT, worth
from stormproof.report.view import make_view
from stormproof.results.interval import LEADING
from stormproof.results.scores import Replicates, Scores

CONDITIONS = ("clean", "fog@1", "fog@5", "snow@3")


def scored(name: str = "net", *, threshold: float = 0.55, boxes: float = 120) -> Scores:
    """Thick fog makes scores far too high and leaves few boxes; snow leaves none."""
    cells = {measure: dict.fromkeys(CONDITIONS, 0.1) for measure in COLUMNS}
    cells["AP"] = {"clean": 0.6, "fog@1": 0.5, "fog@5": 0.3, "snow@3": 0.2}
    cells["D-ECE"] |= {"clean": 0.05, "fog@1": 0.04, "fog@5": 0.3}
    cells["precision"] |= {"clean": 0.8, "fog@5": 0.6}
    cells["safe threshold"] |= {"clean": 0.3, "fog@5": threshold}
    cells["safe recall"] |= {"clean": 0.7, "fog@5": 0.4}
    bins = {"score": [0.35, 0.85], "precision": [0.3, 0.8], "low": [], "high": [], "detections": [60.0, 90.0]}
    fewer = {**bins, "precision": [0.1, 0.5], "detections": [boxes / 4, 3 * boxes / 4]}
    reliability = {"clean": bins, "fog@1": bins, "fog@5": fewer}
    return toy_scores(name, per_condition=cells, conditions=CONDITIONS, details={"reliability": reliability})


def test_the_sentence_names_the_worst_and_what_it_asks_of_a_threshold() -> None:
    assert worth(scored()) == (
        "Scores are off by 5.0 points on clean images and by 30.0 under fog, severity 5, the worst, where "
        "they promise too much. To keep the clean precision of 80 % under fog, severity 5, boxes must score "
        "0.55 or more, and the share of objects found falls from 70 % to 40 %."
    )


def with_halves(scores: Scores, noise: float) -> Scores:
    rng = np.random.default_rng(0)
    drawn = {
        text: np.r_[[value] * LEADING, value + rng.normal(0, noise, 200)]
        for text, value in scores.per_condition["D-ECE"].items()
    }
    return replace(scores, replicates=Replicates({"D-ECE": drawn}, {}))


def test_the_worst_condition_is_named_only_beyond_chance() -> None:
    assert "by 30.0 under fog, severity 5, the worst" in worth(with_halves(scored(), 0.01))
    unsure = worth(with_halves(scored(), 0.3))
    assert unsure.startswith("Scores are off by 5.0 points (95 %: 0.0 to ")
    assert unsure.endswith("clean images, and by clearly more under no condition with 100 boxes or more.")


def test_a_condition_that_ties_is_among_the_worst() -> None:
    made = scored()
    made.per_condition["D-ECE"]["fog@1"] = 0.29
    assert "by 30.0 under fog, severity 5, among the worst" in worth(with_halves(made, 0.02))


def test_of_two_conditions_the_one_that_is_off_by_more_is_named() -> None:
    held = scored()
    cells = {**held.per_condition, "D-ECE": {**held.per_condition["D-ECE"], "fog@1": 0.12}}
    both = toy_scores("net", per_condition=cells, conditions=CONDITIONS, details=held.details)
    assert "and by 30.0 under fog, severity 5" in worth(both)


def test_a_severity_without_boxes_does_not_hide_the_others_of_its_corruption() -> None:
    """The error of no boxes is unknown; a mean with it would be, too."""
    held = scored()
    cells = {**held.per_condition, "D-ECE": {**held.per_condition["D-ECE"], "fog@1": math.nan}}
    empty = {key: [math.nan, math.nan] for key in ("score", "precision")} | {"detections": [0.0, 0.0]}
    reliability = {**held.details["reliability"], "fog@1": empty}
    silent = toy_scores(
        "net", per_condition=cells, conditions=CONDITIONS, details={"reliability": reliability}
    )
    assert "by 30.0 under fog, severity 5" in worth(silent)


def test_errors_of_a_few_boxes_are_chance() -> None:
    assert worth(scored(boxes=80)) == (
        "Scores are off by 5.0 points on clean images, and by more under no condition with 100 boxes or more."
    )


def test_no_threshold_may_keep_precision() -> None:
    said = worth(scored(threshold=math.nan), name="net")
    assert said.startswith("net: scores are off by 5.0")
    assert said.endswith("Under fog, severity 5 no threshold keeps the clean precision of 80 %.")


def test_the_diagram_shows_clean_against_corrupted() -> None:
    section = next(each for each in make_view([scored()]).sections if each.id == "calibration")
    fog = [row for row in section.figures[0].rows if row["panel"] == "fog"]
    assert [(r["x"], r["y"]) for r in fog if r["series"] == "5"] == [(35.0, 10.0), (85.0, 50.0)]
    assert {row["series"] for row in fog} == {PERFECT, "clean", "1", "5"}
    snow = [row for row in section.figures[0].rows if row["panel"] == "snow"]
    assert {row["series"] for row in snow} == {PERFECT, "clean"}  # no box is left
    table = {row[1]: row[2:] for row in section.tables[0].rows}
    assert table["fog"][list(COLUMNS).index("D-ECE")] == pytest.approx(17.0)


def test_runs_without_scores_of_boxes_have_no_section() -> None:
    assert all(section.id != "calibration" for section in make_view([toy_scores()]).sections)
