"""Oriented boxes as DOTA's server takes them: a folder with a file `Task1_CLASS.txt` for each class.

P0706 0.91 2753 2408 2861 2385 2888 2468 2805 2502

A line is the image, the score and four corners.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from stormproof.core.errors import ModelError, UnknownName
from stormproof.core.files import read_lines

_BEGINNING = "Task1_"


def holds_task1(folder: Path) -> bool:
    """Whether a folder holds such results."""
    return folder.is_dir() and any(folder.glob(f"{_BEGINNING}*.txt"))


def read_task1(folder: Path, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """The rows of COCO results that say the same; `numbers` are the categories by name of the class."""
    rows = []
    for path in sorted(folder.glob(f"{_BEGINNING}*.txt")):
        name = path.stem.removeprefix(_BEGINNING)
        if name not in numbers:
            raise UnknownName(f"class of {path}", name, numbers, f"The dataset has {', '.join(numbers)}.")
        for line, text in enumerate(read_lines(path), 1):
            rows.append(_row(text, path, line) | {"category_id": numbers[name]})
    return rows


def _row(text: str, path: Path, line: int) -> dict[str, Any]:
    image, *words = text.split()
    try:
        score, *corners = map(float, words)
        if len(corners) != 8 or not all(map(isfinite, corners)):
            raise ValueError
    except ValueError:
        problem = f"{text!r:.80} must be an image, a score and eight coordinates."
        raise ModelError(f"{path}, line {line}: {problem}") from None
    return {"image_id": image, "score": score, "poly": corners}
