"""Check that a run folder is as it was written, and that its images have not changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import StoreError, StormproofError, first_few
from stormproof.core.sample import Ints
from stormproof.datasets.copies import copy_of
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.image_files import (
    content_of,
    context_content,
    file_content,
    has_files,
    stored_content,
)
from stormproof.results.store.parts import DamagedPart, encode_strings, part_path
from stormproof.results.store.schema import KEY, LIST_COLUMNS

if TYPE_CHECKING:
    from stormproof.results.run import Run

_LIGHT = (*KEY, "image", "recipe", "height", "width")
_DEEP = ("height", "width", *LIST_COLUMNS)


def problems(run: Run, *, deep: bool = False) -> Iterator[StoreError]:
    """One error for each damaged part of a run.

    Checked are the place of the part, its seal, that its rows belong to this run, and the order of its cells;
    if the dataset is available, the names of the images; with `deep`, every value that has a range.
    """
    try:
        dataset: Dataset | None = run.dataset
    except StormproofError:  # the predictions can be checked without their dataset
        dataset = None
    for path in run.parts:
        try:
            _check(path, run, dataset, deep=deep)
        except StoreError as error:
            yield error


def check_parts(run: Run) -> None:
    """Refuse a run with any of `problems`."""
    for error in problems(run):
        raise error


def changed_images(run: Run) -> list[str]:
    """The names of images and copies that differ from what the run read.

    Files that no longer exist cannot be compared. Of images that are generated instead of read, only the
    first is compared, since generating all would take as long as the run; their context files all are.
    """
    dataset, changed = run.dataset, dict[str, None]()
    files, now = has_files(dataset), dict[int, str | None]()
    for path in run.parts:
        for index, text, content in _contents(path, run):
            if run.record.copies is not None and text != "clean":
                if _copy_content(Path(run.record.copies), dataset, index, text) not in (None, content):
                    changed[f"{dataset.ids[index]} under {text}"] = None
                continue
            if index not in now:
                now[index] = _content(dataset, index, content, files=files, first=not now)
            if now[index] not in (None, content):
                changed[dataset.ids[index]] = None
    return list(changed)


def _contents(path: Path, run: Run) -> Iterator[tuple[int, str, str]]:
    """Image, condition and digest of what was read: of every cell if the run read copies, else only where the
    image or the digest differ from those of the cell before."""
    table = run.read(path, (*KEY, "content"))
    table = table.filter(table["content"].is_valid())
    index = np.asarray(table["index"])
    (texts, codes), (digests, which) = encode_strings(table["condition"]), encode_strings(table["content"])
    rows = np.arange(len(index)) if run.record.copies is not None else _first_rows(index, which)
    for at in rows.tolist():
        yield int(index[at]), texts[codes[at]], digests[which[at]]


def _first_rows(*columns: Ints) -> Ints:
    """The rows that differ in a column from the row before.

    >>> _first_rows(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 6])).tolist()
    [0, 2, 3]
    """
    changes = [np.diff(column, prepend=-1) != 0 for column in columns]
    return np.flatnonzero(np.logical_or.reduce(changes))


def check_images(run: Run) -> None:
    """Refuse to continue or to score a run whose images changed."""
    changed = changed_images(run)
    if changed:
        raise StoreError(
            f"{run.folder} was run on other pixels: {first_few(changed)} of {run.record.dataset.name} "
            "changed since. Restore the images, or run again into another folder."
        )


def _copy_content(copies: Path, dataset: Dataset, index: int, text: str) -> str | None:
    """The content of a copy as it is now."""
    try:
        return file_content(copy_of(copies, dataset, index, Condition.parse(text)))
    except (StormproofError, OSError):
        return None


def _content(dataset: Dataset, index: int, held: str, *, files: bool, first: bool) -> str | None:
    """The digest of an image as it is now. Of an image that is not made again, only the context is new."""
    try:
        if files:
            return stored_content(dataset, index)
        if first:
            return content_of(dataset, index, dataset[index].image)
        return held.partition("+")[0] + context_content(dataset, index)
    except Exception:  # reported when the image is needed
        return None


def _check(path: Path, run: Run, dataset: Dataset | None, *, deep: bool) -> None:
    record, table = run.record, run.read(path, _LIGHT)
    index = np.asarray(table["index"])
    (texts, codes), (names, owners) = encode_strings(table["condition"]), encode_strings(table["image"])
    if not _strictly_increases(index, np.argsort(np.argsort(np.array(texts, object)))[codes]):
        raise DamagedPart(path, "its cells are not in order, or occur twice")
    for place in index[[0, -1]].tolist() if len(index) else ():
        if path != part_path(run.folder, place // record.chunk):
            raise DamagedPart(path, f"it holds image {place}, which belongs in another part")
    if dataset is not None:
        for at in _first_rows(index, owners).tolist():
            place, name = int(index[at]), names[owners[at]]
            right = dataset.ids[place] if place < len(dataset) else None
            if name != right:
                raise DamagedPart(path, f"it calls image {place} {name!r}, the dataset {right or 'none'!r}")
    recipes = table["recipe"].to_pylist()
    for code, version in {*zip(codes.tolist(), recipes, strict=True)}:
        text = texts[code]
        if text not in record.conditions:
            raise DamagedPart(path, f"it holds {text}, which the run does not have")
        if version != record.recipe_version(Condition.parse(text)):
            raise DamagedPart(path, f"{text} was made by version {version} of its recipe")
    if deep:
        run.read(path, _DEEP)


def _strictly_increases(first: Ints, second: Ints) -> bool:
    """Whether each pair (first, second) is larger than the one before, in dictionary order."""
    more, same = np.diff(first) > 0, np.diff(first) == 0
    return bool((more | (same & (np.diff(second) > 0))).all())
