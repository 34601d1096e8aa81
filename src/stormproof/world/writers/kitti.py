"""KITTI object detection: `training/image_2`, `label_2`, `calib`, `image_3` with stereo, and `depth_2`.

A rider and the bicycle are one Cyclist; bicycles without a rider, traffic lights and signs carry no label,
buses are Misc, and objects too small to count are DontCare. Depth is metres × 256 in 16 bits; 0 is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stormproof.core.sample import Camera, Instances
from stormproof.world.classes import BICYCLE, BUS, CAR, PERSON, TRUCK
from stormproof.world.samples import BASELINE, Rendered
from stormproof.world.writers.format import Format, Job, Record

TYPES = {CAR: "Car", TRUCK: "Truck", BUS: "Misc", PERSON: "Pedestrian"}
PARTLY, LARGELY = 0.1, 0.5  # occluded fractions from which KITTI's grades 1 and 2 begin


def _grade(occlusion: float) -> int:
    return 0 if occlusion < PARTLY else 1 if occlusion < LARGELY else 2


def _lines(rendered: Rendered) -> Iterator[str]:
    objects = rendered.sample.truth.instances
    assert objects is not None
    bikes = {
        group: k for k, group in enumerate(rendered.groups) if group >= 0 and objects.labels[k] == BICYCLE
    }
    for k, label in enumerate(objects.labels.tolist()):
        group = rendered.groups[k]
        if label == PERSON and group in bikes:
            yield _line("Cyclist", objects, [k, bikes[group]], rendered)
        elif label in TYPES:
            yield _line("Cyclist" if group >= 0 else TYPES[label], objects, [k], rendered)


def _line(kind: str, objects: Instances, members: list[int], rendered: Rendered) -> str:
    """One label: the union of its members' boxes, and the first member's place in space."""
    boxes = objects.boxes[members]
    box = " ".join(f"{v:.2f}" for v in (*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)))
    if objects.ignore[members].all():
        return f"DontCare -1 -1 -10 {box} -1 -1 -1 -1000 -1000 -1000 -10"
    solid = rendered.solids[members[0]]
    cut, hidden = float(objects.truncation[members].min()), _grade(float(objects.occlusion[members].min()))
    sizes = f"{solid.height:.2f} {solid.width:.2f} {solid.length:.2f}"
    at = " ".join(f"{v:.2f}" for v in solid.at)
    return f"{kind} {cut:.2f} {hidden} {solid.alpha:.2f} {box} {sizes} {at} {solid.turn:.2f}"


def _calibration(camera: Camera, baseline: float) -> str:
    """KITTI's matrices for cameras 0 to 3; 0 and 2 are the left one, 1 and 3 the right one."""

    def matrix(shift: float) -> str:
        rows = (camera.fx, 0, camera.cx, -camera.fx * shift, 0, camera.fy, camera.cy, 0, 0, 0, 1, 0)
        return " ".join(f"{v:.12e}" for v in rows)

    lines = [f"P{k}: {matrix(baseline if k in (1, 3) else 0.0)}" for k in range(4)]
    identity = " ".join(f"{v:.12e}" for v in np.eye(3).ravel())
    # A laser scanner's axes, x ahead, y left, z up, at the left camera's place.
    scanner = " ".join(f"{v:.12e}" for v in (0, -1, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0))
    still = " ".join(f"{v:.12e}" for v in np.eye(3, 4).ravel())
    return "\n".join(
        [*lines, f"R0_rect: {identity}", f"Tr_velo_to_cam: {scanner}", f"Tr_imu_to_velo: {still}", ""]
    )


def _scene(job: Job, index: int, rendered: Rendered) -> Record:
    name, context = f"{index:06d}", rendered.sample.context
    assert context.depth is not None
    assert context.camera is not None
    job.image("training/image_2", name, rendered.sample.image)
    if context.right is not None:
        job.image("training/image_3", name, context.right)
    job.file("training/label_2", f"{name}.txt").write_text("".join(f"{line}\n" for line in _lines(rendered)))
    job.file("training/calib", f"{name}.txt").write_text(
        _calibration(context.camera, context.camera.baseline or BASELINE)
    )
    metres = np.where(context.depth < 255.99, context.depth, 0) * np.float32(256)
    job.numbers("training/depth_2", name, np.rint(metres).astype(np.uint16))
    return {"name": name}


def _finish(job: Job, records: Sequence[Record]) -> None:
    job.file("ImageSets", f"{job.split}.txt").write_text("".join(f"{record['name']}\n" for record in records))


KITTI = Format(_scene, _finish)
