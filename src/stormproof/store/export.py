"""A run's predictions in the formats of others: COCO results, label map PNGs; one per condition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pyarrow.dataset as ds
from pycocotools import mask as coco_mask

from stormproof.errors import InvalidOption
from stormproof.imagefile import write_image
from stormproof.store.files import make_folder, whole_file
from stormproof.store.parts import part_paths
from stormproof.store.record import RunRecord
from stormproof.store.schema import DETECTION, SEMANTIC, label_map

Export = Callable[[Path, RunRecord, Path, Sequence[int]], list[Path]]


def folder_name(condition: str) -> str:
    """A condition as a file or folder name."""
    return quote(condition, safe="@[]=,+")


def export_coco(run: Path, record: RunRecord, destination: Path, category_ids: Sequence[int]) -> list[Path]:
    """COCO results JSON, one file per condition: boxes as x, y, width, height, masks as compressed RLE.

    `category_ids` are the numbers that stand for the labels as the run holds them.
    """
    make_folder(destination)
    written = []
    for condition in record.conditions:
        path = destination / f"{folder_name(condition)}.json"
        with whole_file(path) as file:
            _write_list(file, _results(run, condition, category_ids))
        written.append(path)
    return written


def export_png(run: Path, record: RunRecord, destination: Path, category_ids: Sequence[int]) -> list[Path]:
    """Label maps as 8-bit PNG in the model's own classes, a folder per condition."""
    written = []
    for condition in record.conditions:
        folder = make_folder(destination / folder_name(condition))
        for row in _rows(run, condition, SEMANTIC):
            if row["semantic_runs"] is None:
                raise InvalidOption(f"{run} holds no label maps; export it with --format coco.")
            labels = label_map(row["semantic_values"], row["semantic_runs"], (row["height"], row["width"]))
            if labels.max() > 255:
                raise InvalidOption(f"{run}: a label map holds {labels.max()}; PNG export takes up to 255.")
            path = folder / f"{quote(row['image'], safe='')}.png"
            write_image(path, labels.astype(np.uint8))
            written.append(path)
    return written


FORMATS: dict[str, Export] = {"coco": export_coco, "png": export_png}


def _rows(run: Path, condition: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of one condition, part by part."""
    for path in part_paths(run):
        wanted = ["image", "height", "width", *columns]
        yield from ds.dataset(path).to_table(wanted, filter=ds.field("condition") == condition).to_pylist()


def _results(run: Path, condition: str, category_ids: Sequence[int]) -> Iterator[dict[str, Any]]:
    for row in _rows(run, condition, DETECTION):
        image = int(row["image"]) if row["image"].isdecimal() else row["image"]
        masks = row["masks"] or [None] * len(row["boxes"])
        for (x1, y1, x2, y2), score, label, counts in zip(
            row["boxes"], row["scores"], row["labels"], masks, strict=True
        ):
            if category_ids[label] < 0:
                continue  # a class the dataset does not have
            result = {"image_id": image, "category_id": category_ids[label],
                      "bbox": [x1, y1, x2 - x1, y2 - y1], "score": score}  # fmt: skip
            if counts is not None:
                size = [row["height"], row["width"]]
                packed = coco_mask.frPyObjects({"size": size, "counts": counts}, *size)
                result["segmentation"] = {"size": size, "counts": packed["counts"].decode("ascii")}
            yield result


def _write_list(file: IO[bytes], entries: Iterator[dict[str, Any]]) -> None:
    """A JSON list, one entry per line, never whole in memory."""
    before = b"[\n"
    for entry in entries:
        file.write(before + json.dumps(entry).encode())
        before = b",\n"
    file.write(b"[]\n" if before == b"[\n" else b"\n]\n")
