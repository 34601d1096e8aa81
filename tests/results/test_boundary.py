"""Boundary AP, the plugin of docs/adding/boundary.md: equal to pycocotools with that overlap."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pycocotools import mask as coder
from pycocotools.cocoeval import COCOeval
from scipy.ndimage import distance_transform_cdt

from helpers.coco_oracle import coco_evaluation, compressed, twelve
from stormproof.core.sample import RLE
from stormproof.corruptions.plugins import load_plugins
from stormproof.metrics.coco import NUMBERS
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import METRICS
from stormproof.metrics.records import Detections, DetectionTruth

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "adding" / "boundary.md").read_text(encoding="utf-8")
FILES = {
    path: re.sub(r"^\+", "", text, flags=re.MULTILINE)
    for path, text in re.findall(r"^\+\+\+ b/src/(\S+)\n@@[^\n]*\n((?:\+[^\n]*\n)*)", PAGE, re.MULTILINE)
}
SIDE = 60


def blobs(rng, count: int) -> list[np.ndarray]:
    """Rectangles with bites taken out of them."""
    planes = []
    for _ in range(count):
        plane = np.zeros((SIDE, SIDE), bool)
        x, y = rng.integers(0, 35, 2)
        width, height = rng.integers(8, 25, 2)
        plane[y : y + height, x : x + width] = True
        plane[y : y + height // 3, x : x + width // 3] = False
        planes.append(plane)
    return planes


def blob_set(seed: int) -> tuple[DetectionTruth, Detections]:
    rng = np.random.default_rng(seed)
    planes = blobs(rng, 12)
    image, labels = np.sort(rng.integers(0, 4, 12)), rng.integers(0, 2, 12)
    source = rng.integers(0, 12, 40)
    moved = [np.roll(planes[k], rng.integers(-2, 3, 2), (0, 1)) for k in source]
    area = np.array([plane.sum() for plane in planes], float)
    boxes = np.tile([0.0, 0, 9, 9], (12, 1))
    truth = DetectionTruth(
        tuple("abcd"), ("x", "y"), image, boxes, labels, np.zeros(12, bool), np.zeros(12, bool), area,
        tuple(map(RLE.from_mask, planes)),
    )  # fmt: skip
    found = Detections(
        image[source],
        boxes[source],
        rng.random(40).round(2),
        labels[source],
        tuple(map(RLE.from_mask, moved)),
    )
    return truth, found


def rim(mask: RLE) -> dict:
    """The pixels within 2 % of the diagonal of the outline, by distances instead of erosion."""
    steps = max(1, round(0.02 * SIDE * 2**0.5))
    plane = mask.to_mask()
    far = distance_transform_cdt(np.pad(plane, 1), metric="chessboard")[1:-1, 1:-1]
    return compressed(RLE.from_mask(plane & (far <= steps)))


@pytest.mark.parametrize("seed", range(3))
def test_equals_pycocotools_with_that_overlap(seed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = blob_set(seed)

    def compute(self, image_id, category_id):
        rows, objects = self._dts[image_id, category_id], self._gts[image_id, category_id]
        order = np.argsort([-row["score"] for row in rows], kind="mergesort")[:100]
        if not len(order) or not objects:
            return []
        seen, there = [rows[i]["id"] - 1 for i in order], [row["id"] - 1 for row in objects]
        tables = [
            coder.iou(
                [make(found.masks[i]) for i in seen], [make(truth.masks[i]) for i in there], [0] * len(there)
            )
            for make in (compressed, rim)
        ]
        return np.minimum(*tables)

    monkeypatch.setattr(COCOeval, "computeIoU", compute)
    theirs = twelve(coco_evaluation(truth, found, "segm"))
    (tmp_path / "boundary_plugin.py").write_text(FILES["boundary_iou.py"])
    load_plugins([str(tmp_path / "boundary_plugin.py")])
    try:
        cell = Objects(truth, found, scored_masks=True)
        numbers = cell.scored(np.ones((1, 4))).numbers
        ours = [float(numbers[f"boundary {name}"][0]) for name in NUMBERS]
    finally:
        for name in [each for each in METRICS.declared if each.endswith("boundary_ap")]:
            METRICS.remove(name)
    assert ours == pytest.approx([theirs[name] for name in NUMBERS], abs=1e-12, nan_ok=True)
    assert ours[0] <= float(numbers["mask AP"][0])


def test_an_installed_package_adds_the_measure(tmp_path: Path) -> None:
    """Installed as pip does it: a module and the metadata beside it, on the search path."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    source = str(Path(__file__).resolve().parents[2] / "src")
    code = "from stormproof.metrics.metric import measures; print(measures()['boundary AP'].words)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": f"{source}:{tmp_path}"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "COCO AP of masks and their boundaries", done.stderr
