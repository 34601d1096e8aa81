"""Five networks that others trained, on photographs, under imagenet-c."""

from __future__ import annotations

import csv
import io
from operator import itemgetter
from pathlib import Path

from parts import table
from results_pages.runs import (
    COCO,
    DEEPLAB,
    DEEPLAB_STREET,
    EFFICIENTDET,
    RESULTS,
    SSDLITE,
    YOLOX,
    ResultsRun,
    how_made,
)

from stormproof.report.sentences import change, share_kept, with_interval
from stormproof.results.aggregates import mean_of
from stormproof.results.documents import as_csv
from stormproof.results.scores import Scores

_REST = "--conditions imagenet-c --limit 40"
RUNS = (
    ResultsRun("yolox_nano", YOLOX, f"{COCO} {_REST}"),
    ResultsRun("ssdlite", SSDLITE, f"{COCO} {_REST}"),
    ResultsRun("efficientdet_lite0", EFFICIENTDET, f"{COCO} {_REST}"),
    ResultsRun("deeplab_voc", DEEPLAB, f"--data voc-seg:$DATA/voc2012 {_REST}"),
    ResultsRun("deeplab_cityscapes", DEEPLAB_STREET, f"--data camvid:$DATA/camvid {_REST}"),
)
DATASETS = {"deeplab_voc": "VOC 2012", "deeplab_cityscapes": "CamVid"}  # else COCO
COLUMNS = ("measure", "condition", "corruption", "severity", "value")
INTRODUCTION = """\
# Five networks under imagenet-c

Made by `make results`. Small networks that others trained, on a few dozen photographs: enough to see the
machinery work, too few to rank models by a point or two. All values in %. The other papers:
[kamann](kamann.md), [liu](liu.md), [pezzementi](pezzementi.md). `$CARDS` is `tests/models/cards`.

"""
POSE = """\
A pose network, not by `make results` but as [its page](../keypoints.md#a-real-network) says, on a GPU:

| network | scenes | measure | P | mPC | rPC |
| --- | --- | --- | --- | --- | --- |
| yolo11n-pose | 100 of the street | OKS AP | 10.9 | 8.2 | 75.2 |"""


def dataset_of(run: ResultsRun) -> str:
    return DATASETS.get(run.name, "COCO val2017")


def page() -> str:
    found = {run: run.percent() for run in RUNS}
    text = INTRODUCTION + table(
        ("network", "photographs", "measure", "P", "mPC", "rPC"),
        [
            (
                run.name, f"{run.scores.images} of {dataset_of(run)}", run.scores.headline,
                f"{row['clean']:.1f}", f"{row['mean']:.1f}", f"{100 * row['mean'] / row['clean']:.1f}",
            )
            for run, row in found.items()
        ],
    )  # fmt: skip
    text += f"\n\n{_pair()}\n\n{POSE}\n\nMean over severities of each corruption:\n\n"
    names = [name for name in found[RUNS[0]] if name not in ("clean", "mean")]
    rows = [(name, *(f"{row[name]:.1f}" for row in found.values())) for name in names]
    text += table(("corruption", *(run.name for run in RUNS)), rows)
    links = ", ".join(f"[{run.name}]({run.name}.csv)" for run in RUNS)
    text += f"\n\nEvery measure of every condition: {links}.\n\n"
    score = "stormproof score " + " ".join(f"runs/results/{run.name}" for run in RUNS)
    return text + how_made(RUNS, score)


def _pair() -> str:
    """Which differences between the first two detectors are clear, paired over the photographs."""
    ours, theirs = (run.opened.score(interval=True) for run in RUNS[:2])
    numbers = {"P": itemgetter("clean"), "mPC": mean_of, "rPC": share_kept}
    found = {name: change(theirs, ours, "AP", number) for name, number in numbers.items()}
    said = [
        f"{name} {with_interval(100 * each.interval.estimate, each, 100.0)}"
        for name, each in found.items()
        if each is not None
    ]
    return f"{RUNS[0].name} against {RUNS[1].name}, paired over the photographs: {', '.join(said)}."


def keep_cells() -> None:
    """Every measure of every condition as CSV; the rows of single classes would be ten times as many."""
    for run in RUNS:
        _keep(run.scores, RESULTS / f"{run.name}.csv")


def _keep(scores: Scores, target: Path) -> None:
    rows = [row for row in csv.DictReader(io.StringIO(as_csv(scores))) if not row["class"]]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
