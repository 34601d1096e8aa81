"""CamVid: `images` and `labels` of equal names, `classes.json`; eleven classes and a void.

As in CamVid, trucks and buses are cars, a rider with the bicycle is a bicyclist, traffic lights are signs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from stormproof.world.classes import PERSON, SEMANTIC
from stormproof.world.samples import Rendered
from stormproof.world.writers.format import Format, Job, Record

CLASSES = (
    "sky",
    "building",
    "pole",
    "road",
    "pavement",
    "tree",
    "signsymbol",
    "fence",
    "car",
    "pedestrian",
    "bicyclist",
    "unlabelled",
)
VOID = CLASSES.index("unlabelled")
NAMES = {
    "sidewalk": "pavement",
    "traffic sign": "signsymbol",
    "vegetation": "tree",
    "person": "pedestrian",
    "truck": "car",
    "bus": "car",
    "bicycle": "bicyclist",
}


def _scene(job: Job, index: int, rendered: Rendered) -> Record:
    truth = rendered.sample.truth
    assert truth.semantic is not None
    assert truth.instances is not None
    name = f"{job.split}_{index:06d}"
    job.image("images", name, rendered.sample.image)
    table = np.full(256, VOID, np.uint8)
    table[: len(SEMANTIC)] = [CLASSES.index(NAMES.get(name, name)) for name in SEMANTIC]
    riders = [
        k + 1 for k, group in enumerate(rendered.groups) if group >= 0 and truth.instances.labels[k] == PERSON
    ]
    labels = table[truth.semantic.labels]
    labels[np.isin(rendered.instance, riders)] = CLASSES.index("bicyclist")
    job.numbers("labels", name, labels)
    return {}


def _finish(job: Job, records: Sequence[Record]) -> None:
    content = {"classes": {str(k): name for k, name in enumerate(CLASSES)}, "ignore_index": VOID}
    job.file(".", "classes.json").write_text(json.dumps(content, indent=1))


CAMVID = Format(_scene, _finish)
