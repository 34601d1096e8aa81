"""Predictions made beforehand: COCO results and folders of maps, by condition, without any image."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import InvalidOption, InvalidPrediction, ModelError, UnknownName
from stormproof.core.imagefile import write_image
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.models import load_model
from stormproof.models.model import Model, Precomputed

FOG = Condition.parse("fog@3")
ROW = {"image_id": 7, "category_id": 18, "bbox": [1, 2, 3, 4], "score": 0.5}


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    """Two images, no image files; categories are numbered 3 and 18."""
    content = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "height": 10, "width": 12} for i in (7, 8)],
        "categories": [{"id": 3, "name": "car"}, {"id": 18, "name": "dog"}],
        "annotations": [],
    }
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth/instances.json").write_text(json.dumps(content))
    return read_dataset(f"coco:{tmp_path}/truth/instances.json")


def results(folder: Path, **rows) -> str:
    folder.mkdir(exist_ok=True)
    for name, content in rows.items():
        (folder / f"{name.replace('_at_', '@')}.json").write_text(json.dumps(content))
    return f"results:{folder}"


def test_one_file_is_the_clean_condition(tmp_path: Path, data: Dataset) -> None:
    (tmp_path / "detections.json").write_text(json.dumps([ROW]))
    model = load_model(f"results:{tmp_path}/detections.json")
    assert isinstance(model, Precomputed)
    assert not isinstance(model, Model)
    bound = model.bind(data)
    found = bound.lookup("7", CLEAN)
    assert found.boxes.tolist() == [[1, 2, 4, 6]]
    assert found.labels.tolist() == [1]  # dog, by the dataset's numbers
    assert len(bound.lookup("8", CLEAN)) == 0  # nothing was found there
    assert bound.conditions == (CLEAN,)
    assert bound.classes == ()
    with pytest.raises(InvalidPrediction, match=r"no predictions for fog@3; it has clean"):
        bound.lookup("7", FOG)


def test_one_file_per_condition(tmp_path: Path, data: Dataset) -> None:
    spec = results(tmp_path / "runs", clean=[ROW], fog_at_3=[{**ROW, "score": 0.1}])
    model = load_model(spec).bind(data)
    assert {*model.conditions} == {CLEAN, FOG}
    assert model.lookup("7", FOG).scores.tolist() == [0.1]
    copied = pickle.loads(pickle.dumps(model))  # as it goes to a worker
    assert copied.lookup("7", CLEAN).scores.tolist() == [0.5]
    assert copied.fingerprint == model.fingerprint
    first = model.fingerprint
    results(tmp_path / "runs", fog_at_3=[])
    assert load_model(spec).bind(data).fingerprint != first


def test_category_numbers_follow_a_vocabulary_or_an_annotation_file(tmp_path: Path, data: Dataset) -> None:
    spec = results(tmp_path / "runs", clean=[ROW])
    model = load_model(f"{spec},classes=coco80").bind(data)
    assert model.classes[model.lookup("7", CLEAN).labels[0]] == "dog"  # COCO's own number 18
    model = load_model(f"{spec},annotations={tmp_path}/truth/instances.json")
    assert model.classes == ("car", "dog")
    assert model.lookup("7", CLEAN).labels.tolist() == [1]


def test_reads_masks(tmp_path: Path, data: Dataset) -> None:
    mask = {"size": [10, 12], "counts": [21, 3, 96]}
    row = {key: value for key, value in ROW.items() if key != "bbox"} | {"segmentation": mask}
    found = load_model(results(tmp_path / "runs", clean=[row])).bind(data).lookup("7", CLEAN)
    assert found.masks is not None
    assert found.masks[0].area == 3
    assert found.boxes.tolist() == [[2, 1, 3, 4]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"a": 1}, "is not COCO results"),
        ([3], "result 0: is 3"),
        ([{**ROW, "image_id": 99}], "image_id 99 is not in the dataset"),
        ([{**ROW, "category_id": 4}], "category_id 4"),
        ([{"image_id": 7, "category_id": 3, "score": 1}], "lacks bbox, segmentation or .*keypoints"),
        ([{"image_id": 7, "bbox": [0, 0, 1, 1]}], "lacks category_id, score"),
        ([{**ROW, "score": 3}], r"score 3 must lie"),
        ([{**ROW, "bbox": [0, 0, -1, 1]}], r"bbox \[0, 0, -1, 1\] must be"),
        ([{**ROW, "bbox": "x"}], "bbox 'x' must be"),
        ([{**ROW, "segmentation": [[0, 0, 1, 1, 2, 2]]}], "run lengths"),
    ],
)
def test_wrong_rows_name_file_and_row(tmp_path: Path, data: Dataset, rows, said: str) -> None:
    model = load_model(results(tmp_path / "runs", clean=rows)).bind(data)
    with pytest.raises(ModelError, match=said) as error:
        model.lookup("7", CLEAN)
    assert "clean.json" in str(error.value)


def maps(folder: Path, value: int = 3, mode=np.uint8) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(np.full((10, 12), value, mode)).save(folder / "a.png")
    return folder


def test_reads_folders_of_semantic_maps(tmp_path: Path) -> None:
    maps(tmp_path / "runs/clean")
    maps(tmp_path / "runs/fog@3", 300, np.uint16)
    model = load_model(f"results:{tmp_path}/runs,classes=voc21")
    assert isinstance(model, Precomputed)
    assert {*model.conditions} == {CLEAN, FOG}
    assert len(model.semantic_classes) == 21
    assert model.lookup("a", CLEAN).semantic.dtype == np.uint8
    assert model.lookup("a", FOG).semantic.max() == 300
    with pytest.raises(InvalidPrediction, match="no semantic map for image 'b'"):
        model.lookup("b", CLEAN)
    with pytest.raises(InvalidPrediction, match="leads out"):
        model.lookup("../fog@3/a", CLEAN)


def test_label_maps_take_no_annotation_file(tmp_path: Path, data: Dataset) -> None:
    maps(tmp_path / "runs/clean")
    with pytest.raises(InvalidOption, match=r"annotations=.*label maps.*classes="):
        load_model(f"results:{tmp_path}/runs,annotations={tmp_path}/truth/instances.json")


def test_a_folder_of_maps_is_the_clean_condition(tmp_path: Path) -> None:
    maps(tmp_path / "city/frankfurt")
    model = load_model(f"results:{tmp_path}/city")
    assert model.conditions == (CLEAN,)
    assert model.lookup("frankfurt/a", CLEAN).semantic.shape == (10, 12)


def test_refuses_folders_without_results(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"neither results such as clean.json"):
        load_model(f"results:{tmp_path}")
    (tmp_path / "Fog 3.json").write_text("[]")
    with pytest.raises(ModelError, match="not named after a condition"):
        load_model(f"results:{tmp_path}")


def test_reads_conditions_whose_folder_names_were_escaped(tmp_path: Path) -> None:
    """A slash in a condition cannot stand in a file's name; exports write it as %2F."""
    condition = Condition.parse("frost@3[textures=my/frost]")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "frost@3[textures=my%2Ffrost].json").write_text("[]")
    assert load_model(f"results:{tmp_path / 'tables'}").conditions == (condition,)
    folder = tmp_path / "maps" / "frost@3[textures=my%2Ffrost]"
    folder.mkdir(parents=True)
    write_image(folder / "a.png", np.zeros((2, 2), np.uint8))
    assert load_model(f"results:{tmp_path / 'maps'}").conditions == (condition,)


