"""COCO: `annotations/instances_val2017.json`, `val2017/000000000000.png`; masks as run lengths."""

from __future__ import annotations

import json
from collections.abc import Sequence

from stormproof.world.classes import OBJECTS
from stormproof.world.samples import Rendered
from stormproof.world.writers.format import Format, Job, Record

# COCO's own numbers for its names.
CATEGORIES = dict(zip(OBJECTS, (1, 2, 3, 6, 8, 10, 13), strict=True))
_GROUPS = {"person": "person", "traffic light": "outdoor", "stop sign": "outdoor"}


def _scene(job: Job, index: int, rendered: Rendered) -> Record:
    sample = rendered.sample
    name = job.image(f"{job.split}2017", f"{index:012d}", sample.image).name
    height, width = sample.image.shape[:2]
    objects = sample.truth.instances
    assert objects is not None
    assert objects.masks is not None
    annotations = []
    for k, (x1, y1, x2, y2) in enumerate(objects.boxes.tolist()):
        mask = objects.masks[k]
        annotations.append(
            {
                "image_id": index,
                "category_id": CATEGORIES[OBJECTS[objects.labels[k]]],
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "area": mask.area,
                "iscrowd": int(objects.ignore[k]),
                "segmentation": {"size": list(mask.size), "counts": mask.counts.tolist()},
            }
        )
    return {
        "image": {"id": index, "file_name": name, "width": width, "height": height, "license": 1},
        "annotations": annotations,
    }


def _finish(job: Job, records: Sequence[Record]) -> None:
    annotations = [a for record in records for a in record["annotations"]]
    content = {
        "info": {"description": "Stormproof world", "version": "1"},
        "licenses": [{"id": 1, "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}],
        "images": [record["image"] for record in records],
        "annotations": [{"id": k, **a} for k, a in enumerate(annotations, 1)],
        "categories": [
            {"id": number, "name": name, "supercategory": _GROUPS.get(name, "vehicle")}
            for name, number in CATEGORIES.items()
        ],
    }
    job.file("annotations", f"instances_{job.split}2017.json").write_text(json.dumps(content))


COCO = Format(_scene, _finish)
