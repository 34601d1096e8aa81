"""Boundary AP and boundary IoU, the plugin of docs/adding/boundary.md, against pycocotools and distances."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from pycocotools import mask as coder
from pycocotools.cocoeval import COCOeval
from scipy.ndimage import distance_transform_cdt

from helpers.coco_oracle import coco_evaluation, compressed, twelve
from helpers.scenes import write_street
from helpers.scored_models import MODELS
from helpers.typed import say
from stormproof.core.forms import FORMS
from stormproof.core.sample import RLE
from stormproof.corruptions.plugins import load_plugins
from stormproof.metrics.coco import NUMBERS
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import METRICS
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.task import TASKS
from stormproof.results.run import Run

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
    return compressed(RLE.from_mask(plane & (depth(plane) <= steps)))


def depth(plane: np.ndarray) -> np.ndarray:
    """How many steps each pixel of a mask is inside its outline."""
    far: np.ndarray = distance_transform_cdt(np.pad(plane, 1), metric="chessboard")[1:-1, 1:-1]
    return far


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


def outline_ious(run: Run, condition: str) -> list[float]:
    """IoU of the pixels near the outlines of each class, over all images, by distances."""
    shared, either = np.zeros(3), np.zeros(3)
    for name, answer in run.predictions(condition).items():
        truth = run.sample(name, condition).truth.semantic
        unknown = truth.labels == truth.ignore
        steps = max(1, round(0.02 * float(np.hypot(*truth.labels.shape))))
        for label in range(3):
            sides = (truth.labels == label) | unknown, answer.semantic == label
            true, said = (side & (depth(side) <= steps) & ~unknown for side in sides)
            shared[label] += (true & said).sum()
            either[label] += (true | said).sum()
    return list(shared / either)


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("boundary_iou.py", "boundary_maps.py"):
        (tmp_path / name).write_text(FILES[name])
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "boundary_maps.py"
    for registry, name in ((TASKS, "boundaries"), (FORMS, "outlines")):
        registry.remove(name)
    for name in [each for each in METRICS.declared if "boundary" in each]:
        METRICS.remove(name)


def test_boundary_iou_of_label_maps_from_the_run_to_the_interval(tmp_path: Path, plugged: Path) -> None:
    data = write_street(tmp_path / "street")
    for path in sorted((tmp_path / "street/labels").iterdir()):  # a corner that nobody labelled
        labels = np.asarray(PIL.Image.open(path)).copy()
        labels[:20, :30] = 11
        PIL.Image.fromarray(labels).save(path)
    folder, flags = tmp_path / "run", ("--plugin", plugged)
    given = ("--model", f"{MODELS}:thresholds", "--data", data, "-c", "contrast@3", "--engine", "local")
    say("run", *given, "--out", folder, *flags)
    run = Run(folder)
    scores = run.score(interval=True)
    assert scores.headline == "mIoU"
    for condition in ("clean", "contrast@3"):
        theirs = outline_ious(run, condition)
        ours = scores.per_class["boundary IoU"][condition]
        assert [ours[name] for name in ("dark", "grey", "bright")] == pytest.approx(theirs, abs=1e-12)
        assert scores.score("boundary mIoU", condition) == pytest.approx(np.mean(theirs), abs=1e-12)
    assert scores.score("boundary mIoU", "contrast@3") < scores.score("mIoU", "contrast@3")
    interval = scores.interval("contrast@3", "boundary mIoU")
    assert interval.low <= interval.estimate <= interval.high
    assert "boundary mIoU" in say("score", folder, "--measure", "boundary mIoU", "--interval", *flags)
