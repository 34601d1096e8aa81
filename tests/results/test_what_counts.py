"""What scores are over: people, the classes in common, the conditions of a suite."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.runs import Make
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.errors import StormproofError
from stormproof.core.sample import Instances, Prediction, Sample, Truth
from stormproof.corruptions.presets import PRESETS
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.api import run as run_in_memory
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.metrics.inputs import Objects
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.models.classes import NO_CLASS, match_classes
from stormproof.results.documents import flat_numbers
from stormproof.results.people import open_people
from stormproof.results.run import Run
from stormproof.results.scores import Scores
from stormproof.results.sets import sets_of
from stormproof.results.truths import Truths, restrict_to


def numbers(truth: DetectionTruth, found: Detections) -> dict[str, float]:
    scored = Objects(truth, found).scored(np.ones((1, len(truth.ids))))
    return {name: float(values[0]) for name, values in scored.numbers.items()}


def test_people_are_scored_at_fixed_sensitivities(tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "people", images=6)
    file = tmp_path / "people" / "instances.json"
    file.write_text(file.read_text().replace('"cat"', '"person"'))
    settings = {"model": f"{MODELS}:contrast_boxes", "data": spec, "out": str(tmp_path / "run")}
    run_it(make_config({**settings, "conditions": ["fog@5"], "engine": "local"}))
    scores = Run(tmp_path / "run").score()
    assert {"ADR", "FPPI"} <= set(scores.per_condition)
    assert 0 <= scores.per_condition["ADR"]["fog@5"] <= 1


@pytest.mark.parametrize("last", [255, 256, 257])
def test_classes_beyond_256_are_scored_as_themselves(tmp_path: Path, last: int) -> None:
    """Labels are kept in a byte each only where all of them fit."""
    boxes = [[2, 2, 20, 20], [24, 2, 40, 20]]
    samples = [
        Sample(f"{k}.png", np.full((32, 48, 3), 60 * k, np.uint8), Truth(Instances(boxes, [0, last])))
        for k in range(2)
    ]
    names = tuple(f"class {k}" for k in range(258))

    def right(images: list[np.ndarray]) -> list[Prediction]:  # type: ignore[type-arg]
        return [Prediction(boxes, [0.9, 0.8], [0, last]) for _ in images]

    right.classes = names  # type: ignore[attr-defined]
    data = SampleDataset.of(samples, name="many", classes=names)
    run = run_in_memory(right, data, out=tmp_path / "run", conditions="contrast@1", progress=False)
    scores = run.score()
    assert scores.per_condition["AP"] == {"clean": 1.0, "contrast@1": 1.0}
    assert scores.per_class["AP"]["clean"][f"class {last}"] == 1.0


def test_an_unknown_class_is_a_wrong_name_and_not_a_miss() -> None:
    """To average precision it is nothing; to an object's error, a box on the object, called wrongly."""
    boxes = np.array([[10.0, 10, 30, 30]])
    truth = DetectionTruth.of([("a", Instances(boxes, np.array([0])))], ("cat", "dog"))
    one, score = np.array([0]), np.array([0.9])
    right = numbers(truth, Detections(one, boxes, score, np.array([0])))
    strange = numbers(truth, Detections(one, boxes, score, np.array([2])))
    wrong = numbers(truth, Detections(one, boxes, score, np.array([1])))
    assert right["AP"] == pytest.approx(1)
    assert strange["AP"] == 0
    flaws = [name for name in strange if name.startswith(("flaws", "E"))]
    assert {name: strange[name] for name in flaws} == {name: wrong[name] for name in flaws}
    assert strange["E"] == 0


