"""COCO instances, against pycocotools reading the same file."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as oracle
from pycocotools.coco import COCO

from stormproof.core.errors import DatasetError
from stormproof.core.imagefile import write_image
from stormproof.core.masks import decompress, mask_box, masks_by_id, polygon_mask, segmentation_mask
from stormproof.core.sample import RLE
from stormproof.datasets import coco, read_dataset

REAL = [
    "coco/instances_val2017.json",
    "coco_train/instances_train2017.json",
    "coco_panoptic/instances_val2017.json",
]


def quietly(path: Path) -> COCO:
    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(str(path))


@pytest.mark.parametrize("file", REAL)
def test_real_files_read_as_pycocotools_reads_them(shared: Path, file: str) -> None:
    if not (shared / file).is_file():
        pytest.skip(f"needs {file}")
    dataset, api = read_dataset(f"coco:{shared / file}"), quietly(shared / file)
    assert [int(name) for name in dataset.ids] == [image["id"] for image in api.dataset["images"]]
    for i, name in enumerate(dataset.ids):
        found = dataset.truth(i).instances
        assert found is not None
        rows = api.loadAnns(found.ids.tolist())
        assert sorted(row["id"] for row in rows) == sorted(api.getAnnIds(imgIds=[int(name)]))
        for k, row in enumerate(rows):
            x, y, w, h = row["bbox"]
            assert found.boxes[k].tolist() == [x, y, x + w, y + h]
            assert dataset.category_ids[found.labels[k]] == row["category_id"]  # type: ignore[attr-defined]
            assert dataset.classes[found.labels[k]] == api.cats[row["category_id"]]["name"]
            assert (found.area[k], found.crowd[k]) == (row["area"], row["iscrowd"])
            assert np.array_equal(found.masks[k].to_mask(), api.annToMask(row))


def test_reads_every_kind_of_segmentation(build: Callable[..., str], tmp_path: Path) -> None:
    dataset = read_dataset(build("coco"))
    api = quietly(tmp_path / "tree/instances_val.json")
    assert dataset.ids == ("7", "9")
    assert dataset.classes == ("car", "dog")  # by category id, not by place in the file
    assert dataset.category_ids == (3, 18)  # type: ignore[attr-defined]
    first, second = dataset.truth(0).instances, dataset.truth(1).instances
    assert first.ids.tolist() == [2]
    assert first.area.tolist() == [48]  # none stated: the mask's
    assert second.ids.tolist() == [1, 5]
    assert second.area.tolist() == [77.5, 12]
    assert second.crowd.tolist() == [False, True]
    assert second.boxes.tolist() == [[2, 3, 12, 11], [4, 4, 8, 7]]
    for found in (first, second):
        for number, mask in zip(found.ids, found.masks, strict=True):
            row = api.anns[int(number)]
            if isinstance(row["segmentation"], dict) and isinstance(row["segmentation"]["counts"], str):
                expected = oracle.decode(row["segmentation"])
            else:
                expected = oracle.decode(
                    oracle.merge(_as_list(oracle.frPyObjects(row["segmentation"], 24, 32)))
                )
            np.testing.assert_array_equal(mask.to_mask(), expected)


def test_an_area_that_is_not_stated_is_that_of_the_mask(tmp_path: Path) -> None:
    """Half of a square: a triangle is small where its box is medium."""
    (tmp_path / "images").mkdir()
    write_image(tmp_path / "images" / "a.png", np.zeros((64, 64, 3), np.uint8))
    row = {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "bbox": [4, 4, 40, 40]}
    content = {
        "images": [{"id": 1, "file_name": "a.png", "height": 64, "width": 64}],
        "categories": [{"id": 1, "name": "sail"}],
        "annotations": [row | {"segmentation": [[4, 4, 44, 4, 4, 44]]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(content))
    spec = f"coco:{tmp_path / 'a.json'},images={tmp_path / 'images'}"
    found = read_dataset(spec).truth(0).instances
    assert found is not None
    drawn = oracle.area(oracle.merge(oracle.frPyObjects(content["annotations"][0]["segmentation"], 64, 64)))
    assert found.area.tolist() == [drawn] == pytest.approx([800], rel=0.05)
    boxes = read_dataset(f"{spec},masks=false").truth(0).instances
    assert boxes is not None
    assert boxes.area.tolist() == [1600]


def _as_list(encoded: object) -> list[object]:
    return encoded if isinstance(encoded, list) else [encoded]


def test_reads_boxes_alone_when_asked_or_without_masks(build: Callable[..., str], tmp_path: Path) -> None:
    spec = build("coco")
    masks, boxes = read_dataset(spec), read_dataset(f"{spec},masks=false")
    assert boxes.truth(1).instances.masks is None
    assert boxes.fingerprint != masks.fingerprint
    path = tmp_path / "tree/instances_val.json"
    content = json.loads(path.read_text())
    for row in content["annotations"]:
        row["segmentation"] = []
    path.write_text(json.dumps(content))
    plain = read_dataset(spec)
    assert plain.truth(1).instances.masks is None
    assert plain.truth(0).instances.area.tolist() == [48]


def test_objects_without_a_mask_are_excused_when_asked(build: Callable[..., str], tmp_path: Path) -> None:
    spec = build("coco")
    whole = read_dataset(spec)
    path = tmp_path / "tree/instances_val.json"
    content = json.loads(path.read_text())
    lacking = content["annotations"][0]
    lacking["segmentation"] = []
    path.write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=r"maskless=excuse"):
        read_dataset(spec)
    excused = read_dataset(f"{spec},maskless=excuse")
    place = [str(record["id"]) for record in content["images"]].index(str(lacking["image_id"]))
    before, after = (made.truth(place).instances for made in (whole, excused))
    at = after.ids.tolist().index(lacking["id"])
    assert after.crowd[at]
    assert np.delete(after.crowd, at).tolist() == np.delete(before.crowd, at).tolist()
    assert after.boxes.tolist() == before.boxes.tolist()
    assert after.masks is not None
    assert excused.fingerprint != whole.fingerprint


def test_reads_truth_without_file_names(build: Callable[..., str], tmp_path: Path) -> None:
    spec = build("coco")
    path = tmp_path / "tree/instances_val.json"
    content = json.loads(path.read_text())
    for image in content["images"]:
        del image["file_name"]
    path.write_text(json.dumps(content))
    dataset = read_dataset(spec)
    assert len(dataset.truth(1).instances) == 2
    with pytest.raises(DatasetError, match="no such image file"):
        dataset[1]


def test_usual_image_folders_are_found(tmp_path: Path, trees: ModuleType) -> None:
    trees.coco(tmp_path)
    (tmp_path / "annotations").mkdir()
    (tmp_path / "instances_val.json").rename(tmp_path / "annotations/instances_val.json")
    (tmp_path / "photos").rename(tmp_path / "val")
    assert read_dataset(f"coco:{tmp_path}/annotations/instances_val.json")[0].image.shape == (24, 32, 3)


@pytest.mark.slow
def test_big_files_are_indexed_not_rasterised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3,600 annotations, a tenth of COCO val2017: opening draws no mask, one image's truth draws its own."""
    drawn = []
    draw = coco.segmentation_mask
    monkeypatch.setattr(coco, "segmentation_mask", lambda *given: drawn.append(given) or draw(*given))
    ring = (np.arange(60) * 1.5 % 400).tolist()
    content = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "height": 480, "width": 640} for i in range(500)],
        "categories": [{"id": i, "name": str(i)} for i in range(80)],
        "annotations": [
            {
                "id": i,
                "image_id": i % 500,
                "category_id": i % 80,
                "bbox": [1, 2, 3, 4],
                "segmentation": [ring],
            }
            for i in range(3_600)
        ],
    }
    path = tmp_path / "big.json"
    path.write_text(json.dumps(content))
    dataset = read_dataset(f"coco:{path}")
    assert not drawn
    assert len(dataset.truth(499).instances) == len(drawn) == 7


