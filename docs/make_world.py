"""Renew the images and numbers of docs/world.md: `python docs/make_world.py`.

Real datasets are measured where they lie beside the repository; without them their columns stay empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np

from stormproof.core.sample import Floats, Image, Instances
from stormproof.datasets import read_dataset
from stormproof.datasets.cityscapes import id_map, paint_ids
from stormproof.datasets.dataset import Dataset
from stormproof.world.classes import OBJECTS
from stormproof.world.formats import FORMATS, as_cityscapes
from stormproof.world.samples import Rendered, render

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data"
BEGIN, END = "<!-- numbers: made by make_world.py -->", "<!-- end of numbers -->"
COLOURS = np.array(
    [
        (240, 80, 60),
        (250, 190, 40),
        (60, 160, 250),
        (180, 90, 240),
        (60, 210, 130),
        (250, 120, 200),
        (255, 255, 90),
    ],
    np.uint8,
)  # one per object class


def sheet(images: Sequence[Image], columns: int, width: int) -> Image:
    """Images side by side, `columns` to a row, each `width` pixels wide."""
    height = round(images[0].shape[0] * width / images[0].shape[1])
    small = [cv2.resize(p, (width, height), interpolation=cv2.INTER_AREA) for p in images]
    rows = [np.hstack(small[k : k + columns]) for k in range(0, len(small), columns)]
    return np.vstack(rows)


def save(name: str, image: Image) -> None:
    cv2.imwrite(str(HERE / name), image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])


def objects_drawn(scene: Rendered) -> Image:
    """Masks tinted, boxes outlined, classes named."""
    image, objects = scene.sample.image.copy(), scene.sample.truth.instances
    assert objects is not None
    assert objects.masks is not None
    for label, mask in zip(objects.labels, objects.masks, strict=True):
        inside = mask.to_mask()
        image[inside] = image[inside] // 2 + COLOURS[label] // 2
    for label, small, box in zip(objects.labels, objects.ignore, objects.boxes.astype(int), strict=True):
        if not small:
            x1, y1, x2, y2 = box.tolist()
            colour = COLOURS[label].tolist()
            cv2.rectangle(image, (x1, y1), (x2 - 1, y2 - 1), colour, 1)
            if y2 - y1 > 36:
                cv2.putText(image, OBJECTS[label], (x1 + 2, y1 + 11), 0, 0.38, colour, 1, cv2.LINE_AA)
    return image


def semantics_drawn(scene: Rendered) -> Image:
    known = FORMATS["cityscapes"]
    return paint_ids(id_map(as_cityscapes(scene), known.classes, known.semantic_classes))


def depth_drawn(scene: Rendered) -> Image:
    """Near is bright, by the logarithm of metres; the sky is black."""
    depth = scene.sample.context.depth
    assert depth is not None
    near, far = np.log(2.0), np.log(150.0)
    grey = 1 - (np.log(np.clip(depth, 2, 150)) - near) / (far - near)
    coloured = cv2.applyColorMap((grey * 255).astype(np.uint8), cv2.COLORMAP_TURBO)[..., ::-1].copy()
    coloured[np.isinf(depth)] = 0
    return coloured


def shares(values: Floats, edges: Sequence[float]) -> list[str]:
    """What part of the values that are known lies between consecutive edges."""
    known = values[np.isfinite(values)]
    if not len(known):
        return ["–"] * (len(edges) - 1)
    parts = [((known >= low) & (known < high)).mean() for low, high in pairwise(edges)]
    return [f"{100 * part:.0f} %" for part in parts]


def statistics(objects: Iterable[Instances]) -> dict[str, str]:
    """Count, sizes, occlusion and truncation over objects that count."""
    every = [(o, ~(o.ignore | o.crowd)) for o in objects]
    count = np.array([keep.sum() for _, keep in every])
    area, hidden, cut = (
        np.concatenate([getattr(o, name)[keep] for o, keep in every])
        for name in ("area", "occlusion", "truncation")
    )
    sizes, dark = shares(area, (0, 32**2, 96**2, np.inf)), shares(hidden, (0, 0.1, 0.5, 1.01))
    return {
        "images": str(len(every)),
        "objects per image: mean, median, most": f"{count.mean():.1f}, {np.median(count):.0f}, {count.max()}",
        "small (under 32² px)": sizes[0],
        "medium": sizes[1],
        "large (from 96² px)": sizes[2],
        "occluded by under 10 %": dark[0],
        "by 10 to 50 %": dark[1],
        "by over 50 %": dark[2],
        "cut by the frame": shares(cut, (1e-9, 1.01))[0],
        "cut by over 15 %": shares(cut, (0.15, 1.01))[0],
    }


def measured(spec: str, count: int | None = None) -> dict[str, str]:
    dataset: Dataset = read_dataset(spec)
    truths = (dataset.truth(k).instances for k in range(count or len(dataset)))
    return statistics(o for o in truths if o is not None)


def table() -> str:
    columns = {
        "world:val 512×320": measured("world:val"),
        "world:val 1024×512": measured("world:val,size=1024x512"),
    }
    if (DATA / "coco").is_dir():
        columns["COCO val2017, a sample"] = measured(f"coco:{DATA}/coco/instances_val2017.json")
    if (DATA / "kitti_object").is_dir():
        columns["KITTI object, a sample"] = measured(f"kitti:{DATA}/kitti_object")
    names = list(columns)
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    lines += [f"| {row} | {' | '.join(columns[name][row] for name in names)} |" for row in columns[names[0]]]
    truths = [read_dataset("world:val").truth(k).instances for k in range(200)]
    labels = np.concatenate([t.labels[~t.ignore] for t in truths if t is not None])
    parts = 100 * np.bincount(labels, minlength=len(OBJECTS)) / len(labels)
    named = ", ".join(f"{name} {part:.0f} %" for name, part in zip(OBJECTS, parts, strict=True))
    return "\n".join([*lines, "", f"Classes in world:val: {named}."])


def main() -> None:
    save("world-scenes.jpg", sheet([render(0, "val", k).sample.image for k in range(24)], 4, 384))
    shown = [render(0, "val", k, width=768, height=480) for k in (1, 4, 11, 23)]
    rows = [(s.sample.image, objects_drawn(s), semantics_drawn(s), depth_drawn(s)) for s in shown]
    save("world-truth.jpg", sheet([image for row in rows for image in row], 4, 400))
    page = HERE / "world.md"
    text = page.read_text()
    start, stop = text.index(BEGIN) + len(BEGIN), text.index(END)
    page.write_text(f"{text[:start]}\n{table()}\n{text[stop:]}")


if __name__ == "__main__":
    main()
