"""What `stormproof score` costs on large runs, beside the evaluators people use on the same files.

    python benchmarks/score.py            both shapes: some minutes, and 2 GB of disk while it runs
    python benchmarks/score.py --quick    a fiftieth of the images, to see that it runs

Runs, annotations and result files are made up and written first, which is not counted. Each contender is a
process of its own, from its start to its end: processor seconds and peak memory are the system's figures for
it. Peers read the annotations and one condition's results as JSON and are multiplied by the conditions; they
print twelve numbers, where `score` also checks every part and measures object errors and recall of people.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from stormproof.core.condition import Condition
from stormproof.core.sample import Prediction
from stormproof.corruptions import find, suites
from stormproof.datasets import read_dataset
from stormproof.results.store.parts import part_path, writing_part
from stormproof.results.store.record import DatasetRecord, ModelRecord, RunRecord, claim
from stormproof.results.store.schema import Row

SCORE = (
    "import sys; from stormproof.cli import main; sys.argv = ['stormproof', 'score', *sys.argv[1:]]; main()"
)
# The same without error types, calibration and LRP.
PLAIN = """
import sys
from stormproof.cli import main
from stormproof.metrics import metric
from stormproof.results import scoring

every = metric._declared
left_out = ("error_types", "calibration", "lrp")
metric._declared = lambda: [one for one in every() if one.function.__module__.split(".")[-1] not in left_out]
scoring._reliability = lambda *_: {}
sys.argv = ["stormproof", "score", *sys.argv[1:]]
main()
"""
MORE = 1.5  # times that error types, calibration and LRP may cost
PEER = """
import sys
if sys.argv[1] == "pycocotools":
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval as Evaluator
else:
    from faster_coco_eval import COCO, COCOeval_faster as Evaluator
