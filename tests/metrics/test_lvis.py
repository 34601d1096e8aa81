"""AP of federated annotations equals LVIS' own package and hotcoco; a LVIS file is read as one."""

from __future__ import annotations

import json
from pathlib import Path

import hotcoco
import numpy as np
import pytest

from stormproof.core.errors import DatasetError
from stormproof.core.federated import Federated
from stormproof.core.sample import Instances, Prediction
from stormproof.datasets import read_dataset
from stormproof.metrics.inputs import Objects
from stormproof.metrics.lvis import with_regions
from stormproof.metrics.records import DetectionTruth, lay_out

NAMES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR300")


def lvis_set(seed: int, *, images: int = 14, objects: int = 90, detections: int = 900, classes: int = 9):
    """A LVIS file: some classes absent, some not exhaustive, most never searched for; and results for it."""
    rng = np.random.default_rng(seed)
    sides = np.exp(rng.normal(3.8, 0.9, (objects, 2))).clip(4, 250).round(1)
    low = rng.uniform(0, 300, (objects, 2)).round(1)
    owner, label = rng.integers(0, images, objects), rng.integers(0, classes, objects)
    rows = [
        {"id": k + 1, "image_id": int(owner[k]) + 1, "category_id": int(label[k]) + 1,
         "bbox": [*low[k].tolist(), *sides[k].tolist()], "area": float(sides[k].prod() * 0.7)}
        for k in range(objects)
    ]  # fmt: skip
    records = []
    for i in range(images):
        there = {int(one) + 1 for one in label[owner == i]}
        absent = [number for number in range(1, classes + 1) if number not in there and rng.random() < 0.4]
        partly = [number for number in there if rng.random() < 0.3]
        records.append(
            {"id": i + 1, "height": 600, "width": 600, "coco_url": f"http://images/val2017/{i + 1:012}.jpg",
             "neg_category_ids": absent, "not_exhaustive_category_ids": partly}
        )  # fmt: skip
    categories = [
        {"id": k + 1, "name": f"thing {k}", "frequency": "rcf"[k % 3], "image_count": 1, "instance_count": 1}
        for k in range(classes)
    ]
    source = rng.integers(0, objects, detections)
    moved = low[source] + rng.normal(0, 0.1, (detections, 2)) * sides[source]
    grown = sides[source] * np.exp(rng.normal(0, 0.1, (detections, 2)))
    kind = np.where(rng.random(detections) < 0.7, label[source], rng.integers(0, classes, detections))
    # Scores without ties: packages break ties in different ways.
    score = rng.permutation(detections) / detections
    results = [
        {"image_id": int(owner[source[k]]) + 1, "category_id": int(kind[k]) + 1, "score": float(score[k]),
         "bbox": [*moved[k].tolist(), *grown[k].tolist()]}
        for k in range(detections)
    ]  # fmt: skip
    return {"images": records, "annotations": rows, "categories": categories}, results


def cell_of(content, results, root: Path) -> Objects:
    path = root / "lvis_val.json"
    path.write_text(json.dumps(content))
    dataset = read_dataset(f"coco:{path}")
    truth = DetectionTruth.of(
        ((name, dataset.truth(i).instances) for i, name in enumerate(dataset.ids)), dataset.classes
    )
    truth = with_regions(truth, dataset.federated, [None] * len(dataset))
    by_image: dict[str, list[dict]] = {name: [] for name in dataset.ids}
    for row in results:
        by_image[str(row["image_id"])].append(row)
    predictions = {
        name: Prediction(
            np.array([[x, y, x + w, y + h] for x, y, w, h in (row["bbox"] for row in rows)]).reshape(-1, 4),
            [row["score"] for row in rows], [row["category_id"] - 1 for row in rows],
        )
        for name, rows in by_image.items()
    }  # fmt: skip
    return Objects(truth, lay_out(predictions, truth))


def ours(content, results, root: Path) -> dict[str, float]:
    cell = cell_of(content, results, root)
    assert "federated" in cell.kinds
    return {name: float(cell.scored(np.ones((1, len(cell.truth.ids)))).numbers[name][0]) for name in NAMES}


def test_optimism_of_a_frequency_group_is_that_of_its_classes(tmp_path: Path) -> None:
    """Without it, APr of 80 classes was above the truth in a quarter of simulated sets."""
    cell = cell_of(*lvis_set(1), tmp_path)
    halves = np.random.default_rng(0).integers(0, 2, (10, len(cell.truth.ids)))
    optimism = cell.scored(np.concatenate([np.ones((1, halves.shape[1])), halves])).optimism
    assert cell.truth.federated is not None
    letters = np.array(cell.truth.federated.frequency)
    for name, letter in (("APr", "r"), ("APc", "c"), ("APf", "f")):
        np.testing.assert_array_equal(optimism[name], optimism["AP"][letters == letter])
        assert np.nanmean(optimism[name]) > 0
    assert "AR300" in optimism


