"""`stormproof inspect`: what it prints and how it exits."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.sample import Instances, Sample, SemanticMap, Truth
from stormproof.core.spec import OBJECT
from stormproof.datasets import READERS
from stormproof.datasets.dataset import FileDataset, SampleDataset
from stormproof.datasets.survey import Problem, check
from stormproof.models import ADAPTERS

Build = Callable[..., str]


def inspect(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["inspect", *arguments], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.mark.parametrize("kind", sorted({*READERS} - {OBJECT, "maite"}))
def test_every_tiny_example_passes_its_check(build: Build, kind: str) -> None:
    code, text = inspect(build(kind), "--check", "--json")
    found = json.loads(text)
    assert (code, found["problems"]) == (0, [])
    assert found["images"] == found["looked_at"]


def test_prints_size_truth_and_classes_of_a_dataset(build: Build) -> None:
    code, text = inspect(build("coco"))
    assert code == 0
    for part in (
        "instances_val",
        "32×24",
        "boxes (2 images), masks (2 images)",
        "2, and 1 crowds",
        "dog",
        "car",
    ):
        assert part in text


def test_a_dataset_without_images_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text('{"images": [], "annotations": [], "categories": [{"id": 1, "name": "dog"}]}')
    for flags in ((), ("--check",)):
        code, text = inspect(f"coco:{path}", *flags)
        assert code == 1
        assert "the dataset has no images" in text


def test_missing_images_do_not_suggest_an_option_that_the_kind_lacks(build: Build, tmp_path: Path) -> None:
    spec = build("voc")
    for path in (tmp_path / "tree/JPEGImages").iterdir():
        path.unlink()
    _, text = inspect(spec)
    assert "2 of 2 are missing; --check names them" in text


def test_json_holds_the_counts(build: Build) -> None:
    found = json.loads(inspect(build("kitti"), "--json")[1])
    assert (found["objects"]["Car"], found["excused"], found["images"]) == (1, 1, 2)
    assert len(found["fingerprint"]) == 32
    assert found["sizes"] == [{"height": 24, "width": 32, "images": 2}]


def test_check_lists_every_problem_and_fails(build: Build, tmp_path: Path) -> None:
    spec = build("voc")
    for name in ("2007_000001", "2007_000002"):
        path = tmp_path / f"tree/JPEGImages/{name}.jpg"
        path.write_bytes(path.read_bytes()[:-300])
    assert inspect(spec)[0] == 0  # without --check no image is opened
    code, text = inspect(spec, "--check")
    assert code == 1
    assert text.count("problem ") == 2
    assert "2007_000001.jpg" in text
    assert "2007_000002.jpg" in text


def test_check_lists_every_problem_of_a_file_that_does_not_open(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    path = tmp_path / "tree/instances_val.json"
    path.write_text(path.read_text().replace('"bbox": [', '"bbox": [NaN, '))
    code, text = inspect(spec, "--check", "--json")
    assert code == 1
    assert len(json.loads(text)["problems"]) == 3


def test_an_image_that_a_store_does_not_deliver_is_a_problem(tmp_path: Path) -> None:
    class Stored:
        name, path = "a.png", None

        def read(self) -> bytes:
            raise ConnectionError("timed out")

    stored = FileDataset(name="store", root=tmp_path, ids=("a.png",), images=(Stored(),))
    assert check(stored).problems == [Problem("sample 'a.png'", "cannot be read: timed out.")]


def test_reports_missing_images_without_opening_any(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    (tmp_path / "tree/photos/b.png").unlink()
    assert "1 of 2 are missing" in inspect(spec)[1]


def test_looks_at_some_images_of_an_endless_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormproof.cli.inspect._GLANCE", 5)
    counts = json.loads(inspect("world:train,size=128x80", "--json")[1])
    assert counts["images"] > 10**6
    assert counts["looked_at"] == 5


def test_ids_that_occur_twice_are_a_problem(build: Build) -> None:
    from dataclasses import replace

    from stormproof.datasets import read_dataset
    from stormproof.datasets.survey import check

    dataset = read_dataset(build("images"))
    found = check(replace(dataset, ids=("b", "a", "b")))  # type: ignore[type-var]
    assert [(problem.where, problem.what) for problem in found.problems] == [
        ("sample 'b'", "the id occurs twice.")
    ]


def test_labels_that_name_no_class_are_a_problem() -> None:
    from stormproof.datasets.survey import first_findings, survey

    pixels = np.zeros((4, 4, 3), np.uint8)
    truths = [
        Truth(Instances([[0, 0, 2, 2]], [2])),
        Truth(Instances([[0, 0, 2, 2]], [-1])),
        *[Truth(semantic=SemanticMap(np.full((4, 4), 7, np.uint8)))] * 3,
    ]
    samples = [Sample(f"{k}", pixels, truth) for k, truth in enumerate(truths)]
    dataset = SampleDataset.of(samples, classes=("car", "dog"), semantic_classes=("sky", "road"))
    assert [problem.what for problem in survey(dataset, range(5)).problems] == [
        "an object has label 2, but the dataset names 2 classes.",
        "an object has label -1, but the dataset names 2 classes.",
        *["the label map holds 7, but the dataset names 2 semantic classes."] * 3,
    ]
    assert first_findings(dataset, 5) == []  # the run names them
    (problem,) = survey(SampleDataset.of(samples[:1], classes=("car",)), range(1)).problems
    assert problem.what.endswith("names 1 class.")


def test_label_maps_without_class_names_hide_no_finding() -> None:
    from stormproof.datasets.survey import first_findings, survey

    twice = Instances([[0, 0, 2, 2]] * 2, [0, 0])
    truth = Truth(twice, SemanticMap(np.full((4, 4), 1, np.uint8)))
    samples = [Sample(f"{k}", np.full((4, 4, 3), k, np.uint8), truth) for k in range(3)]
    dataset = SampleDataset.of(samples, classes=("car",))
    (finding,), seen = first_findings(dataset, 3), survey(dataset, range(3))
    assert finding.what.startswith("3 objects of 6 occur twice")
    assert [problem.what for problem in seen.problems] == [finding.what]
    assert seen.objects == {"car": 6}


def test_a_kind_of_model_may_come_from_another_package(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "night_models.py").write_text(
        "from stormproof.models.python import function_model\n\n\ndef open_night(main):\n"
        "    return function_model(lambda images: [{'boxes': []} for _ in images], name='night ' + main)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)  # where it draws the detections
    points = EntryPoints([EntryPoint("night", "night_models:open_night", "stormproof.models")])
    monkeypatch.setattr("stormproof.core.registry.entry_points_of", lambda group: points.select(group=group))
    monkeypatch.setattr(ADAPTERS, "_loaded", set())
    code, text = inspect("night:owl", "--data", build("images"))
    assert (code, text.splitlines()[0]) == (0, "run as: night owl: the dataset's classes")