@pytest.mark.parametrize(("kind", "expected"), [("bbox", 0.5045806987249628), ("segm", 0.3195452758576433)])
def test_scores_of_the_reference_results_are_exact(shared: Path, kind: str, expected: float) -> None:
    """The COCO API's own example, read here and scored here, gives pycocotools' numbers."""
    from stormproof.core.sample import Prediction
    from stormproof.metrics.coco import box_numbers, mask_numbers
    from stormproof.metrics.records import DetectionTruth

    root = shared / "metric_refs/cocoapi_val2014_100"
    if not root.is_dir():
        pytest.skip(f"needs {root}")
    dataset = read_dataset(f"coco:{root}/instances_val2014_100.json")
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in dataset.ids}
    for row in json.loads((root / f"instances_val2014_fake{kind}100_results.json").read_text()):
        rows[str(row["image_id"])].append(row)
    label = {number: i for i, number in enumerate(dataset.category_ids)}  # type: ignore[attr-defined]
    found = {}
    for i, (name, mine) in enumerate(rows.items()):
        masks = tuple(
            segmentation_mask(row["segmentation"], *dataset.size(i)) for row in mine if kind == "segm"
        )
        xywh = [row["bbox"] if kind == "bbox" else coco_box(row) for row in mine]
        boxes = np.array([[x, y, x + w, y + h] for x, y, w, h in xywh]).reshape(-1, 4)
        labels = np.array([label[row["category_id"]] for row in mine], np.int64)
        scores = np.array([row["score"] for row in mine])
        found[name] = Prediction(boxes, scores, labels, masks if kind == "segm" else None)
    truth = DetectionTruth.of(
        ((n, dataset.truth(i).instances) for i, n in enumerate(dataset.ids)), dataset.classes
    )
    numbers_of = box_numbers if kind == "bbox" else mask_numbers
    assert abs(numbers_of(truth, found)["AP"] - expected) < 1e-9