def test_boxes_changed_by_load_res_are_read_as_boxes(tmp_path: Path) -> None:
    """`loadRes` of pycocotools adds an outline of the box, an area, an id and iscrowd to every result."""
    outline = [[1, 2, 1, 6, 4, 6, 4, 2]]
    touched = {**ROW, "segmentation": outline, "area": 12, "id": 1, "iscrowd": 0}
    (tmp_path / "r.json").write_text(json.dumps([touched]))
    found = load_model(f"results:{tmp_path}/r.json").lookup("7", CLEAN)
    assert found.masks is None
    assert found.boxes.tolist() == [[1, 2, 4, 6]]
    (tmp_path / "p.json").write_text(json.dumps([{**touched, "segmentation": [[1, 2, 1, 9, 11, 12]]}]))
    with pytest.raises(ModelError, match="not polygons; convert it with pycocotools"):
        load_model(f"results:{tmp_path}/p.json").lookup("7", CLEAN)


def test_reads_results_as_the_server_of_dota_takes_them(tmp_path: Path) -> None:
    for name in ("images", "labelTxt"):
        (tmp_path / "dota" / name).mkdir(parents=True)
    PIL.Image.new("RGB", (64, 64)).save(tmp_path / "dota/images/P1.png")
    (tmp_path / "dota/labelTxt/P1.txt").write_text("10 10 30 12 28 32 8 30 ship 0\n")
    dataset = read_dataset(f"dota:{tmp_path}/dota")
    folder = tmp_path / "results" / "fog@3"
    folder.mkdir(parents=True)
    (folder / "Task1_ship.txt").write_text("P1 0.91 10 10 30 12 28 32 8 30\n")
    (folder / "Task1_plane.txt").write_text("")
    model = load_model(f"results:{tmp_path}/results").bind(dataset)
    found = model.lookup("P1", Condition.parse("fog@3"))
    assert found.data["corners"].tolist() == [[[10, 10], [30, 12], [28, 32], [8, 30]]]
    assert found.boxes.tolist() == [[8, 10, 30, 32]]
    assert [dataset.classes[label] for label in found.labels] == ["ship"]
    assert [each for each in model.conditions if str(each) == "fog@3"]
    (folder / "Task1_ship.txt").write_text("P1 0.91 10 10 30 12\n")
    with pytest.raises(ModelError, match=r"Task1_ship.txt, line 1: .*eight coordinates"):
        load_model(f"results:{folder}").bind(dataset).lookup("P1", CLEAN)
    (folder / "Task1_boat.txt").write_text("")
    with pytest.raises(UnknownName, match="boat"):
        load_model(f"results:{folder}").bind(dataset).lookup("P1", CLEAN)
