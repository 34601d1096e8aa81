"""How fast the metrics are, next to the evaluators people use. Each contender runs in its own process.

    python benchmarks/metrics.py            every table
    python benchmarks/metrics.py --quick    a tenth of the images, to see that it runs

Times are wall seconds after imports and, for compiled kernels, after one warm-up on a toy input. Peak
memory is the process's, the arrays of the made-up predictions included.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from stormproof.core.sample import Prediction, SemanticMap
from stormproof.metrics.coco import NUMBERS, box_numbers
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.semantic import count_pixels

IMAGES, TRUTHS, DETECTIONS, CLASSES, CONDITIONS = 5_000, 36_000, 500_000, 80, 76


def made_up_set(scale: int) -> tuple[DetectionTruth, Detections]:
    """COCO-sized truths and detections scattered around them, 60 % of the right class."""
    rng = np.random.default_rng(0)
    images, truths, detections = IMAGES // scale, TRUTHS // scale, DETECTIONS // scale
    image = np.sort(rng.integers(0, images, truths))
    sides = np.exp(rng.normal(4, 1, (truths, 2))).clip(4, 400)
    low = rng.uniform(0, 1, (truths, 2)) * (640 - sides)
    boxes = np.concatenate([low, low + sides], axis=1)
    labels = rng.integers(0, CLASSES, truths)
    none = np.zeros(truths, bool)
    ids, classes = tuple(f"{i:06}" for i in range(images)), tuple(map(str, range(CLASSES)))
    truth = DetectionTruth(
        ids, classes, image, boxes, labels, none, none, sides.prod(axis=1), (None,) * truths
    )
    source = np.sort(rng.integers(0, truths, detections))
    moved = boxes[source] + rng.normal(0, 0.15, (detections, 4)) * np.tile(sides[source], (1, 2))
    moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 2)
    said = np.where(rng.random(detections) < 0.6, labels[source], rng.integers(0, CLASSES, detections))
    return truth, Detections(image[source], moved, rng.random(detections).round(4), said)


def ours(truth: DetectionTruth, found: Detections) -> list[float]:
    return list(box_numbers(truth, found).values())


def ours_from_predictions(truth: DetectionTruth, found: Detections) -> list[float]:
    ends = np.searchsorted(found.image, np.arange(1, len(truth.ids)))
    columns = (np.split(column, ends) for column in (found.boxes, found.scores, found.labels))
    said = {name: Prediction(*row) for name, *row in zip(truth.ids, *columns, strict=True)}
    return list(box_numbers(truth, said).values())


def hotcoco(truth: DetectionTruth, found: Detections) -> list[float]:
    """Its pycocotools-like interface: the truth as dictionaries, the results as an array."""
    from hotcoco import COCO, COCOeval

    index = COCO(_dataset(truth))
    run = COCOeval(index, index.load_res(_rows(found)), "bbox")
    run.run()
    return list(run.stats)


def pycocotools(truth: DetectionTruth, found: Detections) -> list[float]:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    index = COCO()
    index.dataset = _dataset(truth)
    index.createIndex()
    run = COCOeval(index, index.loadRes(_rows(found)), "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return list(run.stats)


def faster_coco_eval(truth: DetectionTruth, found: Detections) -> list[float]:
    from faster_coco_eval import COCO, COCOeval_faster

    index = COCO(_dataset(truth))
    run = COCOeval_faster(index, index.loadRes(_rows(found)), "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return list(run.stats[:12])


CONTENDERS: dict[str, Callable[[DetectionTruth, Detections], list[float]]] = {
    "stormproof": ours,
    "stormproof, from Prediction objects": ours_from_predictions,
    "hotcoco": hotcoco,
    "faster-coco-eval": faster_coco_eval,
    "pycocotools": pycocotools,
}


def _dataset(truth: DetectionTruth) -> dict[str, object]:
    boxes = np.concatenate([truth.boxes[:, :2], truth.boxes[:, 2:] - truth.boxes[:, :2]], axis=1).tolist()
    columns = zip(truth.image.tolist(), truth.labels.tolist(), boxes, truth.area.tolist(), strict=True)
    return {
        "info": {},
        "images": [{"id": i + 1, "width": 640, "height": 640} for i in range(len(truth.ids))],
        "categories": [{"id": i + 1, "name": name} for i, name in enumerate(truth.classes)],
        "annotations": [
            {"id": k + 1, "image_id": i + 1, "category_id": c + 1, "bbox": box, "area": area, "iscrowd": 0}
            for k, (i, c, box, area) in enumerate(columns)
        ],
    }


def _rows(found: Detections) -> np.ndarray:
    boxes = np.concatenate([found.boxes[:, :2], found.boxes[:, 2:] - found.boxes[:, :2]], axis=1)
    return np.column_stack([found.image + 1, boxes, found.scores, found.labels + 1]).astype(np.float64)


def one_contender(name: str, scale: int) -> dict[str, object]:
    contender = CONTENDERS[name]
    toy = made_up_set(500)
    truth, found = made_up_set(scale)
    with contextlib.redirect_stdout(io.StringIO()):
        contender(*toy)  # imports and warm-up
        started = time.perf_counter()
        numbers = contender(truth, found)
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": seconds, "peak_gb": peak, "numbers": [float(n) for n in numbers]}


def grid(scale: int) -> dict[str, object]:
    """Every condition of a 15 × 5 + clean grid against a truth that is indexed once."""
    truth, found = made_up_set(scale)
    rng = np.random.default_rng(1)
    started = time.perf_counter()
    for _ in range(CONDITIONS):
        box_numbers(truth, Detections(found.image, found.boxes, rng.permutation(found.scores), found.labels))
    return {
        "seconds": time.perf_counter() - started,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "numbers": [],
    }


def in_process(*arguments: str) -> dict[str, object]:
    command = [sys.executable, __file__, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{ended.stderr}")
    return json.loads(ended.stdout.splitlines()[-1])


def detection_table(console: Console, scale: int) -> None:
    flag = [f"--scale={scale}"]
    results = {name: in_process("--contender", name, *flag) for name in CONTENDERS}
    base = results["pycocotools"]
    table = Table(
        title=f"bbox AP: {IMAGES // scale:,} images, {TRUTHS // scale:,} truths, "
        f"{DETECTIONS // scale:,} detections",
        title_justify="left",
    )
    for head in ("evaluator", "seconds", "× pycocotools", "peak GB", "largest difference of the 12"):
        table.add_column(head, justify="left" if head == "evaluator" else "right")
    for name, result in results.items():
        off = max(abs(a - b) for a, b in zip(result["numbers"], base["numbers"], strict=True))
        table.add_row(
            name,
            f"{result['seconds']:.2f}",
            f"{base['seconds'] / result['seconds']:.1f}",
            f"{result['peak_gb']:.2f}",
            f"{off:.1e}",
        )
    whole = in_process("--grid", *flag)
    table.add_section()
    table.add_row(
        f"stormproof, {CONDITIONS} conditions, truth indexed once",
        f"{whole['seconds']:.1f}",
        f"{CONDITIONS * base['seconds'] / whole['seconds']:.1f}",
        f"{whole['peak_gb']:.2f}",
        "",
    )
    console.print(table)
    assert len(base["numbers"]) == len(NUMBERS)


def confusion_table(console: Console) -> None:
    rng = np.random.default_rng(0)
    truth = np.kron(rng.integers(0, 19, (64, 128)), np.ones((16, 16))).astype(np.uint8)
    truth[:60] = 255
    said = np.where(rng.random(truth.shape) < 0.9, truth, rng.integers(0, 19, truth.shape)).astype(np.uint8)
    said[truth == 255] = 0

    def bincount() -> np.ndarray:
        kept = truth != 255
        joint = truth[kept].astype(np.int64) * 19 + said[kept]
        return np.bincount(joint, minlength=361).reshape(19, 19)

    def counted() -> np.ndarray:
        return count_pixels(SemanticMap(truth), said, classes=19)

    assert (counted() == bincount()).all()
    base, fast = _milliseconds(bincount), _milliseconds(counted)
    table = Table("confusion 2048×1024, 19 classes", "ms", "of np.bincount", title_justify="left")
    table.add_row("np.bincount", f"{base:.2f}", "1.00")
    table.add_row("stormproof", f"{fast:.2f}", f"{fast / base:.2f}")
    console.print(table)


def _milliseconds(call: Callable[[], object], rounds: int = 31) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return 1000 * median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scale", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--grid", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.contender:
        print(json.dumps(one_contender(chosen.contender, chosen.scale)))
    elif chosen.grid:
        print(json.dumps(grid(chosen.scale)))
    else:
        console = Console()
        detection_table(console, 10 if chosen.quick else chosen.scale)
        confusion_table(console)


if __name__ == "__main__":
    main()
