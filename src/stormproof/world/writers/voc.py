"""Pascal VOC: `JPEGImages`, `Annotations`, `ImageSets`, `SegmentationClass`, `SegmentationObject`.

VOC knows persons, bicycles, cars and buses, and neither trucks, traffic lights nor stop signs: as in VOC,
those are background. Objects too small to count are `difficult`, and void (255) in the segmentations.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np

from stormproof.world.classes import OBJECTS
from stormproof.world.samples import Rendered
from stormproof.world.writers.format import Format, Job, Record

NUMBERS = {"person": 15, "bicycle": 2, "car": 7, "bus": 6}
VOID = 255
TRUNCATED, OCCLUDED = 0.15, 0.05  # fractions from which VOC's flags are set


def palette() -> list[int]:
    """VOC's colours: the bits of a number dealt out to red, green and blue, highest first."""
    return [
        sum(((number >> (3 * bit + channel)) & 1) << (7 - bit) for bit in range(3))
        for number in range(256)
        for channel in range(3)
    ]


def add(parent: ElementTree.Element, **values: object) -> None:
    """Give an element children of these names."""
    for tag, value in values.items():
        ElementTree.SubElement(parent, tag).text = str(value)


def _annotation(name: str, rendered: Rendered) -> ElementTree.Element:
    height, width, depth = rendered.sample.image.shape
    root = ElementTree.Element("annotation")
    add(root, folder="VOC2012", filename=name)
    add(
        ElementTree.SubElement(root, "source"),
        database="Stormproof world",
        annotation="Stormproof world",
        image="rendered",
    )
    add(ElementTree.SubElement(root, "size"), width=width, height=height, depth=depth)
    add(root, segmented=1)
    objects = rendered.sample.truth.instances
    assert objects is not None
    for k, (x1, y1, x2, y2) in enumerate(objects.boxes.astype(int).tolist()):
        label = OBJECTS[objects.labels[k]]
        if label in NUMBERS:
            found = ElementTree.SubElement(root, "object")
            add(
                found,
                name=label,
                pose="Unspecified",
                truncated=int(objects.truncation[k] > TRUNCATED),
                difficult=int(objects.ignore[k]),
                occluded=int(objects.occlusion[k] > OCCLUDED),
            )
            # VOC counts pixels from 1 and includes the last.
            add(ElementTree.SubElement(found, "bndbox"), xmin=x1 + 1, ymin=y1 + 1, xmax=x2, ymax=y2)
    return root


def _scene(job: Job, index: int, rendered: Rendered) -> Record:
    name = f"{job.split}_{index:06d}"
    file = job.image("JPEGImages", name, rendered.sample.image)
    tree = ElementTree.ElementTree(_annotation(file.name, rendered))
    ElementTree.indent(tree, "\t")
    tree.write(job.file("Annotations", f"{name}.xml"), encoding="utf-8")
    objects = rendered.sample.truth.instances
    assert objects is not None
    numbers = [NUMBERS.get(OBJECTS[label], 0) for label in objects.labels]
    classes = np.array(
        [0, *(VOID if skip and n else n for n, skip in zip(numbers, objects.ignore, strict=True))], np.uint8
    )
    order = np.cumsum([0, *(n > 0 for n in numbers)]) * (np.array([0, *numbers]) > 0)
    whole = np.where(classes == VOID, VOID, order % VOID).astype(np.uint8)
    job.numbers("SegmentationClass", name, classes[rendered.instance], palette())
    job.numbers("SegmentationObject", name, whole[rendered.instance], palette())
    return {"name": name, "classes": sorted({OBJECTS[label] for label in objects.labels})}


def _finish(job: Job, records: Sequence[Record]) -> None:
    names = "".join(f"{record['name']}\n" for record in records)
    for purpose in ("Main", "Segmentation"):
        job.file(f"ImageSets/{purpose}", f"{job.split}.txt").write_text(names)
    for label in NUMBERS:
        lines = (f"{r['name']} {'1' if label in r['classes'] else '-1':>2}\n" for r in records)
        job.file("ImageSets/Main", f"{label}_{job.split}.txt").write_text("".join(lines))


VOC = Format(_scene, _finish)
