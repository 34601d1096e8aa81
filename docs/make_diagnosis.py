"""Renew the table of differences from other evaluators in docs/checked.md, on real photographs.

    python docs/make_diagnosis.py ../shared        some minutes; a folder with data/ and models/

The runs go to runs/diagnosis and continue where they were. Each evaluator reads files that `stormproof
export` wrote. It needs pycocotools, hotcoco, torchmetrics and tidecv; panopticapi takes part where installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hotcoco
import numpy as np
import torch
from parts import write_part
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torchmetrics.classification import BinaryCalibrationError

import stormproof as sp
from stormproof import corruptions
from stormproof.core.object_arrays import STRIDE
from stormproof.core.sample import RLE, Prediction
from stormproof.models.classes import match_classes
from stormproof.models.panoptic import Merged, MergeRule
from stormproof.results.store.export import export_coco, export_panoptic, export_panoptic_truth, export_truth

PAGE = Path(__file__).parent / "checked.md"
RUNS = PAGE.parents[1] / "runs" / "diagnosis"
CONDITIONS = ("clean", "fog@3", "gaussian_noise@3", "motion_blur@3")
TYPES = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")
STUFF = {
    "sky": "sky-other-merged", "vegetation": "tree-merged", "building": "building-other-merged",
    "sidewalk": "pavement-merged", "wall": "wall-other-merged", "fence": "fence-merged",
    "terrain": "grass-merged",
}  # fmt: skip
Numbers = dict[str, float]
Matched = dict[int, list[tuple[float, float]]]


# Boxes


class Boxes:
    """Truth and results of one condition, as other evaluators read them; matched by pycocotools."""

    def __init__(self, truth: Path, results: Path) -> None:
        self.truth = json.loads(truth.read_text())
        every = json.loads(results.read_text())
        known = {row["category_id"] for row in self.truth["annotations"] if not row["iscrowd"]}
        self.found = [row for row in every if row["category_id"] in known]
        self.best = [row for row in _best(every) if row["category_id"] in known]
        self.classes = sorted(known)
        self._matched: dict[float, Matched] = {}
        with contextlib.redirect_stdout(io.StringIO()):
            self.coco = COCO(str(truth))
            self.said = self.coco.loadRes(self.found)

    def evaluated(self, *thresholds: float) -> COCOeval:
        with contextlib.redirect_stdout(io.StringIO()):
            run = COCOeval(self.coco, self.said, "bbox")
            run.params.iouThrs = np.array(thresholds or run.params.iouThrs)
            run.evaluate()
            run.accumulate()
        return run

    def matched(self, threshold: float) -> Matched:
        if threshold not in self._matched:
            self._matched[threshold] = self._match(threshold)
        return self._matched[threshold]

    def _match(self, threshold: float) -> Matched:
        """By class, every detection that is not excused: its score, and the IoU of what it found or 0."""
        run = self.evaluated(threshold)
        found: Matched = {label: [] for label in self.classes}
        for image in run.evalImgs:
            if image is None or image["aRng"] != run.params.areaRng[0]:
                continue
            key = image["image_id"], image["category_id"]
            place = {row["id"]: k for k, row in enumerate(run._gts[key])}
            for k, score in enumerate(image["dtScores"]):
                if not image["dtIgnore"][0, k]:
                    taken = int(image["dtMatches"][0, k])
                    found[key[1]].append((score, float(run.ious[key][k, place[taken]]) if taken else 0.0))
        return found

    def objects(self, label: int) -> int:
        return sum(row["category_id"] == label and not row["iscrowd"] for row in self.truth["annotations"])


def _best(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The 100 detections of each image that score highest, of any class."""
    counts: Counter[int] = Counter()
    kept = []
    for row in sorted(rows, key=lambda row: -row["score"]):
        counts[row["image_id"]] += 1
        if counts[row["image_id"]] <= 100:
            kept.append(row)
    return kept