def coco_box(row: dict[str, Any]) -> list[float]:
    return oracle.toBbox(row["segmentation"]).tolist()


masks = arrays(np.bool_, st.tuples(st.integers(1, 40), st.integers(1, 40)))


@given(masks)
def test_compressed_runs_decode_as_pycocotools_encodes_them(mask: np.ndarray) -> None:
    encoded = oracle.encode(np.asfortranarray(mask.astype(np.uint8)))
    np.testing.assert_array_equal(RLE(mask.shape, decompress(encoded["counts"])).to_mask(), mask)
    text = {"size": list(mask.shape), "counts": encoded["counts"].decode()}
    np.testing.assert_array_equal(segmentation_mask(text, *mask.shape).to_mask(), mask)


points = st.tuples(st.floats(-20, 60, width=32), st.floats(-20, 60, width=32))
rings = st.lists(points, min_size=3, max_size=6).map(
    lambda ring: [value for point in ring for value in point]
)


@given(st.lists(rings, min_size=1, max_size=3))
@settings(deadline=None)
def test_polygons_fill_as_pycocotools_fills_them(polygons: list[list[float]]) -> None:
    expected = oracle.decode(oracle.merge(oracle.frPyObjects(polygons, 31, 37)))
    np.testing.assert_array_equal(polygon_mask(polygons, 31, 37).to_mask(), expected)


@given(arrays(np.int32, st.tuples(st.integers(1, 12), st.integers(1, 12)), elements=st.integers(0, 3)))
def test_masks_by_id_are_the_masks_and_their_boxes(numbers: np.ndarray) -> None:
    found = masks_by_id(numbers)
    assert sorted(found) == np.unique(numbers).tolist()
    for number, mask in found.items():
        np.testing.assert_array_equal(mask.to_mask(), numbers == number)
        assert mask.counts.tolist() == RLE.from_mask(numbers == number).counts.tolist()
        rows, columns = np.nonzero(numbers == number)
        assert mask_box(mask) == (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
