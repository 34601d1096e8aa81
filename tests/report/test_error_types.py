"""What the page says about error types of hand-made scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.toy_scores import toy_scores
from stormproof.metrics.error_types import SPECIAL, TYPES
from stormproof.report.sections.error_types import leading
from stormproof.report.view import make_view
from stormproof.results.scores import Replicates, Scores

COSTS = {"Cls": 0.02, "Loc": 0.06, "Both": 0.0, "Dupe": 0.0, "Bkg": 0.02, "Miss": 0.1}  # of clean images
CONDITIONS = ("clean", "fog@1", "fog@3", "snow@3")


def scored(name: str = "net", **more: object) -> Scores:
    """Fog doubles what missed objects cost and snow makes wrong classes the worst."""
    costs = {text: dict(COSTS) for text in CONDITIONS}
    costs["fog@1"]["Miss"], costs["fog@3"]["Miss"] = 0.2, 0.4
    costs["snow@3"]["Cls"] = 0.3
    cells: dict[str, dict[str, float]] = {"AP50": {"clean": 0.6, "fog@1": 0.5, "fog@3": 0.3, "snow@3": 0.2}}
    for kind in TYPES:
        cells[f"dAP {kind}"] = {text: costs[text][kind] for text in CONDITIONS}
        cells[f"{kind} share"] = {text: costs[text][kind] / sum(costs[text].values()) for text in CONDITIONS}
        cells[f"{kind} per image"] = dict.fromkeys(CONDITIONS, 1.5)
    for kind in SPECIAL:
        cells[f"dAP {kind}"] = dict.fromkeys(CONDITIONS, 0.2)
        cells[f"{kind} per image"] = dict.fromkeys(CONDITIONS, 3.0)
    return toy_scores(name, per_condition=cells, conditions=CONDITIONS, **more)


def test_the_hardest_corruption_comes_first_with_its_costliest_error() -> None:
    # snow: 0.3 of 0.48; fog: Miss 0.3 of 0.4 on average; clean: 0.02 and 0.1 of 0.2
    assert leading(scored()) == (
        "Wrong classes cost most under snow (62 % of the cost of all errors), against 10 % on clean images; "
        "missed objects cost most under fog (75 % of the cost of all errors), against 50 % on clean images."
    )


def with_halves(made: Scores, noise: float = 0.001) -> Scores:
    rng = np.random.default_rng(0)
    drawn = {
        measure: {
            text: np.concatenate([[value] * 2, np.abs(value + rng.normal(0, noise, 200))])
            for text, value in row.items()
        }
        for measure, row in made.per_condition.items()
    }
    return replace(made, replicates=Replicates(drawn, {}))


def test_a_clear_shift_is_named_with_its_interval() -> None:
    said = leading(with_halves(scored(), 0.001), name="net")
    assert said.startswith("net: wrong classes cost most under snow (62 % of the cost of all errors, 95 %: 6")
    assert "), against 10 % on clean images (clearly less than under snow); missed objects cost" in said


def test_an_error_type_that_may_lead_by_chance_is_not_named() -> None:
    said = leading(with_halves(scored(), 0.2))
    assert "Missed objects cost most under fog (75 % of the cost of all errors, 95 %: " in said
    assert said.endswith(
        "against 50 % on clean images (no clear difference); under snow, no type of error clearly costs most."
    )


def test_corruptions_with_the_same_costliest_error_share_a_clause() -> None:
    made = scored()
    for kind in TYPES:
        made.per_condition[f"dAP {kind}"]["snow@3"] = made.per_condition[f"dAP {kind}"]["clean"]
    said = leading(with_halves(made))
    assert said.count("Missed objects") == 1
    assert "under snow (50 % of the cost of all errors, 95 %: " in said
    assert "and fog (75 %, 95 %: " in said
    assert said.endswith("against 50 % on clean images (clearly less than under fog).")


def test_the_figure_shows_the_error_types_at_every_severity() -> None:
    view = make_view([scored()])
    section = next(each for each in view.sections if each.id == "error-types")
    (figure,) = section.figures
    fog = [row for row in figure.rows if row["panel"] == "fog"]
    assert list(dict.fromkeys(row["x"] for row in fog)) == ["clean", "1", "3"]
    for x in ("clean", "1", "3"):
        assert sum(row["y"] for row in fog if row["x"] == x) == pytest.approx(100)
    assert not figure.pick
    costs = {row[1]: row[2:] for row in section.tables[0].rows}
    assert costs["fog"][TYPES.index("Miss")] == pytest.approx(30.0)
    assert costs["clean"][TYPES.index("Loc")] == pytest.approx(6.0)


def test_draws_no_bar_where_ap50_is_below_1_percent() -> None:
    made = scored()
    made.per_condition["AP50"]["fog@3"] = 0.009
    (figure,) = next(each for each in make_view([made]).sections if each.id == "error-types").figures
    fog = dict.fromkeys(row["x"] for row in figure.rows if row["panel"] == "fog")
    assert list(fog) == ["clean", "1"]
    assert figure.note.startswith("No bar: AP50 is below 1 %")


def test_several_runs_are_picked_and_named() -> None:
    section = next(s for s in make_view([scored("a"), scored("b")]).sections if s.id == "error-types")
    assert {row["pick"] for row in section.figures[0].rows} == {("a, boxes",), ("b, boxes",)}
    assert section.finding is not None
    assert "a: wrong classes cost most under snow" in section.finding
    assert "b: wrong classes cost most under snow" in section.finding


def test_the_hardest_of_each_group_is_named_before_its_neighbours() -> None:
    """All noise is harder than blur and fog here, and yet both have a sentence."""
    ap = {"gaussian_noise": 0.1, "shot_noise": 0.12, "impulse_noise": 0.14, "motion_blur": 0.3, "fog": 0.4}
    texts = ("clean", *(f"{name}@3" for name in ap))
    cells = {"AP50": {"clean": 0.6, **{f"{name}@3": value for name, value in ap.items()}}}
    cells |= {f"dAP {kind}": dict.fromkeys(texts, COSTS[kind]) for kind in TYPES}
    said = leading(toy_scores(per_condition=cells, conditions=texts))
    assert "under gaussian noise (50 % of the cost of all errors), motion blur (50 %) and fog (50 %)" in said


def test_a_run_without_clean_images_has_no_sentence() -> None:
    made = scored()
    cells = {m: {t: v for t, v in row.items() if t != "clean"} for m, row in made.per_condition.items()}
    assert leading(toy_scores(per_condition=cells, conditions=CONDITIONS[1:])) == ""
