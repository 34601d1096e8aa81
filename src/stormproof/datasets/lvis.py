"""What LVIS adds to COCO's format: the classes that each image was searched for, and their frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import DatasetError
from stormproof.core.federated import Federated
from stormproof.datasets.annotations import is_number

_FREQUENCIES = ("r", "c", "f")


def read_federated(
    images: Sequence[Mapping[str, Any]], categories: Sequence[Mapping[str, Any]], annotations: Sequence[Any],
    path: Path,
) -> Federated | None:  # fmt: skip
    """Of a file whose images list `neg_category_ids`; None for others."""
    if not any("neg_category_ids" in record for record in images):
        return None
    numbers = sorted(record["id"] for record in categories)
    label = {number: k for k, number in enumerate(numbers)}
    place = {record["id"]: k for k, record in enumerate(images)}
    searched = np.zeros((len(images), len(numbers)), np.bool_)
    exhaustive = np.ones_like(searched)
    for k, record in enumerate(images):
        for key, table, value in (
            ("neg_category_ids", searched, True), ("not_exhaustive_category_ids", exhaustive, False),
        ):  # fmt: skip
            listed = record.get(key, [])
            if not isinstance(listed, list) or not all(is_number(each) and each in label for each in listed):
                problem = f"{key} {listed!r:.60} must list numbers of the file's categories."
                raise DatasetError(path, problem, f"image {record['id']}")
            table[k, [label[number] for number in listed]] = value
    for row in annotations:
        searched[place[row["image_id"]], label[row["category_id"]]] = True
    stated = {record["id"]: record.get("frequency", "") for record in categories}
    bad = next((number for number, letter in stated.items() if letter not in _FREQUENCIES), None)
    if bad is not None:
        raise DatasetError(path, f"frequency {stated[bad]!r:.40} must be r, c or f.", f"category {bad}")
    return Federated(searched, exhaustive, tuple(stated[number] for number in numbers))
