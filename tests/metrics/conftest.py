from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.sample import RLE, Instances
from stormproof.metrics.records import Detections, DetectionTruth

REFERENCE = Path(__file__).parents[3] / "shared/data/metric_refs/cocoapi_val2014_100"


@pytest.fixture(scope="session")
def coco_reference() -> dict[str, tuple[DetectionTruth, Detections]]:
    """cocoapi's own hundred images with its made-up results, for boxes and for masks."""
    if not REFERENCE.is_dir():
        pytest.skip(f"cocoapi's reference results are not at {REFERENCE}")
    from pycocotools import mask as coder

    truth = json.loads((REFERENCE / "instances_val2014_100.json").read_text())
    position = {c["id"]: i for i, c in enumerate(sorted(truth["categories"], key=lambda c: c["id"]))}
    images = sorted(truth["images"], key=lambda image: image["id"])
    by_image: dict[int, list[dict]] = {image["id"]: [] for image in images}
    for row in truth["annotations"]:
        by_image[row["image_id"]].append(row)

    def decoded(segmentation) -> RLE:
        return RLE.from_mask(coder.decode(segmentation))

    def rle(segmentation, size) -> RLE:
        if isinstance(segmentation, list) or isinstance(segmentation["counts"], list):
            segmentation = coder.frPyObjects(segmentation, *size)
        merged = coder.merge(segmentation) if isinstance(segmentation, list) else segmentation
        return decoded(merged)

    pairs = []
    for image in images:
        rows, size = by_image[image["id"]], (image["height"], image["width"])
        pairs.append(
            (
                str(image["id"]),
                Instances(
                    _xyxy([r["bbox"] for r in rows]),
                    [position[r["category_id"]] for r in rows],
                    masks=tuple(rle(r["segmentation"], size) for r in rows),
                    crowd=[r["iscrowd"] for r in rows],
                    area=[r["area"] for r in rows],
                ),
            )
        )
    laid = DetectionTruth.of(pairs, [f"class {i}" for i in range(len(position))])
    place = {image["id"]: i for i, image in enumerate(images)}

    def results(name: str) -> Detections:
        rows = json.loads((REFERENCE / name).read_text())
        masks = tuple(decoded(r["segmentation"]) for r in rows if "segmentation" in r)
        boxes = _xyxy([r["bbox"] for r in rows]) if "bbox" in rows[0] else np.zeros((len(rows), 4))
        return Detections(
            np.array([place[r["image_id"]] for r in rows]),
            boxes,
            np.array([r["score"] for r in rows]),
            np.array([position[r["category_id"]] for r in rows]),
            masks,
        )

    return {
        "bbox": (laid, results("instances_val2014_fakebbox100_results.json")),
        "segm": (laid, results("instances_val2014_fakesegm100_results.json")),
    }


def _xyxy(rows: list[list[float]]) -> np.ndarray:
    boxes = np.array(rows, np.float64).reshape(-1, 4)
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
