"""Whether a run folder holds what was written, and is about the images that are there now."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc

from stormproof.core.condition import corruption_of
from stormproof.core.errors import StoreError, some
from stormproof.datasets.content import content_of, has_files, stored_content
from stormproof.datasets.dataset import Dataset
from stormproof.results.store.parts import (
    DamagedPart,
    check_part,
    held_contents,
    part_path,
    part_paths,
    read_part,
)
from stormproof.results.store.record import RunRecord
from stormproof.results.store.schema import DETECTION, KEY

_LIGHT = (*KEY, "image", "recipe")
_DEEP = (*DETECTION, "semantic_values")


def problems(
    run: Path, record: RunRecord, dataset: Dataset | None = None, *, deep: bool = False
) -> Iterator[StoreError]:
    """What is wrong with the parts of a run, one error for each part that is not right.

    Every part is in its place, its seal fits, its rows are this run's, and its cells follow one another. With
    the dataset, images have the names of their indices; `deep` looks at every value that has a range.
    """
    for path in part_paths(run):
        try:
            _check(path, run, record, dataset, deep=deep)
        except StoreError as error:
            yield error


def check_run(run: Path, record: RunRecord, dataset: Dataset | None = None) -> None:
    """Refuse a run that `problems` finds anything wrong with."""
    for error in problems(run, record, dataset):
        raise error


def changed_images(run: Path, record: RunRecord, dataset: Dataset) -> list[str]:
    """Images that are not what the run read, by name.

    Images that are not here cannot be compared. Where they are not files, the first one speaks for all:
    making every one of them again would take as long as the run.
    """
    files, changed = has_files(dataset), []
    for path in part_paths(run):
        for index, content in held_contents(path, record.key).items():
            now = stored_content(dataset, index) if files else _made(dataset, index)
            if now not in (None, content):
                changed.append(dataset.ids[index])
            if not files:
                return changed
    return changed


def check_images(run: Path, record: RunRecord, dataset: Dataset) -> None:
    """Refuse to go on with, or to score, a run on other pixels than it began with."""
    if record.copies is not None:
        return  # what was read are the copies
    changed = changed_images(run, record, dataset)
    if changed:
        raise StoreError(
            f"{run} was run on other pixels: {some(changed)} of {record.dataset.name} changed since. "
            "Restore the images, or run again into another folder."
        )


def unverified(record: RunRecord) -> str:
    """A notice about runs of earlier versions, which say nothing to compare with; nothing for others."""
    if record.sealed:
        return ""
    return "This run was made before parts were sealed: its predictions and images cannot be verified."


def _made(dataset: Dataset, index: int) -> str | None:
    try:
        return content_of(dataset, index, dataset[index].image)
    except Exception:  # an image that cannot be made any more is said where it is needed
        return None


def _check(path: Path, run: Path, record: RunRecord, dataset: Dataset | None, *, deep: bool) -> None:
    check_part(path, record.key, sealed=record.sealed)
    table = read_part(path, record.key, _LIGHT)
    cells = list(zip(*(table[name].to_pylist() for name in KEY), strict=True))
    if any(one >= two for one, two in pairwise(cells)):
        raise DamagedPart(path, "its cells are not in order, or occur twice")
    if cells and path != part_path(run, cells[0][0] // record.chunk):
        raise DamagedPart(path, f"it holds image {cells[0][0]}, which belongs in another part")
    if cells and cells[-1][0] // record.chunk != cells[0][0] // record.chunk:
        raise DamagedPart(path, f"it holds image {cells[-1][0]}, which belongs in another part")
    if dataset is not None:
        _check_names(
            path, dict(zip(table["index"].to_pylist(), table["image"].to_pylist(), strict=True)), dataset
        )
    found = zip(table["condition"].to_pylist(), table["recipe"].to_pylist(), strict=True)
    for text, version in set(found):
        name = corruption_of(text)
        if record.sealed and text not in record.conditions:
            raise DamagedPart(path, f"it holds {text}, which the run does not have")
        if version != record.recipes.get(name, 0):
            raise DamagedPart(path, f"{text} was made by version {version} of its recipe")
    if deep:
        _check_values(path, record)


def _check_names(path: Path, names: dict[int, str], dataset: Dataset) -> None:
    for index, name in names.items():
        if index >= len(dataset) or dataset.ids[index] != name:
            right = dataset.ids[index] if index < len(dataset) else "none"
            raise DamagedPart(path, f"it calls image {index} {name!r}, the dataset {right!r}")


def _check_values(path: Path, record: RunRecord) -> None:
    table = read_part(path, record.key, _DEEP)
    lengths = [pc.list_value_length(table[name]) for name in DETECTION[:3]]
    if not all(pc.all(pc.equal(lengths[0], other)).as_py() in (True, None) for other in lengths[1:]):
        raise DamagedPart(path, "boxes, scores and labels are not as many as each other")
    boxes = pc.list_flatten(pc.list_flatten(table["boxes"]))
    for what, values in (("a box", boxes), ("a score", pc.list_flatten(table["scores"]))):
        if not pc.all(pc.is_finite(values)).as_py() and len(values):
            raise DamagedPart(path, f"{what} is not finite")
    known = (
        ("labels", len(record.model.classes or record.dataset.classes)),
        ("semantic_values", len(record.model.semantic_classes or record.dataset.semantic_classes)),
    )
    for column, classes in known:
        values = pc.list_flatten(table[column])
        if classes and len(values) and not 0 <= pc.min(values).as_py() <= pc.max(values).as_py() < classes:
            raise DamagedPart(path, f"a label is out of range (there are {classes} classes)")
