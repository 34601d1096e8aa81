"""Edge cases, from files to the twelve numbers, compared with pycocotools on the same files."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from helpers.coco_oracle import twelve
from stormproof.core.condition import CLEAN
from stormproof.datasets import read_dataset
from stormproof.metrics.coco import box_numbers
from stormproof.metrics.records import DetectionTruth
from stormproof.models import load_model

_SIDES = (32.0, 96.0, 31.9, 32.1, 10.1, 20.2, 64.3, 100.7)  # 32² and 96² are the bounds of small and large
_SCORES = (0.1, 0.5, 0.5, 0.9, 0.30000000000000004)  # ties


def problem(dice: random.Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A ground truth and results of decimal boxes whose areas and IoUs lie on thresholds."""
    images = [{"id": i + 1, "height": 300, "width": 300} for i in range(3)]
    truths, results = [], []
    for number in range(dice.randrange(3, 12)):
        image, kind = dice.randrange(3) + 1, dice.randrange(2) + 1
        x, y = round(dice.uniform(0, 150), 1), round(dice.uniform(0, 150), 2)
        w, h = dice.choice(_SIDES), dice.choice(_SIDES)
        crowd = int(dice.random() < 0.15)
        area = dice.choice((w * h, 1024, 9216))
        truths.append({"id": number + 1, "image_id": image, "category_id": kind, "bbox": [x, y, w, h],
                       "area": area, "iscrowd": crowd})  # fmt: skip
        for _ in range(dice.randrange(3)):
            share = dice.choice((0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0))
            box = dice.choice(
                ([x, y, w * share, h], [x, y, w, h / share], [x + w * (1 - share), y, w * share, h])
            )
            results.append(
                {"image_id": image, "category_id": kind, "bbox": box, "score": dice.choice(_SCORES)}
            )
    return {"images": images, "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
            "annotations": truths, "info": {}}, results  # fmt: skip


def expected(truth: Path, results: Path) -> dict[str, float]:
    with contextlib.redirect_stdout(io.StringIO()):
        index = COCO(str(truth))
        run = COCOeval(index, index.loadRes(str(results)), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return twelve(run)


def ours(truth: Path, results: Path) -> dict[str, float]:
    dataset = read_dataset(f"coco:{truth}")
    model = load_model(f"results:{results}").bind(dataset)
    pairs = [(name, dataset.truth(i).instances) for i, name in enumerate(dataset.ids)]
    found = {name: model.lookup(name, CLEAN) for name in dataset.ids}
    return box_numbers(DetectionTruth.of(pairs, dataset.classes), found)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_edge_cases_equal_pycocotools(tmp_path: Path, block: int) -> None:
    truth, results = tmp_path / "truth.json", tmp_path / "results.json"
    for number in range(75 * block, 75 * (block + 1)):
        gt, said = problem(random.Random(number))
        if not said:
            continue
        truth.write_text(json.dumps(gt))
        results.write_text(json.dumps(said))
        want, got = expected(truth, results), ours(truth, results)
        for name, value in want.items():
            same = (
                math.isclose(got[name], value, abs_tol=1e-9)
                or math.isnan(got[name]) == math.isnan(value) is True
            )
            assert same, (number, name, got[name], value)