def with_pycocotools(boxes: Boxes, clean: Boxes) -> Numbers:
    precision = boxes.evaluated().eval["precision"][..., 0, -1]

    def mean(values: Any) -> float:
        return float(values[values > -1].mean())

    return {"AP": mean(precision), "AP50": mean(precision[0]), "AP75": mean(precision[5])}


def with_tidecv(boxes: Boxes, clean: Boxes) -> Numbers:
    import tidecv

    true, said = tidecv.Data("truth"), tidecv.Data("found")
    for row in boxes.truth["images"]:
        true.add_image(row["id"], str(row["id"]))
    for row in boxes.truth["annotations"]:
        add = true.add_ignore_region if row["iscrowd"] else true.add_ground_truth
        add(row["image_id"], row["category_id"], row["bbox"])
    for row in boxes.best:
        said.add_detection(row["image_id"], row["category_id"], row["score"], row["bbox"])
    tide = tidecv.TIDE(mode=tidecv.TIDE.BOX)
    with contextlib.redirect_stdout(io.StringIO()):
        tide.evaluate(true, said)
        every = tide.get_all_errors()
    gains = {kind: every["main"]["found"][kind] for kind in TYPES}
    gains |= {"FP": every["special"]["found"]["FalsePos"], "FN": every["special"]["found"]["FalseNeg"]}
    return {f"dAP {kind}": value / 100 for kind, value in gains.items()}


def with_hotcoco(boxes: Boxes, clean: Boxes) -> Numbers:
    """Its ECE, of boxes scored 0.3 or more."""
    index = hotcoco.COCO(boxes.truth)
    loud = [row for row in boxes.found if row["score"] >= 0.3]
    run = hotcoco.COCOeval(index, index.load_res(loud), "bbox")
    with contextlib.redirect_stdout(io.StringIO()):
        run.evaluate()
    return {"D-ECE": run.calibration(n_bins=10, iou_threshold=0.5)["ece"]}


def with_torchmetrics(boxes: Boxes, clean: Boxes) -> Numbers:
    """Its ECE of the boxes that pycocotools matched."""
    pairs = [pair for row in boxes.matched(0.5).values() for pair in row if pair[0] >= 0.3]
    return {"D-ECE": _ece([score for score, _ in pairs], [overlap > 0 for _, overlap in pairs], bins=10)}


def _ece(sure: Sequence[float], right: Sequence[bool], *, bins: int) -> float:
    error = BinaryCalibrationError(n_bins=bins, norm="l1")
    return float(error(torch.tensor(sure, dtype=torch.float64), torch.tensor(right, dtype=torch.int64)))


def by_definition(boxes: Boxes, clean: Boxes) -> Numbers:
    """oLRP, LaECE₀ and LaACE₀: the papers' formulas in loops, over the matches of pycocotools."""
    optimal = [best[0] for label in boxes.classes if (best := _lrp(boxes, label, 0.5))]
    coarse, fine = [], []
    touching = boxes.matched(1e-9)
    for label in boxes.classes:
        threshold = (_lrp(clean, label, 1e-9) or (0.0, math.inf))[1]
        kept = [pair for pair in touching[label] if pair[0] >= threshold]
        if not kept:
            continue
        gaps = np.zeros(25)
        for score, overlap in kept:
            gaps[max(math.ceil(score * 25) - 1, 0)] += score - overlap
        coarse.append(np.abs(gaps).sum() / len(kept))
        fine.append(sum(abs(score - overlap) for score, overlap in kept) / len(kept))
    return {"oLRP": float(np.mean(optimal)), "LaECE0": float(np.mean(coarse)), "LaACE0": float(np.mean(fine))}


