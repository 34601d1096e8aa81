"""`compare` says when two runs are not of the same images and labels, and what it cannot compare."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from helpers.toy_scores import toy_scores
from stormproof.cli import app
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.report.comparison import compare_view
from stormproof.report.sources import scores_of

MODEL = f"{MODELS}:contrast_boxes"
UNFAIR = "Not a fair comparison"


def said(*words: object) -> str:
    shown = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "400"})
    assert shown.exit_code == 0, shown.output
    return " ".join(shown.output.split())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run, the same again, one on fewer images, one with other labels; and their submissions."""
    place = tmp_path_factory.mktemp("runs")
    scene = write_scene(place / "scene", images=6)
    other = write_scene(place / "other", images=6)
    labels = json.loads((place / "other" / "instances.json").read_text())
    for box in labels["annotations"]:
        box["bbox"][0] += 2
    (place / "other" / "instances.json").write_text(json.dumps(labels))
    made = {}
    for name, data, limit in (
        ("run", scene, 6),
        ("again", scene, 6),
        ("few", scene, 4),
        ("labels", other, 6),
    ):
        made[name] = place / name
        settings = {"model": MODEL, "data": data, "conditions": ["fog@1-2", "contrast@1"], "limit": limit}
        run(make_config(settings | {"engine": "local", "out": str(made[name])}))
        made[f"{name}.json"] = place / f"{name}.json"
        said("submit", made[name], "--out", made[f"{name}.json"])
    return made


@pytest.mark.parametrize(("first", "second"), [("run", "run"), ("run.json", "run.json"), ("run", "run.json")])
def test_compares_the_same_images_without_a_notice(runs: dict[str, Path], first: str, second: str) -> None:
    shown = said("compare", runs[first], runs[second.replace("run", "again")])
    assert UNFAIR not in shown
    assert "nan" not in shown
    assert "AP changes by +0.0 on clean images and by +0.0 under corruption" in shown


@pytest.mark.parametrize("first", ["run", "run.json"])
@pytest.mark.parametrize("second", ["few", "few.json"])
def test_says_that_the_numbers_of_images_differ(runs: dict[str, Path], first: str, second: str) -> None:
    shown = said("compare", runs[first], runs[second])
    assert UNFAIR in shown
    assert "was run on 6 images of instances" in shown
    assert "on 4 images of instances" in shown


@pytest.mark.parametrize("second", ["labels", "labels.json"])
def test_says_that_the_labels_differ(runs: dict[str, Path], second: str) -> None:
    shown = said("compare", runs["run"], runs[second])
    assert UNFAIR in shown
    assert "with other images or labels" in shown
    assert "Images that changed most" not in shown


def test_says_when_nothing_tells_whether_images_are_the_same() -> None:
    view = compare_view(toy_scores(), replace(toy_scores("other"), dataset="coco"))
    assert view.notices[0] == (
        "net was run on 500 images of toy, other on 500 images of coco: nothing says whether these are the "
        "same images."
    )
    assert not compare_view(toy_scores(), toy_scores("other")).notices


def test_says_what_it_cannot_compare() -> None:
    whole = toy_scores()
    cells = {text: value for text, value in whole.per_condition["AP"].items() if text != "clean"}
    bare = replace(toy_scores("bare"), per_condition={"AP": cells}, conditions=tuple(cells))
    sentence = compare_view(whole, bare).sentences[0]
    assert "AP changes by +0.0 under corruption (on clean images not both have a score)" in sentence


def test_the_scores_of_a_submission_are_those_of_its_run(runs: dict[str, Path]) -> None:
    (scores,), (entry,) = scores_of(runs["run"]), scores_of(runs["run.json"])
    assert entry.conditions == scores.conditions
    assert entry.over == scores.over
    assert entry.score("AP") == scores.score("AP")
