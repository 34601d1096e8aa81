"""Scores of a run from its rows by pycocotools and plain loops: no metric and no aggregate of ours."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from stormproof.results.run import Run

RATES = [10 ** (k / 4) for k in range(-12, -3)]  # false positives per image at which people are counted
OVERLAPS = (0.3, 0.4, 0.5, 0.6, 0.7)
FLAWS = ("CBWO", "WBCO", "WBWO", "PMD", "MD")
Boxes = list[list[float]]


@dataclass
class Image:
    """One image under one condition: objects and detections, best first."""

    truths: Boxes
    labels: list[int]
    boxes: Boxes
    said: list[int]
    scores: list[float]


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    sides = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / (sum(sides) - width * height)


class Rows:
    """The rows of a run, condition by condition."""

    def __init__(self, folder: Path, classes: Sequence[str]) -> None:
        self.run, self.classes = Run(folder), tuple(classes)
        tables = [pq.read_table(path).to_pylist() for path in sorted(folder.glob("parts/*.parquet"))]
        self.rows = [row for table in tables for row in table]

    @cached_property
    def images(self) -> list[str]:
        return sorted({row["image"] for row in self.rows}, key=lambda name: int(name))

    @cached_property
    def by_condition(self) -> dict[str, dict[str, Image]]:
        found: dict[str, dict[str, Image]] = {}
        for row in self.rows:
            objects = self.run.sample(row["image"], row["condition"]).truth.instances
            assert objects is not None
            best = sorted(range(len(row["scores"])), key=lambda i: -row["scores"][i])
            found.setdefault(row["condition"], {})[row["image"]] = Image(
                objects.boxes.tolist(), objects.labels.tolist(), [row["boxes"][i] for i in best],
                [row["labels"][i] for i in best], [row["scores"][i] for i in best],
            )  # fmt: skip
        return found

    def quality(self, condition: str, what: str) -> float:
        return float(np.mean([row[what] for row in self.rows if row["condition"] == condition]))

    def precision(self, condition: str, images: Sequence[str] | None = None) -> dict[str, float]:
        """AP and its sizes, and AP of every class, by pycocotools."""
        chosen = self.by_condition[condition]
        names = list(images or self.images)
        record: dict[str, Any] = {
            "info": {}, "images": [{"id": int(name)} for name in names],
            "categories": [{"id": k + 1, "name": name} for k, name in enumerate(self.classes)],
        }  # fmt: skip
        truths, found = [], []
        for name in names:
            image = chosen[name]
            truths += [_annotation(name, b, k, 1 + len(truths) + i) for i, (b, k) in
                       enumerate(zip(image.truths, image.labels, strict=True))]  # fmt: skip
            rows = zip(image.boxes, image.said, image.scores, strict=True)
            found += [{**_annotation(name, b, k, 1 + len(found) + i), "score": s} for i, (b, k, s) in
                      enumerate(rows)]  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()):
            sides = []
            for annotations in (truths, found):
                side = COCO()
                side.dataset = {**record, "annotations": annotations}
                side.createIndex()
                sides.append(side)
            made = COCOeval(*sides, "bbox")
            made.evaluate()
            made.accumulate()
        table = made.eval["precision"][..., :, -1]  # IoU × recall × class × size

        def mean(values: Any) -> float:
            known = values[values > -1]
            return float(known.mean()) if known.size else float("nan")

        sizes = {name: mean(table[..., k]) for k, name in enumerate(("AP", "APs", "APm", "APl"))}
        return sizes | {name: mean(table[:, :, k, 0]) for k, name in enumerate(self.classes)}

    def errors(self, condition: str) -> dict[str, float]:
        """E and the share of objects with each flaw: what speaks is scored 0.4 or more (docs/adr/0019)."""
        means, counts, objects = [], dict.fromkeys(FLAWS, 0), 0
        for image in self.by_condition[condition].values():
            loud = [i for i, score in enumerate(image.scores) if score >= 0.4]
            found: list[tuple[float, bool]] = []
            for truth, label in zip(image.truths, image.labels, strict=True):
                own = [overlap(truth, image.boxes[i]) for i in loud if image.said[i] == label]
                others = [overlap(truth, image.boxes[i]) for i in loud if image.said[i] != label]
                best = max(own, default=0.0)
                if best > 0:
                    found.append((best, True))
                else:
                    other = max(others, default=0.0)
                    found.append((other, False) if other >= 0.1 else (0.0, False))
            missed = [shared == 0 for shared, _ in found]
            for shared, same in found:
                objects += 1
                if shared == 0:
                    counts["MD" if all(missed) else "PMD"] += 1
                elif 1 - shared < 0.5:
                    counts["CBWO"] += not same
                else:
                    counts["WBCO" if same else "WBWO"] += 1
            means.append(np.mean([1 - shared for shared, _ in found]))
        return {"E": float(np.mean(means)), **{name: n / objects for name, n in counts.items()}}

    def people(self, condition: str, iou: float) -> tuple[list[tuple[float, bool]], int]:
        """Every detection of a person, its score and whether it found one; and how many people there are."""
        judged, count = [], 0
        for image in self.by_condition[condition].values():
            free = [box for box, label in zip(image.truths, image.labels, strict=True) if label == 0]
            count += len(free)
            for box, label, score in zip(image.boxes, image.said, image.scores, strict=True):
                if label != 0:
                    continue
                best = max(free, key=lambda truth: overlap(truth, box), default=None)
                hit = best is not None and overlap(best, box) >= iou
                judged.append((score, hit))
                if hit and best is not None:
                    free.remove(best)
        return judged, count

    def thresholds(self, iou: float) -> list[float]:
        """On clean images, the laxest score at which no more than each rate of detections is false."""
        judged, _ = self.people("clean", iou)
        scores = sorted({score for score, _ in judged}, reverse=True)
        false = {s: sum(score >= s and not hit for score, hit in judged) / len(self.images) for s in scores}
        return [min((s for s in scores if false[s] <= rate), default=float("inf")) for rate in RATES]

    def rates(self, condition: str, iou: float) -> tuple[list[float], list[float]]:
        """Detection rate and false positives per image at the thresholds of the clean images."""
        judged, count = self.people(condition, iou)
        pairs = [
            (
                sum(score >= t and hit for score, hit in judged) / count,
                sum(score >= t and not hit for score, hit in judged) / len(self.images),
            )
            for t in self.thresholds(iou)
        ]
        return [rate for rate, _ in pairs], [false for _, false in pairs]

    def reliability(self, condition: str) -> dict[int, tuple[float, float, int]]:
        """Mean score, share that is right at IoU 0.5 and number of boxes, by tenths of the score from 0.3."""
        bins: dict[int, list[tuple[float, bool]]] = {}
        for image in self.by_condition[condition].values():
            free = list(range(len(image.truths)))
            for box, label, score in zip(image.boxes, image.said, image.scores, strict=True):
                own = [i for i in free if image.labels[i] == label]
                best = max(own, key=lambda i: overlap(image.truths[i], box), default=None)
                hit = best is not None and overlap(image.truths[best], box) >= 0.5
                if hit and best is not None:
                    free.remove(best)
                if score >= 0.3:
                    bins.setdefault(next(k for k in range(1, 11) if score <= k / 10), []).append((score, hit))
        return {
            k: (float(np.mean([s for s, _ in held])), float(np.mean([h for _, h in held])), len(held))
            for k, held in sorted(bins.items())
        }

    def adr(self, condition: str) -> float:
        return float(np.mean([self.rates(condition, iou)[0] for iou in OVERLAPS]))


def _annotation(image: str, box: Sequence[float], label: int, number: int) -> dict[str, Any]:
    sides = [box[2] - box[0], box[3] - box[1]]
    return {
        "id": number, "image_id": int(image), "category_id": label + 1, "bbox": [*box[:2], *sides],
        "area": sides[0] * sides[1], "iscrowd": 0,
    }  # fmt: skip


def mean(cells: Mapping[str, float], name: str) -> float:
    """The mean of a corruption over its severities or parameters, or the one condition of that name."""
    held = [value for text, value in cells.items() if name in (text, re.split(r"[@\[]", text)[0])]
    return float(np.mean(held))