def _lrp(boxes: Boxes, label: int, tau: float) -> tuple[float, float] | None:
    """The least LRP of a class over thresholds, and the threshold; error 1 where nothing is found."""
    objects, pairs = boxes.objects(label), sorted(boxes.matched(tau)[label], reverse=True)
    tau = 0.5 if tau == 0.5 else 0.0
    best, hits, lost, k = (1.0, math.inf), 0, 0.0, 0
    while k < len(pairs):
        score = pairs[k][0]
        while k < len(pairs) and pairs[k][0] == score:
            hits, lost, k = hits + (pairs[k][1] > 0), lost + (1 - pairs[k][1]) * (pairs[k][1] > 0), k + 1
        if hits:
            error = (lost / (1 - tau) + (k - hits) + (objects - hits)) / (k + objects - hits)
            best = min(best, (error, score))
    return best


# Maps


def panoptic_model(models: Path) -> Merged:
    """YOLOX's boxes as the masks of things, DeepLab's map as stuff: no good, but real."""
    detector = sp.open_model(f"onnx:{models}/yolox_nano_416_coco.onnx")
    segmenter = sp.open_model(f"onnx:{models}/deeplab_edgetpuslim_513_cityscapes_qdq.onnx")

    def things(images: Sequence[Any]) -> list[Prediction]:
        answers = []
        for image, found in zip(images, detector(images), strict=True):
            boxes = found.boxes.round().clip(0)
            kept = np.flatnonzero((boxes[:, 2:] > boxes[:, :2]).all(axis=1) & (found.scores >= 0.3))
            masks = tuple(_filled(image.shape[:2], *boxes[k].astype(int)) for k in kept)
            answers.append(Prediction(boxes[kept], found.scores[kept], found.labels[kept], masks))
        return answers

    def stuff(images: Sequence[Any]) -> list[Prediction]:
        return [Prediction(semantic=found.semantic) for found in segmenter(images)]

    things.classes, things.semantic_classes = detector.classes, ()  # type: ignore[attr-defined]
    names = tuple(STUFF.get(name, name) for name in segmenter.semantic_classes)
    stuff.classes, stuff.semantic_classes = (), names  # type: ignore[attr-defined]
    return Merged(sp.open_model(things), sp.open_model(stuff), MergeRule(score=0.3), detector.classes)


def _filled(size: tuple[int, int], x1: int, y1: int, x2: int, y2: int) -> RLE:
    mask = np.zeros(size, np.bool_)
    mask[y1:y2, x1:x2] = True
    return RLE.from_mask(mask)


def with_panoptic(compute: Callable[[str, str], Any], true: Path, said: Path) -> Numbers:
    with contextlib.redirect_stdout(io.StringIO()):
        found = compute(str(true), str(said))
    groups = {"All": "", "Things": " things", "Stuff": " stuff"}
    return {
        f"{kind.upper()}{words}": found[group][kind]
        for group, words in groups.items()
        for kind in ("pq", "sq", "rq")
    }


def map_oracle(model: Any, data: Any, text: str) -> Numbers:
    """ECE by torchmetrics and the Brier score of every fourth pixel's predicted class, predicted again."""
    labels = np.array(match_classes(model.semantic_classes, data.semantic_classes).labels)
    sure, right = [], []
    for i in range(len(data)):
        sample = corruptions.apply(data[i], text, seed=0)
        (found,) = model([sample.image])
        true = sample.truth.semantic.labels[::STRIDE, ::STRIDE]
        counted = true != sample.truth.semantic.ignore
        sure.append(found.confidence[counted].astype(np.float64))
        right.append(labels[found.semantic[::STRIDE, ::STRIDE].astype(int)][counted] == true[counted])
    scores, hits = np.concatenate(sure), np.concatenate(right)
    return {
        "ECE": _ece(scores.tolist(), hits.tolist(), bins=15),
        "Brier": float(np.mean((scores - hits) ** 2)),
    }


# The table


