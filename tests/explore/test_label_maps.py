"""Label maps in explore: wrong pixels and IoU of an image and of a cell are those of the scores."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

import stormproof as sp
from stormproof.core.condition import Condition
from stormproof.core.sample import Prediction, SemanticMap, Truth
from stormproof.explore.desk import Desk
from stormproof.explore.judged import Vocabulary
from stormproof.explore.mapped import colours, pixels_of_image
from stormproof.explore.subject import explore_runs

DATA = "world:test,size=96x60,count=6"
MODEL = """
import numpy as np
from stormproof import Prediction, open_dataset

semantic_classes = (*open_dataset("{data}").semantic_classes[:8], "cloud")

def by_brightness(images):
    return [Prediction(semantic=(image[..., 1] // 29).astype(np.uint8)) for image in images]

by_brightness.semantic_classes = semantic_classes
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("maps")
    (folder / "guess.py").write_text(MODEL.format(data=DATA))
    model = f"{folder}/guess.py:by_brightness"
    sp.run(model, DATA, out=folder / "run", conditions="fog@3", engine="local", progress=False)
    made = Desk(explore_runs([folder / "run"], models=[model]))
    made.exploration.make_scores()
    return made


@pytest.mark.parametrize("condition", ["clean", "fog@3"])
def test_pixels_of_a_cell_and_of_its_images_are_those_of_the_scores(desk: Desk, condition: str) -> None:
    asked = Condition.parse(condition)
    tally = desk.tallies(0, asked)
    assert tally is not None
    scores = desk.exploration.subjects[0].scores
    assert scores is not None
    assert tally["images"] == 6
    assert tally["pixels"]["iou"] == pytest.approx(scores.score("mIoU", condition), abs=1e-12)
    wrong = tally["pixels"]["wrong"] / tally["pixels"]["pixels"]
    assert 1 - wrong == pytest.approx(scores.score("pixel accuracy", condition), abs=1e-12)
    by_class = {name: held["iou"] for name, held in tally["pixels"]["classes"].items()}
    for name, value in scores.per_class["IoU"][condition].items():
        assert np.isnan(value) or by_class[name] == pytest.approx(value, abs=1e-12)
    looks = [desk.look(index, asked, lambda: None)["subjects"][0] for index in range(6)]
    assert sum(look["pixels"]["wrong"] for look in looks) == tally["pixels"]["wrong"]
    assert sum(look["pixels"]["pixels"] for look in looks) == tally["pixels"]["pixels"]
    for look in looks:
        assert look["error"] == pytest.approx(1 - look["pixels"]["iou"], abs=1e-12)


def test_a_model_of_maps_has_no_objects_to_judge(desk: Desk) -> None:
    session = desk.session()
    assert not session["objects"]
    assert session["errors"] == []
    assert session["classes"] == list(desk.exploration.dataset.semantic_classes)
    (answer,) = desk.look(0, Condition.parse("fog@3"), lambda: None)["subjects"]
    assert answer["found"] == []
    assert not answer["judged"]
    assert answer["map"]


def test_a_live_model_is_counted_in_the_same_way(desk: Desk) -> None:
    seen = desk.look(1, Condition.parse("fog@2.5"), lambda: None)
    (answer,) = seen["subjects"]
    assert answer["source"] == "live"
    assert answer["pixels"]["pixels"] == 96 * 60


def test_a_table_has_a_line_for_each_class_of_a_map(desk: Desk) -> None:
    rows = list(csv.DictReader(io.StringIO(desk.table(0, Condition.parse("fog@3")))))
    assert {row["what"] for row in rows} == {"map"}
    (pixels,) = (
        answer["pixels"] for answer in desk.look(0, Condition.parse("fog@3"), lambda: None)["subjects"]
    )
    assert {row["class"]: int(row["wrong_pixels"]) for row in rows} == {
        name: held["wrong"] for name, held in pixels["classes"].items()
    }


def test_pixels_equal_a_count_by_hand() -> None:
    """Of six pixels one is ignored, one road is called sky, and one sky a class that the dataset lacks."""
    truth = Truth(semantic=SemanticMap(np.array([[0, 0, 0], [1, 1, 255]], np.uint8)))
    found = Prediction(semantic=np.array([[0, 0, 1], [1, 255, 0]], np.uint8))
    counted = pixels_of_image(found, truth, Vocabulary(("road", "sky"), ("road", "sky")))
    assert counted is not None
    assert (counted["pixels"], counted["wrong"]) == (5, 2)
    assert counted["classes"]["road"] == {"pixels": 3, "wrong": 1, "iou": pytest.approx(2 / 3)}
    assert counted["classes"]["sky"] == {"pixels": 2, "wrong": 2, "iou": pytest.approx(1 / 3)}
    assert counted["iou"] == pytest.approx(1 / 2)


def test_colours_are_those_of_painted_maps() -> None:
    from stormproof.report.imagery import paint_map

    names = ("road", "sky", "car")
    for label, colour in enumerate(colours(names).values()):
        pixel = paint_map(np.full((1, 1), label, np.uint8), len(names))[0, 0, :3]
        assert colour == "#" + bytes(pixel.tolist()).hex()


def test_cells_of_the_map_name_the_model_as_the_list_does(tmp_path: Path) -> None:
    """Runs of two tasks are shown by two measures, and a click must still tell which model it meant."""
    (tmp_path / "guess.py").write_text(
        MODEL.format(data=DATA)
        + "\ndef boxes(images):\n"
        + "    box = Prediction(np.array([[2.0, 2, 60, 50]]), np.array([0.9]), np.array([0]))\n"
        + "    return [box for _ in images]\n"
    )
    for name in ("boxes", "by_brightness"):
        model = f"{tmp_path}/guess.py:{name}"
        sp.run(model, DATA, out=tmp_path / name, conditions="fog@3", engine="local", progress=False)
    both = Desk(explore_runs([tmp_path / "boxes", tmp_path / "by_brightness"]))
    both.exploration.make_scores()
    rows = [row for figure in both.map("")["figures"] for row in figure["rows"]]
    assert {row["model"] for row in rows} == {subject.name for subject in both.exploration.subjects}
    # One severity is bars in the report, but a map here: bars could not be clicked.
    assert {row["condition"] for row in rows if row["x"] == "3"} == {"fog@3"}
