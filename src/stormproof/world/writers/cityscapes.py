"""Cityscapes: `leftImg8bit`, `gtFine` (label ids, instance ids, polygons, colours), `disparity`, `camera`.

Riders and traffic lights get their own Cityscapes labels. Objects too small to count belong to a group:
their class, without a number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.world.classes import LIGHT, OBJECTS, PERSON, SEMANTIC, STOP
from stormproof.world.samples import BASELINE, Rendered
from stormproof.world.writers.format import Format, Job, Record

CITY = "stormproof"
# name: id and colour, as Cityscapes has them.
LABELS = {
    "static": (4, (0, 0, 0)),
    "road": (7, (128, 64, 128)),
    "sidewalk": (8, (244, 35, 232)),
    "building": (11, (70, 70, 70)),
    "pole": (17, (153, 153, 153)),
    "traffic light": (19, (250, 170, 30)),
    "traffic sign": (20, (220, 220, 0)),
    "vegetation": (21, (107, 142, 35)),
    "sky": (23, (70, 130, 180)),
    "person": (24, (220, 20, 60)),
    "rider": (25, (255, 0, 0)),
    "car": (26, (0, 0, 142)),
    "truck": (27, (0, 0, 70)),
    "bus": (28, (0, 60, 100)),
    "bicycle": (33, (119, 11, 32)),
}
COUNTED = ("person", "rider", "car", "truck", "bus", "bicycle")


def _names(rendered: Rendered) -> list[str]:
    """Every object's Cityscapes class."""
    objects = rendered.sample.truth.instances
    assert objects is not None
    special = {STOP: "traffic sign", LIGHT: "traffic light"}
    return [
        "rider" if label == PERSON and group >= 0 else special.get(label, OBJECTS[label])
        for label, group in zip(objects.labels.tolist(), rendered.groups, strict=True)
    ]


def instance_ids(rendered: Rendered) -> npt.NDArray[np.uint16]:
    """Label id × 1000 + number where objects are counted, else the label id."""
    truth = rendered.sample.truth
    assert truth.instances is not None
    assert truth.semantic is not None
    stuff = np.full(256, LABELS["static"][0], np.uint16)
    stuff[: len(SEMANTIC)] = [LABELS[name][0] for name in SEMANTIC]
    seen = dict.fromkeys(COUNTED, 0)
    things = [0]
    for name, small in zip(_names(rendered), truth.instances.ignore, strict=True):
        number = LABELS[name][0]
        if name in COUNTED and not small:
            things.append(number * 1000 + seen[name])
            seen[name] += 1
        else:
            things.append(number)
    own = np.array(things, np.uint16)[rendered.instance]
    return np.where(rendered.instance > 0, own, stuff[truth.semantic.labels])


def _polygons(ids: npt.NDArray[np.uint16]) -> Record:
    """Outlines of every region, the largest first: what lies in a region's hole is drawn after it."""
    by_id = {number: name for name, (number, _) in LABELS.items()}
    found = []
    for value in np.unique(ids).tolist():
        name = by_id[value // 1000 if value >= 1000 else value]
        outlines, _ = cv2.findContours(
            (ids == value).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
        )
        group = "group" if value < 1000 and name in COUNTED else ""
        found += [(cv2.contourArea(o), name + group, o[:, 0].tolist()) for o in outlines]
    found.sort(key=lambda item: -item[0])
    objects = [{"label": name, "polygon": points} for _, name, points in found if len(points) >= 3]
    return {"imgHeight": ids.shape[0], "imgWidth": ids.shape[1], "objects": objects}


def _scene(job: Job, index: int, rendered: Rendered) -> Record:
    name = f"{CITY}_{index // 1000:06d}_{index % 1000:06d}"
    sample, context = rendered.sample, rendered.sample.context
    assert context.depth is not None
    assert context.camera is not None
    job.image(f"leftImg8bit/{job.split}/{CITY}", f"{name}_leftImg8bit", sample.image)
    if context.right is not None:
        job.image(f"rightImg8bit/{job.split}/{CITY}", f"{name}_rightImg8bit", context.right)
    truth = f"gtFine/{job.split}/{CITY}"
    ids = instance_ids(rendered)
    labels = np.where(ids >= 1000, ids // 1000, ids).astype(np.uint8)
    colours = np.zeros((256, 3), np.uint8)
    for number, colour in LABELS.values():
        colours[number] = colour
    job.numbers(truth, f"{name}_gtFine_instanceIds", ids)
    job.numbers(truth, f"{name}_gtFine_labelIds", labels)
    job.numbers(truth, f"{name}_gtFine_color", colours[labels])
    job.file(truth, f"{name}_gtFine_polygons.json").write_text(json.dumps(_polygons(ids)))
    baseline = context.camera.baseline or BASELINE
    disparity = np.float32(context.camera.fx * baseline) / context.depth
    coded = np.minimum(disparity * 256 + 1, 65535).astype(np.uint16)  # 0 would be "no measurement"
    job.numbers(f"disparity/{job.split}/{CITY}", f"{name}_disparity", coded)
    camera = {
        "extrinsic": {
            "baseline": baseline,
            "pitch": 0.0,
            "roll": 0.0,
            "x": 0.0,
            "y": 0.0,
            "yaw": 0.0,
            "z": 0.0,
        },
        "intrinsic": {
            "fx": context.camera.fx,
            "fy": context.camera.fy,
            "u0": context.camera.cx,
            "v0": context.camera.cy,
        },
    }
    job.file(f"camera/{job.split}/{CITY}", f"{name}_camera.json").write_text(json.dumps(camera, indent=4))
    return {}


def _finish(job: Job, records: Sequence[Record]) -> None:
    """Cityscapes has no file about all scenes."""


CITYSCAPES = Format(_scene, _finish)