def compared(shared: Path, folder: Path) -> Iterator[tuple[str, str, str, dict[str, float]]]:
    """What was measured, on what, by whom, and the largest difference by condition."""
    data, models = shared / "data", shared / "models"
    corrupted = CONDITIONS[1:]
    boxes = sp.run(
        f"onnx:{models}/yolox_nano_416_coco.onnx", f"coco:{data}/coco/instances_val2017.json,masks=false",
        conditions=corrupted, engine="local", out=folder / "boxes",
    )  # fmt: skip
    ours = boxes.score()
    true = next(iter(export_truth(boxes, folder / "true").values()))
    export_coco(boxes, CONDITIONS, folder / "said")
    each = {text: Boxes(true, folder / "said" / f"{text}.json") for text in CONDITIONS}
    on = f"YOLOX-nano, {ours.images} photographs of COCO val2017"
    for name, oracle in (
        ("pycocotools", with_pycocotools), ("tidecv 1.0.1", with_tidecv), ("hotcoco 1.3", with_hotcoco),
        ("torchmetrics, matched by pycocotools", with_torchmetrics),
        ("the definitions in plain loops", by_definition),
    ):  # fmt: skip
        yield _row(on, name, ours, {text: oracle(each[text], each["clean"]) for text in CONDITIONS})

    whole = sp.run(
        panoptic_model(models), f"panoptic:{data}/coco_panoptic/panoptic_val2017.json", conditions=corrupted,
        engine="local", out=folder / "panoptic",
    )  # fmt: skip
    ours = whole.score(classes="all")
    true = next(iter(export_panoptic_truth(whole, folder / "segments").values()))
    export_panoptic(whole, CONDITIONS, folder / "merged")
    evaluators = {"hotcoco 1.3": hotcoco.panoptic.pq_compute}
    with contextlib.suppress(ImportError):
        from panopticapi.evaluation import pq_compute

        evaluators = {"panopticapi": pq_compute, **evaluators}
    on = f"YOLOX-nano and DeepLab, merged, {ours.images} photographs of COCO panoptic"
    for name, compute in evaluators.items():
        theirs = {
            text: with_panoptic(compute, true, folder / "merged" / f"{text}.json") for text in CONDITIONS
        }
        yield _row(on, name, ours, theirs)

    network, photos = "builtin:street-context", f"camvid:{data}/camvid"  # the DeepLabs give no confidence
    maps = sp.run(network, photos, conditions=corrupted, engine="local", out=folder / "maps")
    ours, model, dataset = maps.score(), sp.open_model(network), sp.open_dataset(photos)
    theirs = {text: map_oracle(model, dataset, text) for text in CONDITIONS}
    on = f"`street-context`, {ours.images} frames of CamVid"
    yield _row(on, "torchmetrics; mean of squares", ours, theirs)


def _row(on: str, name: str, ours: Any, theirs: dict[str, Numbers]) -> tuple[str, str, str, dict[str, float]]:
    measures = list(theirs["clean"])
    apart = {
        text: max(abs(ours.score(measure, text) - value) for measure, value in found.items())
        for text, found in theirs.items()
    }
    print(on, name, {m: round(100 * ours.score(m), 3) for m in measures}, apart, flush=True)
    return on, name, ", ".join(measures), apart


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shared", type=Path, help="the folder that holds data/ and models/")
    asked = parser.parse_args()
    lines = [
        f"| on | evaluator | measures | {' | '.join(CONDITIONS)} |",
        "|---|---|---|" + "---|" * len(CONDITIONS),
    ]
    for on, name, measures, apart in compared(asked.shared.resolve(), RUNS):
        lines.append(
            f"| {on} | {name} | {measures} | {' | '.join(_power(apart[text]) for text in CONDITIONS)} |"
        )
    write_part(PAGE, "oracles", "\n".join(lines))


def _power(value: float) -> str:
    """
    >>> _power(4.4e-16), _power(0.0)
    ('4 · 10⁻¹⁶', '0')
    """
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(value))
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value / 10**exponent:.0f} · 10{raised}"


if __name__ == "__main__":
    main()
