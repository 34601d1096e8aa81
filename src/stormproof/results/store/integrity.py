"""Check that a run folder is as it was written, and that its images have not changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import StoreError, StormproofError, first_few
from stormproof.core.sample import Ints
from stormproof.core.threads import map_in_threads
from stormproof.datasets.copies import copy_of
from stormproof.datasets.dataset import Dataset, abilities
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

    def problem(path: Path) -> StoreError | None:
        try:
            _check(path, run, dataset, deep=deep)
        except StoreError as error:
            return error
        return None

    return (error for error in run.map_parts(problem) if error is not None)


def check_parts(run: Run) -> None:
    """Refuse a run with any of `problems`."""
    for error in problems(run):
        raise error


def changed_images(run: Run) -> list[str]:
    """The names of images and copies that differ from what the run read.

    Files that no longer exist cannot be compared. Of images that are generated instead of read, only the
    first is compared, since generating all would take as long as the run; their context files all are.
    """
    dataset, copies = run.dataset, run.record.copies
    files, threads = has_files(dataset), 0 if abilities(dataset).thread_safe else 1
    cells = [cell for part in run.map_parts(lambda path: [*_contents(path, run)]) for cell in part]
    first = next((index for index, text, _ in cells if copies is None or text == "clean"), None)

    def change(cell: tuple[int, str, str]) -> str | None:
        index, text, content = cell
        name = dataset.ids[index]
        if copies is None or text == "clean":
            now = _content(dataset, index, content, files=files, first=index == first)
        else:
            now, name = _copy_content(Path(copies), dataset, index, text), f"{name} under {text}"
        return name if now not in (None, content) else None

    changed = map_in_threads(change, cells, threads=threads)
    return [*dict.fromkeys(name for name in changed if name is not None)]


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
        run.read(path, (*_DEEP, *run.further))


def _strictly_increases(first: Ints, second: Ints) -> bool:
    """Whether each pair (first, second) is larger than the one before, in dictionary order."""
    more, same = np.diff(first) > 0, np.diff(first) == 0
    return bool((more | (same & (np.diff(second) > 0))).all())