@pytest.mark.parametrize("seed", range(3))
def test_equals_hotcoco(tmp_path: Path, seed: int) -> None:
    content, results = lvis_set(seed)
    index = hotcoco.COCO(content)
    run = hotcoco.COCOeval(index, index.loadRes(results), "bbox", lvis_style=True)
    run.run()
    theirs = run.get_results()
    found = ours(content, results, tmp_path)
    expected = {name: theirs["AR@300" if name == "AR300" else name] for name in NAMES}
    assert found == pytest.approx(
        {k: v if v > -1 else np.nan for k, v in expected.items()}, abs=1e-12, nan_ok=True
    )


def test_equals_the_package_of_lvis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "float", float, raising=False)  # the package was written for NumPy 1
    package = pytest.importorskip("lvis", reason="needs lvis")
    content, results = lvis_set(5, images=3, detections=1500)  # more than 300 detections per image
    found = ours(content, results, tmp_path)
    run = package.LVISEval(
        package.LVIS(str(tmp_path / "lvis_val.json")), [dict(row) for row in results], "bbox"
    )
    run.run()
    theirs = run.get_results()
    expected = {name: theirs["AR@300" if name == "AR300" else name] for name in NAMES}
    assert found == pytest.approx(
        {k: v if v > -1 else np.nan for k, v in expected.items()}, abs=1e-12, nan_ok=True
    )


def test_detections_of_classes_that_were_not_searched_for_do_not_count(tmp_path: Path) -> None:
    content, results = lvis_set(1)
    unknown = [
        {"image_id": record["id"], "category_id": number, "score": 0.9999, "bbox": [1, 1, 50, 50]}
        for record in content["images"]
        for number in range(1, 10)
        if number not in record["neg_category_ids"]
        and not any(
            row["category_id"] == number for row in content["annotations"] if row["image_id"] == record["id"]
        )
    ]
    assert unknown
    found = ours(content, [*results, *unknown], tmp_path)
    assert found == pytest.approx(ours(content, results, tmp_path), nan_ok=True)


def test_images_are_found_by_their_address(tmp_path: Path) -> None:
    content, _ = lvis_set(1)
    (tmp_path / "lvis_val.json").write_text(json.dumps(content))
    dataset = read_dataset(f"coco:{tmp_path}/lvis_val.json")
    assert dataset.images[0].name == "000000000001.jpg"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content["images"][0].update(neg_category_ids=[99]), "image 1.*neg_category_ids"),
        (lambda content: content["images"][0].update(neg_category_ids=[[]]), "image 1.*neg_category_ids"),
        (lambda content: content["categories"][2].update(frequency="x"), "category 3.*must be r, c or f"),
    ],
)
def test_refuses_a_broken_file(tmp_path: Path, change, said: str) -> None:
    content, _ = lvis_set(1)
    change(content)
    (tmp_path / "lvis_val.json").write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=said):
        read_dataset(f"coco:{tmp_path}/lvis_val.json")


def test_detections_of_classes_not_labelled_exhaustively_change_no_number(tmp_path: Path) -> None:
    """Beside every object of a class that is not labelled exhaustively, there may be another one."""
    content, results = lvis_set(2, detections=300)
    record = next(r for r in content["images"] if r["not_exhaustive_category_ids"])
    number = record["not_exhaustive_category_ids"][0]
    more = [
        {
            "image_id": record["id"],
            "category_id": number,
            "score": 0.9 + k / 1e4,
            "bbox": [550, 550 + k, 9, 9],
        }
        for k in range(5)
    ]
    before, after = (
        {name: values[0] for name, values in cell.scored(np.ones((1, len(cell.truth.ids)))).numbers.items()}
        for cell in (cell_of(content, given, tmp_path) for given in (results, [*results, *more]))
    )
    assert {"oLRP", "D-ECE"} <= {*before}
    changed = {name for name in before if not np.isclose(before[name], after[name], equal_nan=True)}
    assert changed <= {"AR1"}  # only the best detection of an image counts there, whatever it is


def test_masks_of_classes_not_labelled_exhaustively_are_not_errors() -> None:
    planes = np.zeros((2, 20, 20), bool)
    planes[0, 2:8, 2:8] = planes[1, 12:18, 12:18] = True
    boxes = np.array([[2.0, 2, 8, 8], [12, 12, 18, 18]])
    truth = DetectionTruth.of([("1", Instances(boxes[:1], [0], planes[:1]))], ["thing"])
    found = {"1": Prediction(boxes, [0.5, 0.9], [0, 0], planes)}  # the better one finds no object
    everything, some = np.ones((1, 1), bool), np.zeros((1, 1), bool)
    numbers = {}
    for name, exhaustive in (("exhaustive", everything), ("some", some)):
        known = with_regions(truth, Federated(everything, exhaustive, ("f",)), [(20, 20)])
        cell = Objects(known, lay_out(found, known), scored_masks=True)
        numbers[name] = cell.scored(np.ones((1, 1))).scores
    assert [numbers["exhaustive"][name] for name in ("mask AP", "AP")] == pytest.approx([0.5, 0.5])
    assert [numbers["some"][name] for name in ("mask AP", "AP", "mask APf")] == [1, 1, 1]
