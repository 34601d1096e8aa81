"""Key points and oriented boxes of every format: read, written and read again, and refused where broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stormproof.core.condition import CLEAN
from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.forms import FORMS, CocoFields, Form, YoloLines, form
from stormproof.core.joints import COCO_SIGMAS
from stormproof.core.oriented import rotated_corners, upright
from stormproof.core.sample import Instances, Sample, Truth
from stormproof.datasets import find_writer, read_dataset
from stormproof.datasets.annotation_checks import Finding, Gravity, Inspected, check_annotations
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.survey import facts_of
from stormproof.datasets.writing import Destination
from stormproof.models import load_model
from stormproof.models.predictions import read_prediction

Build = Callable[..., str]
TURNED = np.array([[10.0, 2], [18, 10], [10, 18], [2, 10]])


def objects_of(dataset: Dataset, index: int = 0) -> Instances:
    found = dataset.truth(index).instances
    assert found is not None
    return found


def written(kind: str, root: Path, samples: list[Sample], classes: tuple[str, ...]) -> Dataset:
    """The samples stored in a format and opened again."""
    writer, destination = find_writer(kind), Destination(root, classes=classes)
    records = [writer.write(destination, f"image_{one.id}", one)[1] for one in samples]
    writer.finish(destination, json.loads(json.dumps(records)))
    return read_dataset(str(writer.spec(destination)))


def test_coco_key_points_are_read(build: Build) -> None:
    objects = objects_of(read_dataset(build("coco-keypoints")))
    points = objects.data["points"]
    assert points.shape == (2, 17, 3)
    assert points[0, 3].tolist() == [7, 17, 0]
    assert points[0, 4].tolist() == [8, 16, 1]
    assert not points[1].any()
    np.testing.assert_array_equal(objects.data["sigmas"], np.tile(COCO_SIGMAS, (2, 1)))
    assert objects.area.tolist() == [180.5, 180.5]


def test_sigmas_can_be_given_as_an_option(build: Build) -> None:
    spec = build("coco-keypoints")
    given = [round(0.01 * k, 2) for k in range(1, 18)]
    objects = objects_of(read_dataset(f"{spec},sigmas=[{','.join(map(str, given))}]"))
    assert objects.data["sigmas"][1].tolist() == given
    with pytest.raises(InvalidOption, match="give 17 numbers above 0"):
        read_dataset(f"{spec},sigmas=[0.1,0.2]")
    with pytest.raises(InvalidOption, match="17 numbers above 0"):
        read_dataset(f"{spec},sigmas=[{','.join(['inf'] * 17)}]")


@pytest.mark.parametrize(
    ("keypoints", "said"),
    [([1, 2], "x, y, v of each point"), ([1, 2, "x"], "x, y, v of each point"), (7, "x, y, v of each point")],
)
def test_broken_key_points_name_the_annotation(tmp_path: Path, keypoints, said) -> None:
    row = {"id": 5, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "keypoints": keypoints}
    content = {"images": [{"id": 1}], "categories": [{"id": 1, "name": "person"}], "annotations": [row]}
    path = tmp_path / "person_keypoints.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=f"annotation 5.*{said}"):
        read_dataset(f"coco:{path}")


def test_classes_may_have_different_numbers_of_points(tmp_path: Path) -> None:
    rows = [
        {"id": k, "image_id": 1, "category_id": k, "bbox": [0, 0, 9, 9], "keypoints": [1, 2, 2] * count}
        for k, count in ((1, 17), (2, 4))
    ]
    content = {
        "images": [{"id": 1}],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}],
        "annotations": rows,
    }
    (tmp_path / "a.json").write_text(json.dumps(content))
    objects = objects_of(read_dataset(f"coco:{tmp_path}/a.json"))
    assert np.isnan(objects.data["points"][1, 4:]).all()
    np.testing.assert_array_equal(objects.data["sigmas"][1], [0.25] * 4 + [np.nan] * 13)


def test_oriented_boxes_in_coco_files(tmp_path: Path) -> None:
    obb = [10.0, 10.0, 8.0, 4.0, 0.5]
    row = {"id": 5, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "obb": obb}
    content = {"images": [{"id": 1}], "categories": [{"id": 1, "name": "ship"}], "annotations": [row]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    corners = objects_of(read_dataset(f"coco:{tmp_path}/a.json")).data["corners"]
    np.testing.assert_allclose(corners, rotated_corners(np.array([obb])))
    content["annotations"].append({**row, "id": 6, "obb": [1, 2, 3]})
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=r"annotation 6.*no obb of 5 finite numbers"):
        read_dataset(f"coco:{tmp_path}/a.json")


def test_yolo_key_points_are_read(build: Build) -> None:
    objects = objects_of(read_dataset(build("yolo-pose")))
    assert objects.boxes.tolist() == [[12, 6, 20, 18]]
    assert objects.data["points"].tolist() == [[[8, 12, 2], [0, 0, 0]]]
    assert objects.data["sigmas"].tolist() == [[0.5, 0.5]]
    assert objects.area.tolist() == pytest.approx([8 * 12 * 0.53])


def test_yolo_points_without_flags(tmp_path: Path, trees) -> None:
    spec = trees.yolo_pose(tmp_path)
    (tmp_path / "data.yaml").write_text("val: images/val\nnames: [person]\nkpt_shape: [2, 2]\n")
    (tmp_path / "labels/val/a.txt").write_text("0 0.5 0.5 0.25 0.5 0.25 0.5 0 0\n")
    assert objects_of(read_dataset(spec)).data["points"].tolist() == [[[8, 12, 2], [0, 0, 0]]]
    (tmp_path / "labels/val/a.txt").write_text("0 0.5 0.5 0.25 0.5 0.25\n")
    with pytest.raises(DatasetError, match=r"5 numbers are not a box.*and 4 numbers of key points"):
        read_dataset(spec)


def test_yolo_oriented_boxes_are_read(build: Build) -> None:
    objects = objects_of(read_dataset(build("yolo-obb")))
    assert objects.data["corners"].tolist() == [[[8, 6], [16, 6], [16, 18], [8, 18]]]
    assert objects.masks is None
    assert objects.area.tolist() == [96]


def test_yolo_boxes_are_not_oriented(build: Build) -> None:
    with pytest.raises(DatasetError, match="4 numbers are not the 8 numbers of oriented boxes"):
        read_dataset(build("yolo") + ",oriented=true")


def test_dota_is_read(build: Build) -> None:
    dataset = read_dataset(build("dota"))
    objects = objects_of(dataset)
    np.testing.assert_array_equal(objects.data["corners"][0], TURNED)
    assert [dataset.classes[label] for label in objects.labels] == ["ship", "crane"]
    assert objects.ignore.tolist() == [False, True]
    assert objects.area.tolist() == [128, 32]
    assert objects.boxes[0].tolist() == [2, 2, 18, 18]
    assert len(objects_of(dataset, 1)) == 0


def test_dota_names_the_split_and_the_line(tmp_path: Path, trees) -> None:
    spec = trees.dota(tmp_path)
    with pytest.raises(DatasetError, match="add split=val"):
        read_dataset(f"dota:{tmp_path}")
    (tmp_path / "val/labelTxt/P0002.txt").write_text("1 2 3 4 5 6 7 ship 0\n")
    with pytest.raises(DatasetError, match=r"line 1.*eight coordinates"):
        read_dataset(spec)


def pose_sample() -> Sample:
    points = np.zeros((2, 17, 3))
    points[0, :5] = [[5, 6, 2], [7, 6.5, 1], [9, 8, 2], [0, 0, 0], [31, 23, 2]]
    data = {"points": points, "sigmas": np.tile(COCO_SIGMAS, (2, 1))}
    boxes = np.array([[2.0, 2, 30, 23], [1, 1, 5, 9]])
    objects = Instances(boxes, [0, 0], area=[250.0, 20.0], data=data)
    return Sample("7", np.zeros((24, 32, 3), np.uint8), Truth(objects))


@pytest.mark.parametrize("kind", ["coco", "yolo"])
def test_key_points_survive_a_round_trip(tmp_path: Path, kind: str) -> None:
    back = objects_of(written(kind, tmp_path, [pose_sample()], classes=("person",)))
    expected = pose_sample().truth.instances
    assert expected is not None
    for name in ("points", "sigmas"):
        np.testing.assert_allclose(back.data[name], expected.data[name], atol=1e-6)


def test_coco_names_the_joints_that_it_writes(tmp_path: Path) -> None:
    written("coco", tmp_path, [pose_sample()], classes=("person",))
    content = json.loads((tmp_path / "annotations/instances_val.json").read_text())
    assert content["categories"][0]["keypoints"][:2] == ["nose", "left_eye"]
    assert [row["num_keypoints"] for row in content["annotations"]] == [4, 0]


@pytest.mark.parametrize("kind", ["coco", "yolo", "dota"])
def test_oriented_boxes_survive_a_round_trip(tmp_path: Path, kind: str) -> None:
    corners = np.stack([TURNED, TURNED + 4])
    ignore = np.array([False, kind == "dota"])
    objects = Instances(upright(corners), [0, 1], ignore=ignore, data={"corners": corners})
    sample = Sample("7", np.zeros((24, 32, 3), np.uint8), Truth(objects))
    dataset = written(kind, tmp_path, [sample], classes=("ship", "plane"))
    back = objects_of(dataset)
    np.testing.assert_allclose(back.data["corners"], corners, atol=1e-6)
    assert [dataset.classes[label] for label in back.labels] == ["ship", "plane"]
    np.testing.assert_array_equal(back.ignore, ignore)


def findings(root: Path, field: str, values: list[list[float]]) -> str:
    """What `inspect --check` says about objects in one image of 100 × 80 pixels."""
    rows = [
        {"id": k, "image_id": 1, "category_id": 1, "bbox": [10, 10, 40 + k, 40], field: value}
        for k, value in enumerate(values, 1)
    ]
    content = {
        "images": [{"id": 1, "height": 80, "width": 100}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": rows,
    }
    (root / "a.json").write_text(json.dumps(content))
    dataset = read_dataset(f"coco:{root}/a.json")
    seen = Inspected([facts_of(dataset, 0, dataset.truth(0))], dataset.classes, (), whole=True)
    return " ".join(finding.what for finding in check_annotations(seen))


GOOD = [20, 20, 2, 30, 30, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("keypoints", "said"),
    [
        ([120, 20, 2, 30, 30, 1, 0, 0, 0], "1 of 2 objects have labelled key points outside their image"),
        ([90, 70, 2, 80, 79, 2, 0, 0, 0], ""),
        ([20, 20, 0.7, 30, 30, 1, 0, 0, 0], "a flag such as 0.7, not 0 (unlabelled), 1 (hidden) or 2"),
        ([20, 20, 0, 30, 30, 1, 0, 0, 0], "1 of 2 objects have key points with a place but the flag 0"),
        (GOOD, ""),
    ],
)
def test_warns_of_odd_key_points(tmp_path: Path, keypoints: list[float], said: str) -> None:
    shown = findings(tmp_path, "keypoints", [GOOD, keypoints])
    assert said in shown
    assert bool(said) == ("key points" in shown)


def test_warns_of_points_far_from_their_box_and_of_no_labels_at_all(tmp_path: Path) -> None:
    tiny = [0.2, 0.2, 2, 0.3, 0.3, 1, 0, 0, 0]
    assert "key point" not in findings(tmp_path, "keypoints", [tiny])  # within a side of the box
    assert "None of 1 objects has a labelled key point" in findings(tmp_path, "keypoints", [[0, 0, 0]])


@pytest.mark.parametrize(
    ("poly", "said"),
    [
        ([10, 10, 30, 10, 50, 10, 20, 10], "1 of 2 oriented boxes have no area"),
        ([10, 10, 50, 50, 50, 10, 11, 50], "corners that are not in order around the box"),
        ([10, 10, 50, 10, 50, 50, 10, 50], ""),
    ],
)
def test_warns_of_odd_oriented_boxes(tmp_path: Path, poly: list[float], said: str) -> None:
    shown = findings(tmp_path, "poly", [[30, 10, 50, 30, 30, 50, 10, 30], poly])
    assert said in shown
    assert bool(said) == ("oriented" in shown)


def tip_problem(row, present) -> str:
    return "" if len(row["tip"]) == 2 else f"tip {row['tip']!r} must be x, y."


@pytest.fixture
def tips() -> Iterator[Form]:
    """A form of a plugin: files, models and checks know of tips only from its declaration."""
    declared = Form(
        "tips", "tips of objects", shape=(2,), boxes=lambda tips: np.hstack([tips - 3, tips + 3]),
        coco=CocoFields(
            ("tip",), tip_problem, lambda rows: np.array([row["tip"] for row in rows], float),
            lambda tip: {"tip": tip.tolist()},
        ),
        yolo=YoloLines(
            "tips", boxed=True, problem=lambda stated: "", state=lambda tips: True, count=lambda stated: 2,
            places=lambda stated: np.ones(2, np.bool_), read=lambda values, stated: values,
            write=lambda tip: tip, area=lambda boxes, tips: np.full(len(tips), 9.0),
        ),
        keys={"tip": lambda tips: tips + 1}, of_result=lambda result: {"tips": result.tips},
        check_labels=lambda seen: [Finding(Gravity.note, f"{len(seen.data('tips'))} tips")],
    )  # fmt: skip
    form(declared, __name__)
    yield declared
    FORMS.remove("tips")


@pytest.mark.parametrize("kind", ["coco", "yolo"])
def test_the_formats_store_what_a_plugin_declares(tips: Form, tmp_path: Path, kind: str) -> None:
    places = np.array([[8.0, 6], [16, 4]])
    objects = Instances(tips.boxes(places), [0, 0], data={"tips": places})
    sample = Sample("1", np.zeros((32, 64, 3), np.uint8), Truth(objects))
    dataset = written(kind, tmp_path, [sample], ("vane",))
    assert objects_of(dataset).data["tips"].tolist() == places.tolist()
    seen = Inspected([facts_of(dataset, 0, dataset.truth(0))], dataset.classes, (), whole=True)
    assert "2 tips" in [finding.what for finding in check_annotations(seen)]


def test_models_may_return_what_a_plugin_declares(tips: Form, tmp_path: Path) -> None:
    size, scores = (32, 64), {"scores": [0.5], "labels": [0]}
    assert read_prediction({**scores, "tip": [[7.0, 5.0]]}, size, "m").data["tips"].tolist() == [[8, 6]]
    boxes = SimpleNamespace(xyxy=np.array([[5.0, 3, 11, 9]]), conf=np.array([0.5]), cls=np.array([0.0]))
    result = SimpleNamespace(boxes=boxes, masks=None, tips=np.array([[8.0, 6]]))
    assert read_prediction(result, size, "m").data["tips"].tolist() == [[8, 6]]
    rows = [{"image_id": 1, "category_id": 1, "score": 0.5, "tip": [8, 6]}]
    path = tmp_path / "clean.json"
    path.write_text(json.dumps(rows))
    found = load_model(f"results:{path}").lookup("1", CLEAN)
    assert found.data["tips"].tolist() == [[8, 6]]
    assert found.boxes.tolist() == [[5, 3, 11, 9]]
