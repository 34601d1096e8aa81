"""pycocotools on the arrays that Stormproof scores: every COCO number must be equal to its result."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from stormproof.core.sample import RLE
from stormproof.metrics.coco import NUMBERS
from stormproof.metrics.records import Detections, DetectionTruth


def coco_evaluation(truth: DetectionTruth, found: Detections, kind: str) -> COCOeval:
    with contextlib.redirect_stdout(io.StringIO()):
        index = COCO()
        index.dataset = {
            "info": {},
            "images": [{"id": i + 1, "height": 0, "width": 0} for i in range(len(truth.ids))],
            "categories": [{"id": i + 1, "name": name} for i, name in enumerate(truth.classes)],
            "annotations": [_annotation(truth, i, kind) for i in range(len(truth))],
        }
        index.createIndex()
        results = COCO()
        results.dataset = index.dataset | {
            "annotations": [_result(found, i, kind) for i in range(len(found))]
        }
        results.createIndex()
        run = COCOeval(index, results, kind)
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run


def twelve(run: COCOeval) -> dict[str, float]:
    return {
        name: value if value > -1 else float("nan") for name, value in zip(NUMBERS, run.stats, strict=True)
    }


def compressed(mask: RLE) -> dict[str, Any]:
    from pycocotools import mask as coder

    return coder.frPyObjects({"size": list(mask.size), "counts": mask.counts.tolist()}, *mask.size)


def _annotation(truth: DetectionTruth, i: int, kind: str) -> dict[str, Any]:
    row = {
        "id": i + 1,
        "image_id": int(truth.image[i]) + 1,
        "category_id": int(truth.labels[i]) + 1,
        "bbox": xywh(truth.boxes[i]),
        "area": float(truth.area[i]),
        "iscrowd": int(truth.excused[i]),
    }
    if kind == "segm":
        row["segmentation"] = compressed(truth.masks[i])
    return row


def _result(found: Detections, i: int, kind: str) -> dict[str, Any]:
    box = xywh(found.boxes[i])
    row = {
        "id": i + 1,
        "image_id": int(found.image[i]) + 1,
        "category_id": int(found.labels[i]) + 1,
        "bbox": box,
        "area": box[2] * box[3],
        "score": float(found.scores[i]),
        "iscrowd": 0,
    }
    if kind == "segm":
        row |= {"segmentation": compressed(found.masks[i]), "area": float(found.masks[i].area)}
    return row


def xywh(box: np.ndarray) -> list[float]:
    return [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]