truth = COCO(sys.argv[2])
run = Evaluator(truth, truth.loadRes(sys.argv[3]), "bbox")
run.evaluate()
run.accumulate()
run.summarize()
print("AP", float(run.stats[0]))
"""


@dataclass(frozen=True)
class Shape:
    """How much there is to score, and what it may cost: processor seconds and GB."""

    images: int
    truths: int
    detections: int  # of each condition
    conditions: int
    chunk: int
    seconds: float
    gb: float
    classes: int = 80


SHAPES = {
    "76 conditions": Shape(5_000, 36_000, 500_000, 76, 50, 30, 0.8),
    "100,000 images": Shape(100_000, 1_000_000, 1_000_000, 1, 1_000, 17, 1.05),
}


def made_up(shape: Shape, folder: Path) -> tuple[Path, Path, Path]:
    """Annotations, a run folder and the clean condition's results, on disk."""
    rng = np.random.default_rng(0)
    owner = np.sort(rng.integers(0, shape.images, shape.truths))
    sides = np.exp(rng.normal(4, 1, (shape.truths, 2))).clip(4, 400).round(2)
    low = (rng.uniform(0, 1, (shape.truths, 2)) * (640 - sides)).round(2)
    labels = rng.integers(0, shape.classes, shape.truths)
    annotations = folder / "annotations.json"
    columns = zip(owner.tolist(), labels.tolist(), low.tolist(), sides.tolist(), strict=True)
    content = {
        "images": [{"id": i + 1, "file_name": f"{i:06}.jpg", "width": 640, "height": 640}
                   for i in range(shape.images)],
        "categories": [{"id": i + 1, "name": "person" if i == 0 else f"thing {i}"}
                       for i in range(shape.classes)],
        "annotations": [{"id": k + 1, "image_id": i + 1, "category_id": c + 1, "bbox": [*at, *size],
                         "area": size[0] * size[1], "iscrowd": 0}
                        for k, (i, c, at, size) in enumerate(columns)],
    }  # fmt: skip
    annotations.write_text(json.dumps(content))
    spec = f"coco:{annotations},images={folder}"
    boxes = np.concatenate([low, low + sides], axis=1)
    run, record = folder / "run", _record(spec, shape)
    claim(run, record)
    results: list[dict[str, object]] = []
    for chunk in range(0, shape.images, shape.chunk):
        with writing_part(part_path(run, chunk // shape.chunk), record.key) as part:
            for row in _rows(
                range(chunk, min(chunk + shape.chunk, shape.images)), owner, boxes, labels, shape
            ):
                part.add(row)
                if row.condition.corruption is None:
                    results += _results(row)
    (folder / "results.json").write_text(json.dumps(results))
    return annotations, run, folder / "results.json"


def _conditions(count: int) -> list[Condition]:
    return [Condition(), *suites.SUITES["imagenet-c"]][:count] if count > 1 else [Condition()]


def _record(spec: str, shape: Shape) -> RunRecord:
    dataset = read_dataset(spec)
    conditions = _conditions(shape.conditions)
    recipes = {c.corruption: find(c.corruption).version for c in conditions if c.corruption}
    return RunRecord(
        model=ModelRecord(spec="made:up", name="made up", fingerprint="0", classes=dataset.classes),
        dataset=DatasetRecord(spec=spec, name=dataset.name, fingerprint=dataset.fingerprint,
                              images=len(dataset), classes=dataset.classes),
        seed=0, chunk=shape.chunk, images=len(dataset), conditions=tuple(map(str, conditions)),
        recipes=recipes,
    )  # fmt: skip


def _rows(
    images: range, owner: np.ndarray, boxes: np.ndarray, labels: np.ndarray, shape: Shape
) -> Iterator[Row]:
    """Detections scattered around truths, 60 % of the right class, as float32 networks give them."""
    each = shape.detections // shape.images
    conditions = sorted(_conditions(shape.conditions), key=str)
    for index in images:
        rng = np.random.default_rng(index)
        first, last = np.searchsorted(owner, [index, index + 1])
        source = rng.integers(first, last, each) if last > first else np.zeros(0, np.int64)
        extent = np.tile(boxes[source, 2:] - boxes[source, :2], 2)
        for condition in conditions:
            moved = boxes[source] + rng.normal(0, 0.15, extent.shape) * extent
            moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 2)
            right = rng.random(len(source)) < 0.6
            said = np.where(right, labels[source], rng.integers(0, shape.classes, len(source)))
            scores = rng.random(len(source)).astype(np.float32)
            version = find(condition.corruption).version if condition.corruption else 0
            said = Prediction(moved.astype(np.float32), scores, said)
            yield Row.of(index, str(index + 1), condition, version, (640, 640), said, None, f"9:{index:032x}")


def _results(row: Row) -> list[dict[str, object]]:
    sides = row.boxes[:, 2:] - row.boxes[:, :2]
    columns = zip(
        row.boxes[:, :2].tolist(), sides.tolist(), row.scores.tolist(), row.labels.tolist(), strict=True
    )
    return [{"image_id": row.index + 1, "category_id": label + 1, "bbox": [*at, *size], "score": score}
            for at, size, score, label in columns]  # fmt: skip


def cost(*arguments: str) -> tuple[float, float, str]:
    """Processor seconds and peak GB of a Python process and its children, and what it printed."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, "-c", *arguments], stdout=said)
        _, status, used = os.wait4(process.pid, 0)
        said.seek(0)
        if status:
            raise SystemExit(f"{arguments[1:]} failed; see above.")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6, said.read()


def table(name: str, shape: Shape) -> tuple[Table, bool]:
    """A shape's rows, and whether our costs are within what it may cost."""
    folder = Path(tempfile.mkdtemp())
    try:
        # In a process of its own: a contender started from one that holds all this would be charged for it,
        # since the system counts the memory of whoever starts a process until that becomes another program.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            annotations, run, results = pool.submit(made_up, shape, folder).result()
        seconds, peak, said = cost(SCORE, str(run), "--json")
        clean = json.loads(said)["scores"]["AP"]["clean"]
        title = (f"{name}: {shape.images:,} images, {shape.truths:,} truths, {shape.detections:,} boxes "
                 f"× {shape.conditions}")  # fmt: skip
        shown = Table("evaluator", "processor s", "peak GB", "clean AP", title=title, title_justify="left")
        shown.add_row("stormproof score", f"{seconds:.1f}", f"{peak:.2f}", f"{clean:.12f}")
        shutil.rmtree(run / "scores")
        plain, least, _ = cost(PLAIN, str(run), "--json")
        shown.add_row("without error types, calibration, LRP", f"{plain:.1f}", f"{least:.2f}", "")
        shown.add_row(f"(ratio, at most {MORE})", f"{seconds / plain:.2f}", f"{peak / least:.2f}", "")
        for peer in ("faster-coco-eval", "pycocotools"):
            own, most, words = cost(PEER, peer, str(annotations), str(results))
            times = f"{own * shape.conditions:.1f}" + (f" ({own:.1f} each)" if shape.conditions > 1 else "")
            shown.add_row(peer, times, f"{most:.2f}", f"{float(words.split()[-1]):.12f}")
        shown.add_row("(at most)", f"{shape.seconds:g}", f"{shape.gb:g}", "")
        within = seconds <= shape.seconds and peak <= shape.gb
        return shown, within and max(seconds / plain, peak / least) <= MORE
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the images")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="only write a shape's files, to look into")
    parser.add_argument("--shape", choices=SHAPES, help="only this one")
    asked = parser.parse_args()
    scale = 50 if asked.quick else 1
    met = True
    for name, full in SHAPES.items():
        if asked.shape not in (None, name):
            continue
        shape = Shape(full.images // scale, full.truths // scale, full.detections // scale, full.conditions,
                      full.chunk, full.seconds, full.gb)  # fmt: skip
        if asked.keep:
            asked.keep.mkdir(parents=True, exist_ok=True)
            print(*made_up(shape, asked.keep))
            continue
        shown, within = table(name, shape)
        Console().print(shown)
        met &= within
    return not met


if __name__ == "__main__":
    sys.exit(main())
