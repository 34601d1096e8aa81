"""Label maps: image files whose pixels are class numbers, not colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError
from stormproof.core.files import is_file
from stormproof.core.imagefile import image_size, opened
from stormproof.core.sample import SemanticMap, Truth

IGNORE = 255
_INDEX_MODES = {"L", "P", "1", "I;16", "I;16B", "I"}


def read_label_map(source: Path | bytes, name: str | None = None) -> npt.NDArray[np.int32]:
    """The numbers in a grey, palette or 16-bit label file, or in its bytes (`name` names it in errors)."""
    path = name or str(source)
    if isinstance(source, Path) and not is_file(source):
        raise DatasetError(path, "no such label map.")
    with opened(source, name) as image:
        if image.mode not in _INDEX_MODES:
            fix = "save class numbers as a grey or palette PNG"
            raise DatasetError(path, f"contains colours (mode {image.mode}), not class numbers; {fix}.")
        return np.array(image, dtype=np.int32)


def semantic_map(numbers: npt.NDArray[np.int32], index_of: Mapping[int, int], file: object) -> SemanticMap:
    """Class indices for the numbers in a file, by `index_of`; an unknown number is an error."""
    seen = np.unique(numbers)
    unknown = [int(number) for number in seen if int(number) not in index_of]
    if unknown:
        pixels = int(np.isin(numbers, unknown).sum())
        known = _ranges(index_of)
        raise DatasetError(file, f"{pixels} pixels have unknown class ids {unknown[:10]}; known: {known}.")
    lowest = int(seen[0])
    table = np.full(int(seen[-1]) - lowest + 1, IGNORE, np.uint8)
    for number in seen:
        table[int(number) - lowest] = index_of[int(number)]
    return SemanticMap(table[numbers - lowest], ignore=IGNORE)


@dataclass(frozen=True)
class LabelMaps:
    """One label file per image; `index_of` maps its numbers to class indices."""

    files: tuple[Path, ...]
    index_of: Mapping[int, int]

    def truth(self, index: int) -> Truth:
        file = self.files[index]
        return Truth(semantic=semantic_map(read_label_map(file), self.index_of, file))

    def size(self, index: int) -> tuple[int, int] | None:
        return image_size(self.files[index])


def identity_table(classes: Sequence[str], *ignored: int) -> dict[int, int]:
    """Numbers 0 … n−1 map to themselves, the ignored ones to IGNORE."""
    return {**{i: i for i in range(len(classes))}, **dict.fromkeys(ignored, IGNORE)}


def _ranges(numbers: Mapping[int, int]) -> str:
    """Numbers as ranges.

    >>> _ranges({0: 0, 1: 1, 2: 2, 255: 255})
    '0–2, 255'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
