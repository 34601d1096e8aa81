"""A run's predictions in the formats of others: COCO results, label map PNGs; one per condition."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyarrow.compute as pc

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.core.files import make_folder, sweep, sweep_below, unlinked, whole_file, write_text
from stormproof.core.imagefile import write_image
from stormproof.core.masks import compress
from stormproof.corruptions import find, truth_under
from stormproof.datasets.coco import image_id, write_truth
from stormproof.results.store.schema import DETECTION, SEMANTIC, label_map

if TYPE_CHECKING:
    from stormproof.results.run import Run

CLASSES = "classes.txt"
_UNSAFE = re.compile(r"[%/]" if os.name == "posix" else r'[%/\\:*?"<>|]')


def folder_name(condition: str) -> str:
    """A condition as a file or folder name: as it is written, but for what file systems do not take.

    >>> folder_name('fog@3[on="traffic light"]'), folder_name("frost@3[textures=my/frost]")
    ('fog@3[on="traffic light"]', 'frost@3[textures=my%2Ffrost]')
    """
    return _UNSAFE.sub(lambda found: quote(found[0], safe=""), condition)


def export_coco(
    run: Run, conditions: Sequence[str], destination: Path, category_ids: Sequence[int] | None
) -> list[Path]:
    """COCO results JSON, one file per condition: boxes as x, y, width, height, masks as compressed RLE.

    `category_ids` are the numbers that stand for the labels as the run holds them; without them the labels
    stay as they are.
    """
    if run.has("semantic_runs") and not run.has_objects:
        raise InvalidOption(f"{run.folder} holds label maps and no objects; export it with --format png.")
    make_folder(destination)
    written = []
    for condition in conditions:
        path = destination / f"{folder_name(condition)}.json"
        sweep(path)
        with whole_file(path) as file:
            _write_list(file, _results(run, condition, category_ids))
        written.append(path)
    return written


def export_png(run: Run, conditions: Sequence[str], destination: Path, classes: Sequence[str]) -> list[Path]:
    """Label maps as 8-bit PNG, a folder per condition, in the model's classes, named in `classes.txt`."""
    if not run.has("semantic_runs"):
        raise InvalidOption(f"{run.folder} holds no label maps; export it with --format coco.")
    written = []
    for condition in conditions:
        folder = make_folder(unlinked(destination / folder_name(condition)))
        sweep_below(folder)
        for row in _rows(run, condition, SEMANTIC):
            if row["semantic_runs"] is None:
                raise InvalidOption(
                    f"{run.folder}: there is no label map of {row['image']} under {condition}."
                )
            labels = label_map(row["semantic_values"], row["semantic_runs"], (row["height"], row["width"]))
            if labels.max() > 255:
                raise InvalidOption(
                    f"{run.folder}: a label map holds {labels.max()}; PNG export takes up to 255."
                )
            path = _inside(folder, row["image"])
            make_folder(path.parent)
            write_image(path, labels.astype(np.uint8))
            written.append(path)
    if classes:
        sweep(destination / CLASSES)
        write_text(destination / CLASSES, "".join(f"{name}\n" for name in classes))
    return written


def export_truth(run: Run, destination: Path) -> dict[str, Path]:
    """The truth of the images that were run as COCO annotations: a file for clean images, and one for each
    condition that moves objects. Ids are those that `export_coco` uses."""
    dataset, seed = run.dataset, run.record.seed
    moved = [c for c in map(Condition.parse, run.record.conditions) if c.corruption
             and find(c.corruption).moves_labels(c)]  # fmt: skip
    written = {}
    for condition in (Condition(), *moved):
        truths = (
            truth_under(dataset.truth(k), dataset.size(k), condition, seed=seed, image_id=dataset.ids[k])
            for k in run.readable
        )
        path = destination / f"{folder_name(str(condition))}.json"
        write_truth(path, dataset, run.readable, truths)
        written[str(condition)] = path
    return written


def _inside(folder: Path, image: str) -> Path:
    """Where an image's map goes; ids may name folders, as those of nested datasets do."""
    path = folder / f"{image}.png"
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidOption(f"The image id {image!r} leads out of {folder}; rename the image.")
    return path


def _rows(run: Run, condition: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of one condition, part by part."""
    for path in run.parts:
        table = run.read(path, ("image", "condition", "height", "width", *columns))
        yield from table.filter(pc.equal(table["condition"], condition)).to_pylist()


def _results(run: Run, condition: str, category_ids: Sequence[int] | None) -> Iterator[dict[str, Any]]:
    for row in _rows(run, condition, DETECTION):
        image = image_id(row["image"])
        masks = row["masks"] or [None] * len(row["boxes"])
        sides = row.get("sides") or [(x2 - x1, y2 - y1) for x1, y1, x2, y2 in row["boxes"]]
        for (x, y, _, _), (width, height), score, label, counts in zip(
            row["boxes"], sides, row["scores"], row["labels"], masks, strict=True
        ):
            category = label if category_ids is None else category_ids[label]
            if category < 0:
                continue  # a class the dataset does not have
            result = {"image_id": image, "category_id": category,
                      "bbox": [x, y, width, height], "score": score}  # fmt: skip
            if counts is not None:
                size = [row["height"], row["width"]]
                result["segmentation"] = {"size": size, "counts": compress(counts, size)}
            yield result


def _write_list(file: IO[bytes], entries: Iterator[dict[str, Any]]) -> None:
    """A JSON list, one entry per line, never whole in memory."""
    before = b"[\n"
    for entry in entries:
        file.write(before + json.dumps(entry).encode())
        before = b",\n"
    file.write(b"[]\n" if before == b"[\n" else b"\n]\n")
