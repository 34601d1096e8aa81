"""Which pixels were tested: what a run recorded of every image it read, and hashes of a sample of the images
that it gave to the model.

A run keeps no corrupted pixels. Those of the sample are made again, as the run made them; equal hashes mean
that two people tested equal pixels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.imagefile import read_image
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image, Sample
from stormproof.corruptions import apply
from stormproof.datasets.copies import copy_of
from stormproof.datasets.dataset import Dataset
from stormproof.results.store.completeness import readable_images
from stormproof.results.store.parts import part_paths, read_part
from stormproof.results.store.record import RunRecord

SAMPLE = 20  # images whose corrupted pixels are hashed, unless another number is asked for


def pixel_manifest(run: Path, record: RunRecord, dataset: Dataset, *, images: int = SAMPLE) -> dict[str, Any]:
    """A digest of what the run read, cell by cell, and hashes of some images under every condition."""
    readable = readable_images(run, record)
    chosen = sampled(record, dataset, readable, images)
    found: dict[str, dict[str, str]] = {text: {} for text in record.conditions}
    for index in chosen:
        sample = dataset[index]
        for text in record.conditions:
            found[text][sample.id] = _hash(_shown(sample, index, Condition.parse(text), record, dataset))
    return {
        "read": _read(run, record, dataset),
        "given": {
            "images": len(chosen),
            "of": len(readable),
            "chosen": "a sample: the images of the smallest random words keyed by (seed, image id)",
            "made": "again for this statement, as the run made them",
            "hash": "sha256 of the shape, as Python prints it, and the bytes of the pixels",
            "found": found,
        },
    }


def sampled(record: RunRecord, dataset: Dataset, readable: Sequence[int], images: int) -> list[int]:
    """Images chosen by identity, so that everybody hashes the same ones; in the dataset's order."""

    def word(index: int) -> int:
        return int(Draw.keyed(record.seed, dataset.ids[index]).words("pixel manifest", 1)[0])

    return sorted(sorted(readable, key=word)[:images])


def _shown(sample: Sample, index: int, condition: Condition, record: RunRecord, dataset: Dataset) -> Image:
    """What the model was shown: the image corrupted, or the copy that the run read instead."""
    if record.copies is not None and not condition.is_clean:
        return read_image(copy_of(Path(record.copies), dataset, index, condition))
    names = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
    return apply(sample, condition, seed=record.seed, **names).image


def _hash(image: Image) -> str:
    return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()


def _read(run: Path, record: RunRecord, dataset: Dataset) -> dict[str, Any] | None:
    """One digest of every cell's image as the run read it; None where an older run recorded nothing."""
    lines = []
    for path in part_paths(run):
        table = read_part(path, record.key, ("index", "condition", "content"))
        for index, text, content in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if index < record.images and text in record.conditions:
                if content is None:
                    return None
                lines.append((index, text, f"{dataset.ids[index]}\t{text}\t{content}\n"))
    total = hashlib.sha256()
    for *_, line in sorted(lines):
        total.update(line.encode())
    return {
        "cells": len(lines),
        "sha256": total.hexdigest(),
        "of": "lines of image id, condition and content (bytes of the file, or of the pixels where there is "
        "no file, and their 8-byte BLAKE2b), separated by tabs, by image and condition",
    }
