"""A dataset's truth as COCO annotations, which `coco:` reads back: boxes, masks, crowds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.core.files import make_folder, write_json
from stormproof.core.masks import compress
from stormproof.core.sample import Instances, Truth
from stormproof.corruptions import truth_under
from stormproof.datasets.content import image_path
from stormproof.datasets.dataset import Dataset


def write_annotations(
    path: Path,
    dataset: Dataset,
    indices: Sequence[int],
    truths: Iterable[Truth],
    names: Sequence[str] | None = None,
) -> None:
    """Write the truth of some images; `names` are their files', if they are not the dataset's own.

    Images and classes keep the numbers that the dataset's own files have for them, where they have some.
    """
    if not dataset.classes:
        raise InvalidOption(f"{dataset.name} has no classes of objects, so it has no COCO annotations.")
    numbers = getattr(dataset, "category_ids", ()) or range(1, len(dataset.classes) + 1)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for position, (index, truth) in enumerate(zip(indices, truths, strict=True)):
        height, width = dataset.size(index)
        own = _number(dataset.ids[index], index)
        name = names[position] if names is not None else file_name(dataset, index)
        images.append({"id": own, "file_name": name, "height": height, "width": width})
        for entry in entries(truth.instances, numbers):
            annotations.append({**entry, "id": len(annotations) + 1, "image_id": own})
    categories = [{"id": n, "name": name} for n, name in zip(numbers, dataset.classes, strict=True)]
    make_folder(path.parent)
    write_json(path, {"images": images, "annotations": annotations, "categories": categories})


def truths_under(
    dataset: Dataset, indices: Iterable[int], condition: Condition, seed: int
) -> Iterator[Truth]:
    """The truth of some images, moved where a condition moves it."""
    for index in indices:
        name, size = dataset.ids[index], dataset.size(index)
        yield truth_under(dataset.truth(index), size, condition, seed=seed, image_id=name)


def file_name(dataset: Dataset, index: int) -> str:
    """The name of an image's file, below the folder of images; the id as PNG where it is none."""
    path = image_path(dataset, index)
    return f"{PurePosixPath(dataset.ids[index])}.png" if path is None else path.name


def _number(name: str, index: int) -> int:
    """COCO's numbers are kept; other ids are counted."""
    is_number = name.isdecimal() and len(name) < 1000 and str(int(name)) == name
    return int(name) if is_number else index + 1


def entries(found: Instances | None, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Annotations of objects, without the image's number; `numbers` are those of the classes.

    COCO has one flag for what is excused, so ignored objects are written as crowds.
    """
    if found is None:
        return
    for k, ((x, y, _, _), sides) in enumerate(zip(found.boxes.tolist(), found.sides.tolist(), strict=True)):
        entry = {"id": int(found.ids[k]), "category_id": numbers[int(found.labels[k])],
                 "bbox": [x, y, *sides], "area": float(found.area[k]),
                 "iscrowd": int(found.crowd[k] or found.ignore[k])}  # fmt: skip
        if found.masks is not None:
            size = list(found.masks[k].size)
            entry["segmentation"] = {"size": size, "counts": compress(found.masks[k].counts.tolist(), size)}
        yield entry
