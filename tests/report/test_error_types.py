"""What the page says about error types of hand-made scores."""

from __future__ import annotations

import numpy as np
import pytest

from report.conftest import toy_scores
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
    return toy_scores(name, cells=cells, conditions=CONDITIONS, **more)


def test_the_hardest_corruption_comes_first_with_its_costliest_error() -> None:
    # snow: 0.3 of 0.48; fog: Miss 0.3 of 0.4 on average; clean: 0.02 and 0.1 of 0.2
    assert leading(scored()) == (
        "Under snow, wrong classes cost most: 62 % of the cost of all errors, up from 10 % on clean images. "
        "Under fog, missed objects cost most: 75 % of the cost of all errors, up from 50 % on clean images."
    )


def test_a_share_that_stays_is_neither_up_nor_down() -> None:
    made = scored()
    for kind in TYPES:
        made.cells[f"dAP {kind}"]["snow@3"] = made.cells[f"dAP {kind}"]["clean"]
    assert "missed objects cost most: 50 % of the cost of all errors, as on clean images." in leading(made)


@pytest.mark.parametrize(("noise", "chance"), [(0.001, False), (0.2, True)])
def test_a_shift_within_the_noise_may_be_chance(noise: float, chance: bool) -> None:
    rng = np.random.default_rng(0)
    made = scored()
    drawn = {
        measure: {
            text: np.concatenate([[value] * 2, np.abs(value + rng.normal(0, noise, 200))])
            for text, value in row.items()
        }
        for measure, row in made.cells.items()
    }
    said = leading(scored(replicates=Replicates(drawn, {})), name="net")
    assert said.startswith("net under snow, wrong classes cost most: 62 % (95 %: ")
    assert ("may be chance" in said) is chance


def test_the_figure_shows_the_mixture_of_every_severity() -> None:
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


def test_nothing_is_drawn_where_almost_nothing_is_found() -> None:
    made = scored()
    made.cells["AP50"]["fog@3"] = 0.009
    (figure,) = next(each for each in make_view([made]).sections if each.id == "error-types").figures
    fog = dict.fromkeys(row["x"] for row in figure.rows if row["panel"] == "fog")
    assert list(fog) == ["clean", "1"]
    assert figure.note.startswith("No bar: AP50 is below 1 %")


def test_several_runs_are_picked_and_named() -> None:
    section = next(s for s in make_view([scored("a"), scored("b")]).sections if s.id == "error-types")
    assert {row["pick"] for row in section.figures[0].rows} == {("a, boxes",), ("b, boxes",)}
    assert "a under snow, wrong classes" in section.text
    assert "b under fog, missed objects" in section.text


def test_the_hardest_of_each_group_is_named_before_its_neighbours() -> None:
    """All noise is harder than blur and fog here, and yet both have a sentence."""
    ap = {"gaussian_noise": 0.1, "shot_noise": 0.12, "impulse_noise": 0.14, "motion_blur": 0.3, "fog": 0.4}
    texts = ("clean", *(f"{name}@3" for name in ap))
    cells = {"AP50": {"clean": 0.6, **{f"{name}@3": value for name, value in ap.items()}}}
    cells |= {f"dAP {kind}": dict.fromkeys(texts, COSTS[kind]) for kind in TYPES}
    said = leading(toy_scores(cells=cells, conditions=texts))
    named = [part.split(",")[0] for part in said.split("Under ")[1:]]
    assert named == ["gaussian noise", "motion blur", "fog"]


def test_a_run_without_clean_images_has_no_sentence() -> None:
    made = scored()
    cells = {m: {t: v for t, v in row.items() if t != "clean"} for m, row in made.cells.items()}
    assert leading(toy_scores(cells=cells, conditions=CONDITIONS[1:])) == ""
