"""Shared by all readers: pairing annotation files with images, checking names and records, label maps."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError
from stormproof.core.files import folder, is_file, list_files, locate, read_bytes, read_lines
from stormproof.core.imagefile import IMAGE_SUFFIXES, MAX_PIXELS, image_size, open_image
from stormproof.core.sample import SemanticMap, Truth
from stormproof.datasets.dataset import FileDataset

IGNORE = 255  # in semantic maps: a pixel without truth
_INDEX_MODES = {"L", "P", "1", "I;16", "I;16B", "I"}
_PLAIN = re.compile(r"\w[\w.-]*", re.ASCII)  # a file name without folders


def named_folder(option: str, text: str, near: Path) -> Path:
    """The folder that an option of a spec names, as given or inside `near`."""
    try:
        return folder(locate(text, near), option)
    except DatasetError as error:
        raise DatasetError(f"{option}={text}", error.problem) from None


def list_images(root: Path) -> list[Path]:
    """All image files below `root`, in a fixed order."""
    return list_files(root, IMAGE_SUFFIXES)


def by_stem(paths: Iterable[Path], endings: Sequence[str] = ()) -> dict[str, Path]:
    """Files by stem, without the first of `endings` that matches; two files with one stem are an error.

    >>> by_stem([Path("d/a_depth.png")], ["_depth"])["a"].name
    'a_depth.png'
    """
    by_name: dict[str, Path] = {}
    for path in paths:
        ending = next((e for e in endings if path.stem.endswith(e)), "")
        key = path.stem.removesuffix(ending)
        if key in by_name:
            raise DatasetError(path, f"is a second file for {key!r}; the first is {by_name[key]}; keep one.")
        by_name[key] = path
    return by_name


def pair_files(
    images: Mapping[str, Path], labels: Mapping[str, Path], where: Path
) -> tuple[tuple[str, ...], tuple[Path, ...], tuple[Path, ...]]:
    """Sorted names with their images and label files; images without labels, and the reverse, are errors."""
    problems = [DatasetError(images[name], "has no label file.") for name in images.keys() - labels.keys()]
    problems += [DatasetError(labels[name], "has no image.") for name in labels.keys() - images.keys()]
    raise_all(sorted(problems, key=str))
    if not images:
        raise DatasetError(where, "contains no images.")
    names = tuple(sorted(images))
    return names, tuple(images[name] for name in names), tuple(labels[name] for name in names)


def split_files(
    names: Sequence[str], files: Mapping[str, Path], expected: Path, split: str | None
) -> tuple[Path, ...]:
    """The annotation files of a split; errors name missing files after the pattern of `expected`."""
    problems = [
        DatasetError(
            f"{expected.parent}/{name}{expected.suffix}", "no such annotation file.", f"split {split}"
        )
        for name in names
        if name not in files
    ]
    raise_all(problems)
    return tuple(files[name] for name in names)


def read_split(path: Path) -> tuple[str, ...]:
    """The names in a split file: the first word of each line."""
    return unique_names((line.split()[0] for line in read_lines(path)), path, "image")


def split_folder(root: Path, split: str) -> Path:
    """The folder of a split below `root`."""
    if not (root / split).is_dir():
        raise unknown_split(split, (entry.name for entry in root.iterdir() if entry.is_dir()), root)
    return root / split


def split_name(root: Path, split: str | None) -> str:
    """The name of a dataset in a folder, or of one of its splits."""
    return f"{root.name}-{split}" if split else root.name


def unknown_split(split: str, known: Iterable[str], where: Path) -> DatasetError:
    names = sorted(known)
    near = get_close_matches(split, names, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    listing = f"Splits found: {', '.join(names)}." if names else "No splits were found there."
    return DatasetError(where, f"no split {split!r}.{guess} {listing}")


def unique_names(names: Iterable[str], file: object, kind: str) -> tuple[str, ...]:
    """The names as a tuple; a name that occurs twice is an error. `kind` says what they name."""
    names, seen = tuple(names), set[str]()
    problems = []
    for name in names:
        if name in seen:
            problems.append(DatasetError(file, f"{kind} {name!r} occurs twice; every {kind} must be unique."))
        seen.add(name)
    raise_all(problems)
    return names


def class_names(names: Iterable[object], file: object) -> tuple[str, ...]:
    return unique_names((str(name).strip() for name in names), file, "class name")


def read_classes(path: Path) -> tuple[str, ...]:
    """The class names in a text file, one per line."""
    return class_names(read_lines(path), path)


def read_csv(path: Path) -> list[list[str]]:
    """The rows of a CSV file in UTF-8, without spaces around the values."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
        return [[value.strip() for value in row] for row in csv.reader(io.StringIO(text), strict=True)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(path, f"is not a CSV file in UTF-8: {error}.") from None


def read_table(path: Path, columns: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The rows of a CSV file that are not empty, each with its line; the first line must name `columns`, and
    no two rows may begin with the same value."""
    rows = read_csv(path)
    first = rows[0] if rows else []
    if first != [*columns]:
        raise DatasetError(path, f"needs the first line {','.join(columns)!r}, not {','.join(first)!r:.80}.")
    table = [(line, row) for line, row in enumerate(rows[1:], 2) if row]
    lines = {row[0]: line for line, row in reversed(table)}  # where each is first
    raise_all([DatasetError(path, f"lists {row[0]!r} a second time.", f"line {line}")
               for line, row in table if line > lines[row[0]]])  # fmt: skip
    return table


def raise_all(problems: Sequence[DatasetError]) -> None:
    """Raise the first problem, if there is one; it carries the others."""
    if problems:
        first = problems[0]
        raise DatasetError(first.file, first.problem, first.record, tuple(problems[1:]))


def expect_list(record: object, key: str, file: object) -> list[Any]:
    """`record[key]`, which must be a list."""
    value = record.get(key) if isinstance(record, Mapping) else None
    if not isinstance(value, list):
        raise DatasetError(file, f"has no list {key!r}; is this the right kind of annotation file?")
    return value


def require(record: object, key: str, file: object, where: str) -> Any:
    """`record[key]`, which the format requires."""
    if not isinstance(record, Mapping) or key not in record:
        raise DatasetError(file, f"has no {key!r}.", where)
    return record[key]


def is_number(value: object) -> bool:
    """Whether a JSON value can be a coordinate: a number, but not a boolean, NaN or 10⁴⁰⁰."""
    return type(value) in (int, float) and -1e15 < value < 1e15  # type: ignore[operator]


def are_corners(box: Sequence[float]) -> bool:
    """Whether x1, y1, x2, y2 are finite, with x1 ≤ x2 and y1 ≤ y2."""
    return all(map(isfinite, box)) and box[2] >= box[0] and box[3] >= box[1]


def is_coco_box(box: object) -> bool:
    """Whether a JSON value is a box x, y, width, height."""
    if not isinstance(box, list) or len(box) != 4:
        return False
    return all(map(is_number, box)) and min(box[2:]) >= 0


def flagged_fraction(flag: object) -> float:
    """The fraction that a flag such as `occluded` implies: 0 if it is false, else NaN (unknown)."""
    return 0.0 if flag is False else nan


def identifier(record: object, key: str, file: object, where: str) -> int | str:
    """`record[key]`, an id: a whole number or a string."""
    value = require(record, key, file, where)
    if type(value) is not str and not (type(value) is int and abs(value) < 1 << 63):
        raise DatasetError(file, f"{key} {value!r:.60} must be a whole number or a string.", where)
    return value


def checked_size(height: object, width: object, file: object, where: str = "") -> tuple[int, int]:
    """The height and width that a file states for an image. Huge sizes are refused, since masks of that size
    would be allocated."""
    if type(height) is not int or type(width) is not int or min(height, width) < 1:
        problem = f"height and width are {(height, width)!r:.80}; they must be whole numbers > 0."
        raise DatasetError(file, problem, where)
    if height * width > MAX_PIXELS:
        raise DatasetError(
            file, f"height × width is {height} × {width}; at most {MAX_PIXELS:,} pixels.", where
        )
    return height, width


def file_name(record: object, file: object, where: str, key: str = "file_name") -> Path:
    """The relative path in a record; a path that leads out of the folder is refused."""
    name = require(record, key, file, where)
    path = Path(name) if isinstance(name, str) and name and "\0" not in name else None
    if path is not None and _PLAIN.fullmatch(name):
        return path  # nearly all are plain names; this is faster
    if path is None or path.is_absolute() or ".." in path.parts:
        raise DatasetError(file, f"{key} {name!r} must be a path below the images folder.", where)
    return path


def read_label_map(source: Path | bytes, name: str | None = None) -> npt.NDArray[np.int32]:
    """The numbers in a grey, palette or 16-bit label file, or in its bytes (`name` names it in errors)."""
    path = name or str(source)
    if isinstance(source, Path) and not is_file(source):
        raise DatasetError(path, "no such label map.")
    with open_image(source, name) as image:
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


def map_dataset(
    name: str, root: Path, images: Path, maps: Mapping[str, Path], index_of: Mapping[int, int],
    classes: tuple[str, ...],
) -> FileDataset:  # fmt: skip
    """The images below a folder with their label maps, which are given by stem; each needs the other."""
    ids, files, labels = pair_files(by_stem(list_images(images)), maps, images)
    return FileDataset(
        name=name, root=root, ids=ids, images=files, labels=LabelMaps(labels, index_of), sources=labels,
        semantic_classes=classes,
    )  # fmt: skip


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
