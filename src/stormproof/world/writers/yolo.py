"""YOLO: `data.yaml`, `images/val`, `labels/val`; a line per object: class, box as fractions of the image.

Objects too small to count are left out, since the format cannot excuse them.
"""

from __future__ import annotations

from collections.abc import Sequence

from stormproof.world.classes import OBJECTS
from stormproof.world.samples import Rendered
from stormproof.world.writers.format import Format, Job, Record


def _scene(job: Job, index: int, rendered: Rendered) -> Record:
    name = f"{index:06d}"
    height, width = rendered.sample.image.shape[:2]
    objects = rendered.sample.truth.instances
    assert objects is not None
    job.image(f"images/{job.split}", name, rendered.sample.image)
    lines = []
    for label, small, (x1, y1, x2, y2) in zip(
        objects.labels, objects.ignore, objects.boxes.tolist(), strict=True
    ):
        if not small:
            box = ((x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height)
            lines.append(f"{label} {' '.join(f'{v:.9f}' for v in box)}\n")
    job.file(f"labels/{job.split}", f"{name}.txt").write_text("".join(lines))
    return {}


def _finish(job: Job, records: Sequence[Record]) -> None:
    names = "".join(f"  {k}: {name}\n" for k, name in enumerate(OBJECTS))
    job.file(".", "data.yaml").write_text(f"path: .\n{job.split}: images/{job.split}\nnames:\n{names}")


YOLO = Format(_scene, _finish)
