"""Plugins: the worked additions of docs/adding as the text of modules, and a dataset and a model for one."""

from __future__ import annotations

import re
from pathlib import Path

ADDING = Path(__file__).resolve().parents[2] / "docs" / "adding"


def read_block(page: str, pattern: str) -> str:
    """What a pattern finds in a page of docs/adding, without the marks of a diff."""
    block = re.search(pattern, (ADDING / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert block, f"{page} has no {pattern}"
    return re.sub(r"^\+", "", block[1], flags=re.MULTILINE)


F1 = read_block("metric.md", r"\+\+\+ b/src/stormproof/metrics/f1\.py\n@@[^\n]*\n(.*?)^```$")
MEDIAN = read_block("metric.md", r"^```python\n(.*?)^```$")
AREA = read_block("metric.md", r"^## A metric of label maps.*?^```python\n(.*?)^```$")
TIPS = read_block("task.md", r"@@ -0,0.*?@@\n(.*?)^```$")
TIPPED = '''
"""A dataset whose objects have tips, and a section of the report about them."""

import numpy as np

from stormproof.core.sample import Instances, Sample, Truth
from stormproof.core.table import Table
from stormproof.datasets.dataset import READERS, SampleDataset
from stormproof.report.elements import Section
from stormproof.report.sections import section


def boxes_of(k):
    low = np.random.default_rng(k).integers(0, 20, (2, 2)).astype(float)
    return np.concatenate([low, low + 20], axis=1)


@READERS.declare("vanes")
def open_vanes(main):
    """Eight images of two weather vanes each; the tip is at the upper left."""
    samples = []
    for k in range(8):
        pixels = np.random.default_rng(k).integers(0, 255, (48, 64, 3), np.uint8)
        pixels[0, 0] = k
        objects = Instances(boxes_of(k), [0, 1], data={"tips": boxes_of(k)[:, :2] + 2})
        samples.append(Sample(f"{k}.png", pixels, Truth(objects)))
    return SampleDataset.of(samples, classes=("cock", "arrow"), name="vanes")


@section(place=6)
def tips(scope):
    """How far off each model points."""
    rows = [(run.name, run.score("tip error")) for run in scope.runs if "tip error" in run]
    if not rows:
        return None
    table = Table("tips", "Mean distance of tips, clean", ("model", "pixels"), rows)
    return Section("tips", "Does it point?", "To the nearest tip.", tables=(table,))
'''
POINTER = '''
"""A model that finds tips, less exactly the less contrast there is, and none in the first image."""

import numpy as np

from stormproof.core.sample import Prediction


def boxes_of(k):
    low = np.random.default_rng(k).integers(0, 20, (2, 2)).astype(float)
    return np.concatenate([low, low + 20], axis=1)


def point(images):
    answers = []
    for image in images:
        k = int(np.argmin([np.abs(image.astype(int)[0, 0] - k).sum() for k in range(8)]))
        boxes = boxes_of(k)
        tips = boxes[:, :2] + 2 + 200 / image.std()
        answers.append(Prediction(boxes, [0.9, 0.8], [0, 1], data={"tips": tips}) if k else Prediction())
    return answers
'''