def test_people_who_leave_the_image_do_not_stop_scoring(tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "scene", images=1)
    file = tmp_path / "scene" / "instances.json"
    content = json.loads(file.read_text().replace('"cat"', '"person"'))
    for entry in content["annotations"]:
        entry |= {"bbox": [0, 0, 2, 2], "area": 4, "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]}
    file.write_text(json.dumps(content))
    out, model = tmp_path / "run", f"{MODELS}:contrast_boxes"
    asked = ["geometric_distortion[delta=-0.3]"]
    run_it(
        make_config({"model": model, "data": spec, "out": str(out), "conditions": asked, "engine": "local"})
    )
    rates = Run(out).score().per_condition["ADR"]
    assert np.isfinite(rates["clean"])
    assert np.isnan(rates.get("geometric_distortion[delta=-0.3]", np.nan))


def test_mpc_is_of_a_suite_whatever_else_was_run(make: Make) -> None:
    run = make("contrast_boxes", name="suite", conditions=["noise"])
    alone = Run(run).score()
    assert alone.over.name == "noise"
    make("contrast_boxes", name="suite", conditions=["fog@3", "snow@1"])
    more = Run(run).score()
    assert more.aggregates["AP"]["mPC"] == alone.aggregates["AP"]["mPC"]
    noise = [value for text, value in more.per_condition["AP"].items() if "noise" in text]
    assert more.aggregates["AP"]["mPC"] == pytest.approx(np.mean(noise))
    assert [each.words for each in more.sets] == ["noise (15 conditions)", "2 conditions"]
    assert more.totals("AP", more.sets[1])["mean"] == pytest.approx(
        (more.per_condition["AP"]["fog@3"] + more.per_condition["AP"]["snow@1"]) / 2
    )
    shown = CliRunner().invoke(app, ["score", str(run), "--measure", "AP50", "--all"]).output
    assert "AP50 over noise (15 conditions): P" in shown
    assert "AP50 over the other 2 conditions: P" in shown
    assert "AP50 by corruption and severity" in shown
    assert "┃ group" in shown
    with pytest.raises(StormproofError, match="Unknown measure of this run 'AP5O'"):
        more.showing("AP5O")


def test_scores_are_over_the_classes_in_common(make: Make) -> None:
    run = make("cat_boxes", name="cats", conditions=["clean"])
    found = Run(run).score()
    assert found.classes == ("cat",)
    assert (
        found.per_condition["AP50"]["clean"] == Run(run).score(classes="cat").per_condition["AP50"]["clean"]
    )
    every = Run(run).score(classes="all")
    assert every.per_condition["AP50"]["clean"] == pytest.approx(found.per_condition["AP50"]["clean"] / 2)
    assert found.per_condition["AP"]["clean"] == pytest.approx(every.per_class["AP"]["clean"]["cat"])
    assert found.per_condition["AP"]["clean"] > 0
    shown = CliRunner().invoke(app, ["score", str(run), "--all"]).output
    assert "Means are over 1 of the dataset's 2 classes: cat." in shown
    with pytest.raises(StormproofError, match="Unknown class of the dataset 'cow'"):
        Run(run).score(classes="cow")


def test_label_maps_are_scored_over_the_chosen_classes(make: Make) -> None:
    run = make("thresholds", "street")
    every, some = Run(run).score(), Run(run).score(classes=["dark", "bright"])
    iou = every.per_class["IoU"]["fog@3"]
    assert some.per_condition["mIoU"]["fog@3"] == pytest.approx((iou["dark"] + iou["bright"]) / 2)
    assert some.per_condition["pixel accuracy"] == every.per_condition["pixel accuracy"]


def test_part_of_a_benchmark_has_no_mpc() -> None:
    (some,) = sets_of(("clean", "fog@1", "fog@2"), "coco-c")
    assert (some.name, some.whole) == ("coco-c", False)
    assert some.mean_name == "mean over 2 conditions"
    every = tuple(map(str, PRESETS["coco-c"].conditions()))
    assert [each.mean_name for each in sets_of(every, "coco-c")] == ["mPC"]
    more = sets_of((*every, "speckle_noise@1"), "coco-c")
    assert [each.mean_name for each in more] == ["mPC", "mean over 1 condition"]


def test_chosen_classes_are_numbered_anew() -> None:
    match = match_classes(("bird", "cat", "eel"), ("cat", "dog", "bird"))
    assert match.labels == (2, 0, NO_CLASS)
    assert restrict_to(match, ("bird",)).labels == (0, NO_CLASS, NO_CLASS)
    assert restrict_to(match, ("dog", "bird")).labels == (1, NO_CLASS, NO_CLASS)


def test_trackers_get_finite_numbers_only() -> None:
    scores = Scores(
        "net", "set", 3, {"AP": {"clean": 0.5, "fog@1": math.nan}, "FPPI": {"clean": math.inf}},
        ("clean", "fog@1"),
    )  # fmt: skip
    assert flat_numbers(scores) == {"AP/clean": 0.5, "AP/P": 0.5}


def test_choosing_classes_keeps_the_sides_that_a_file_states() -> None:
    """x + w − x is not always w (docs/adr/0006): by its corners this box would overlap by less than 0.6."""
    objects = Instances([[0, 0, 9, 9], [7.6, 0, 7.6 + 13, 10]], [0, 1], sides=[[9, 9], [13, 10]])
    sample = Sample("a", np.zeros((40, 40), np.uint8), Truth(objects))
    truth = Truths(SampleDataset.of([sample], classes=("car", "person")), 1, 0, ("person",)).still
    found = Detections(
        np.array([0]), np.array([[7.8, 0, 7.8 + 7.8, 10]]), np.array([0.9]), np.array([0]),
        sides=np.array([[7.8, 10.0]]),
    )  # fmt: skip
    assert truth.sides.tolist() == [[13, 10]]
    assert numbers(truth, found)["AP"] == pytest.approx(0.3)  # IoU 0.5, 0.55 and 0.6


def test_ignores_people_in_unreadable_images(tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "people", images=6)
    file = tmp_path / "people" / "instances.json"
    file.write_text(file.read_text().replace('"cat"', '"person"'))
    (tmp_path / "people" / "images" / "002.png").write_bytes(b"no image")
    settings = {"model": f"{MODELS}:contrast_boxes", "data": spec, "out": str(tmp_path / "run")}
    run_it(make_config({**settings, "conditions": ["fog@1"], "engine": "local"}))
    run = Run(tmp_path / "run")
    scores, people = run.score(), open_people(run)
    assert len(people.found["clean"].truth.ids) == 5
    assert people.adr("fog@1") == scores.per_condition["ADR"]["fog@1"]
