"""COCO instances: one JSON file of boxes, polygons, run-length masks and crowds, key points, oriented boxes.

The writer stores masks as run lengths. COCO has one flag for excused objects, so ignored objects are
written as crowds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from stormproof.core.errors import DatasetError, InvalidOption, InvalidTruth
from stormproof.core.files import locate, make_folder, read_json, write_text
from stormproof.core.masks import compress, polygon_ring, segmentation_mask
from stormproof.core.sample import RLE, Bools, Floats, Instances, Ints, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import (
    checked_size,
    class_names,
    expect_list,
    file_name,
    identifier,
    is_coco_box,
    is_number,
    named_folder,
    raise_all,
    require,
    unique_names,
)
from stormproof.datasets.dataset import READERS, Dataset, FileDataset, Labels, abilities
from stormproof.datasets.image_files import image_path
from stormproof.datasets.lvis import read_federated
from stormproof.datasets.object_data import category_fields, read_data, row_fields, truth_data
from stormproof.datasets.semantic_masks import BACKGROUND, MaskMaps, listed_classes
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer

_NUMBERS: set[type] = {int, float}
# The types in a valid annotation: its own, and those of id, image_id, category_id, bbox and area.
_KINDS: tuple[set[type], ...] = ({dict}, {int}, {int, str}, {int, str}, {list}, _NUMBERS)


@READERS.declare("coco")
def open_coco(
    main: str,
    *,
    images: str | None = None,
    masks: bool = True,
    maskless: str = "refuse",
    semantic: str | None = None,
    sigmas: str | None = None,
) -> FileDataset:
    """Open `instances_*.json` or `person_keypoints_*.json`; `images` is the folder of its images,
    `masks=false` reads boxes only. `maskless=excuse` excuses objects that have no mask where others have:
    what is predicted there counts neither way, as in a crowd.

    `semantic` names classes, as person or [person,car]: their masks also become a semantic map, with
    background as its first class. `sigmas` are those of OKS for the key points, as [0.1,0.05]; by default,
    COCO's.

    Truth needs no image files: without an images folder, everything but indexing works.
    """
    path = locate(main)
    content = read_json(path)
    records = expect_list(content, "images", path)
    categories = read_categories(content, path)
    numbers = [identifier(record, "id", path, f"image number {i}") for i, record in enumerate(records)]
    annotations = expect_list(content, "annotations", path)
    ids = unique_names(map(str, numbers), path, "image id")
    directory = image_folder(path, images)
    classes = class_names(categories.values(), path)
    if maskless not in ("refuse", "excuse"):
        raise InvalidOption(f"maskless={maskless}: write refuse or excuse.")
    if masks and maskless == "excuse":
        annotations = _excuse_maskless(annotations)
    table = index_annotations(annotations, records, [*categories], path, masks=masks, sigmas=sigmas)
    labels: Labels = table
    drawn = () if semantic is None else listed_classes(semantic, classes)
    if drawn:
        if table.segmentations is None:
            raise InvalidOption(
                f"semantic={semantic}: {path} has no masks to draw, or masks=false leaves them out."
            )
        places = {name: label for label, name in enumerate(drawn, start=1)}
        labels = MaskMaps(labels, tuple(places.get(name, 0) for name in classes))
    return FileDataset(
        name=path.stem,
        root=path.parent,
        ids=ids,
        images=tuple(directory / _image_file(record, path) for record in records),
        labels=labels,
        sources=(path,),
        classes=classes,
        semantic_classes=(BACKGROUND, *drawn) if drawn else (),
        category_ids=tuple(categories),
        federated=read_federated(records, expect_list(content, "categories", path), annotations, path),
        variant=_variant(drawn, masks=masks, excused=maskless == "excuse", sigmas=sigmas),
    )


def _variant(drawn: Sequence[str], *, masks: bool, excused: bool, sigmas: str | None) -> str:
    """What distinguishes these labels from all that the file holds."""
    kind = f"semantic {', '.join(drawn)}" if drawn else "" if masks else "boxes only"
    excuse = "maskless objects excused" if masks and excused else ""
    return "; ".join(filter(None, (kind, excuse, f"sigmas {sigmas}" if sigmas else "")))


def _image_file(record: Mapping[str, Any], path: Path) -> Path:
    """The image's file. Ground truth made only for scoring may not name it; then the path does not exist."""
    if "file_name" not in record:  # LVIS names the image's address on COCO's server
        return Path(str(record.get("coco_url", record["id"])).rpartition("/")[2])
    return file_name(record, path, f"image {record['id']}")


def read_categories(content: object, path: Path) -> dict[int, str]:
    """Class names by category id, sorted by id, which is the order of labels."""
    names: dict[int, str] = {}
    for record in expect_list(content, "categories", path):
        number = require(record, "id", path, "a category")
        if type(number) is not int or abs(number) >= 1 << 31:
            raise DatasetError(
                path, f"category id {number!r:.60} must be a whole number below 2³¹, such as 1."
            )
        if number in names:
            raise DatasetError(path, f"category id {number} occurs twice.", f"category {number}")
        name = require(record, "name", path, f"category {number}")
        if type(name) not in (str, int):
            raise DatasetError(path, f'name {name!r:.60} must be text, such as "car".', f"category {number}")
        names[number] = str(name)
    return dict(sorted(names.items()))


def image_folder(path: Path, images: str | None) -> Path:
    """The folder of images: as given, else one of the usual places around the annotation file."""
    if images is not None:
        return named_folder("images", images, path.parent)
    split = path.stem.rpartition("_")[2]
    places = (path.parent, path.parent.parent)
    usual = [place / name for name in (split, f"images/{split}", "images") for place in places]
    return next((place for place in usual if place.is_dir()), path.parent)


@dataclass(frozen=True, eq=False)
class Annotations:
    """All annotations of a file as columns, sorted by image; masks are decoded per image, on demand."""

    path: Path
    sizes: tuple[tuple[int, int] | None, ...]
    first: Ints  # the first row of each image, and the number of rows
    ids: Ints
    boxes: Floats
    sides: Floats  # widths and heights as the file states them
    labels: Ints
    crowd: Bools
    area: Floats  # NaN where the file does not state it
    segmentations: tuple[Any, ...] | None
    data: Mapping[str, Floats] = field(default_factory=dict)  # as forms declare it (`core.forms`)

    def size(self, index: int) -> tuple[int, int] | None:
        return self.sizes[index]

    def truth(self, index: int) -> Truth:
        begin, end = int(self.first[index]), int(self.first[index + 1])
        rows = slice(begin, end)
        masks = None
        if self.segmentations is not None:
            masks = tuple(self._mask(row, index) for row in range(begin, end))
        area = _fill_area(self.area[rows], self.sides[rows], masks)
        instances = Instances(
            self.boxes[rows], self.labels[rows], masks, crowd=self.crowd[rows], area=area, ids=self.ids[rows],
            sides=self.sides[rows], data={name: values[rows] for name, values in self.data.items()},
        )  # fmt: skip
        return Truth(instances)

    def all_objects(self) -> tuple[Ints, Instances] | None:
        """All objects with the index of the image of each; None if there are masks to decode."""
        if self.segmentations is not None:
            return None
        owners = np.repeat(np.arange(len(self.sizes)), np.diff(self.first))
        area = _fill_area(self.area, self.sides, None)
        return owners, Instances(
            self.boxes, self.labels, None, crowd=self.crowd, area=area, ids=self.ids, sides=self.sides,
            data=self.data,
        )  # fmt: skip

    def _mask(self, row: int, index: int) -> RLE:
        assert self.segmentations is not None
        size, where = self.sizes[index], f"annotation {self.ids[row]}"
        if size is None:
            raise DatasetError(self.path, "has a mask, but its image states no height and width.", where)
        try:
            return segmentation_mask(self.segmentations[row], *size)
        except InvalidTruth as error:
            raise DatasetError(self.path, str(error), where) from None


def index_annotations(
    annotations: list[Any], images: list[Any], categories: Sequence[int], path: Path, *, masks: bool,
    sigmas: str | None = None,
) -> Annotations:  # fmt: skip
    """Check every annotation and turn the rows of the file into columns."""
    place = {record["id"]: i for i, record in enumerate(images)}
    label = {category: i for i, category in enumerate(categories)}
    raise_all(_problems(annotations, place, label, path))
    owners = np.array([place[row["image_id"]] for row in annotations], np.int64)
    order = np.argsort(owners, kind="stable")
    rows = [annotations[i] for i in order.tolist()]
    boxes = np.array([row["bbox"] for row in rows], np.float64).reshape(-1, 4)
    return Annotations(
        path=path,
        sizes=tuple(_size(record, path) for record in images),
        first=np.searchsorted(owners[order], np.arange(len(images) + 1)),
        ids=np.array([row["id"] for row in rows], np.int64),
        boxes=np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]),
        sides=boxes[:, 2:],
        labels=np.array([label[row["category_id"]] for row in rows], np.int64),
        crowd=np.array([bool(row.get("iscrowd", 0)) for row in rows], np.bool_),
        area=np.array([row.get("area", np.nan) for row in rows], np.float64),
        segmentations=_segmentations(rows, path) if masks else None,
        data=truth_data(read_data(rows, path), {} if sigmas is None else {"sigmas": sigmas}),
    )


def _problems(
    annotations: list[Any], images: Mapping[Any, int], labels: Mapping[Any, int], path: Path
) -> list[DatasetError]:
    """All errors of the annotations, except for those of masks."""
    if _all_valid(annotations, images, labels):
        return []
    errors: list[DatasetError] = []
    seen: set[Any] = set()
    for i, row in enumerate(annotations):
        name = row.get("id") if isinstance(row, Mapping) else None
        where = f"annotation number {i}" if name is None else f"annotation {name}"
        problems = _row_problems(row, images, labels, seen)
        errors.extend(DatasetError(path, problem, where) for problem in problems)
        seen.add(name if isinstance(name, int) else None)
    return errors


def _all_valid(annotations: list[Any], images: Mapping[Any, int], labels: Mapping[Any, int]) -> bool:
    """Whether all annotations are valid; checking them together saves seconds for a million rows."""
    try:
        ids, owners, categories, boxes = (
            [row[key] for row in annotations] for key in ("id", "image_id", "category_id", "bbox")
        )
        areas = [row.get("area", 0) for row in annotations]
        kinds = [{*map(type, values)} for values in (annotations, ids, owners, categories, boxes, areas)]
        coordinates = np.array(boxes, np.float64).reshape(-1, 4)
        numbers = {type(value) for box in boxes for value in box}
        return (
            all(kind <= known for kind, known in zip(kinds, _KINDS, strict=True))
            and numbers <= _NUMBERS
            and all(len(box) == 4 for box in boxes)
            and len({*ids}) == len(ids)
            and all(abs(number) < 1 << 63 for number in ids)
            and {*owners} <= images.keys()
            and {*categories} <= labels.keys()
            and bool((np.abs(coordinates) < 1e15).all() and (coordinates[:, 2:] >= 0).all())
            and all(0 <= area < 1e15 for area in areas)
        )
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return False


def _row_problems(
    row: Any, images: Mapping[Any, int], labels: Mapping[Any, int], seen: set[Any]
) -> Iterator[str]:
    needed = ("id", "image_id", "category_id", "bbox")
    missing = [key for key in needed if not isinstance(row, Mapping) or key not in row]
    if missing:
        yield f"has no {', '.join(missing)}."
        return
    if type(row["id"]) is not int or abs(row["id"]) >= 1 << 63:
        yield f"id {row['id']!r:.60} is not a whole number."
    elif row["id"] in seen:
        yield f"id {row['id']!r} occurs twice."
    if not _among(row["image_id"], images):
        yield f"image_id {row['image_id']!r:.60} is not among the file's images."
    if not _among(row["category_id"], labels):
        written = "" if isinstance(row["category_id"], int) else "; it must be a whole number, such as 1"
        yield f"category_id {row['category_id']!r:.60} is not among the file's categories{written}."
    box = row["bbox"]
    if not is_coco_box(box):
        yield f"bbox {box!r:.80} must be x, y, width, height, finite, with width and height ≥ 0."
    area = row.get("area", 0)
    if not is_number(area) or area < 0:
        yield f"area {area!r:.40} must be a finite number ≥ 0."


def _among(value: object, known: Mapping[Any, int]) -> bool:
    return isinstance(value, int | str) and value in known


def _size(record: Mapping[str, Any], path: Path) -> tuple[int, int] | None:
    size = record.get("height"), record.get("width")
    if size == (None, None):
        return None
    return checked_size(*size, path, f"image {record['id']}")


def _segmentations(rows: list[Any], path: Path) -> tuple[Any, ...] | None:
    """The segmentation of each row, compactly; None if the file has none."""
    lacking = [row for row in rows if not row.get("segmentation")]
    if len(lacking) == len(rows):
        return None
    problem = (
        "has no segmentation, but others have; add it, excuse such objects with maskless=excuse, or read "
        "boxes only with masks=false."
    )
    problems = [DatasetError(path, problem, f"annotation {row['id']}") for row in lacking]
    kept: list[Any] = []
    for row in rows:
        shape = row.get("segmentation")
        try:  # a list of floats takes four times the memory of an array
            kept.append([polygon_ring(ring) for ring in shape] if isinstance(shape, list) else shape)
        except InvalidTruth as error:
            problems.append(DatasetError(path, str(error), f"annotation {row['id']}"))
    raise_all(problems)
    return tuple(kept)


def _excuse_maskless(rows: list[Any]) -> list[Any]:
    """Rows without a mask become crowds of the size of their box, where other rows have masks."""
    shapes = [isinstance(row, Mapping) and bool(row.get("segmentation")) for row in rows]
    if not any(shapes):
        return rows
    return [
        row if shaped or not isinstance(row, Mapping) or not is_coco_box(row.get("bbox"))
        else {**row, "segmentation": [_box_ring(*row["bbox"])], "iscrowd": 1}
        for row, shaped in zip(rows, shapes, strict=True)
    ]  # fmt: skip


def _box_ring(x: float, y: float, width: float, height: float) -> list[float]:
    return [x, y, x + width, y, x + width, y + height, x, y + height]


def _fill_area(stated: Floats, sides: Floats, masks: tuple[RLE, ...] | None) -> Floats:
    """The stated areas; where there is none, that of the mask, or else of the box."""
    if not np.isnan(stated).any():
        return stated
    own = sides.prod(axis=1) if masks is None else np.array([mask.area for mask in masks], np.float64)
    return np.where(np.isnan(stated), own, stated)


def category_ids(dataset: Dataset | Destination) -> tuple[int, ...]:
    """The number of each class in COCO files: the dataset's own numbers, or 1, 2, 3 … if it has none."""
    own = abilities(dataset).category_ids
    return own or tuple(range(1, len(dataset.classes) + 1))


def image_id(name: str) -> int | str:
    """A sample's id in COCO files: numbers are kept as numbers, all other ids as text.

    >>> image_id("139"), image_id("000139")
    (139, '000139')
    """
    is_number = name.isdecimal() and len(name) < 1000 and str(int(name)) == name
    return int(name) if is_number else name


def write_truth(path: Path, dataset: Dataset, indices: Iterable[int], truths: Iterable[Truth]) -> None:
    """Write the truth of some images, as given; no image file is needed.

    Images and classes have the ids that exported results use, so that both can be scored together.
    """
    if not dataset.classes:
        raise InvalidOption(f"{dataset.name} has no object classes, so it has no COCO annotations.")
    numbers, records = category_ids(dataset), []
    for index, truth in zip(indices, truths, strict=True):
        name, file = dataset.ids[index], image_path(dataset, index)
        file_name = f"{PurePosixPath(name)}.png" if file is None else file.name
        records.append(_record(image_id(name), file_name, dataset.size(index), truth.instances, numbers))
    make_folder(path.parent)
    _write_annotations(path, records, dataset.classes, numbers)


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    path = destination.write_image(destination.split, name, sample.image)
    size = (sample.image.shape[0], sample.image.shape[1])
    return path, _record(sample.id, path.name, size, sample.truth.instances, category_ids(destination))


def _record(
    name: int | str, file: str, size: tuple[int, int], objects: Instances | None, numbers: Sequence[int]
) -> Record:
    """An image and its annotations; `numbers` are the category ids of the labels."""
    image = {"id": name, "file_name": file, "height": size[0], "width": size[1]}
    return {**image, "annotations": [] if objects is None else [*_annotations(objects, numbers)]}


def _annotations(objects: Instances, numbers: Sequence[int]) -> Iterator[Record]:
    for k, ((x, y, _, _), sides) in enumerate(
        zip(objects.boxes.tolist(), objects.sides.tolist(), strict=True)
    ):
        row = {"id": int(objects.ids[k]), "category_id": numbers[int(objects.labels[k])],
               "bbox": [x, y, *sides], "area": float(objects.area[k]),
               "iscrowd": int(objects.crowd[k] or objects.ignore[k])}  # fmt: skip
        if objects.masks is not None:
            size = list(objects.masks[k].size)
            row["segmentation"] = {"size": size, "counts": compress(objects.masks[k].counts.tolist(), size)}
        yield {**row, **row_fields(objects.data, k)}


def _finish(destination: Destination, records: Sequence[Record]) -> None:
    """Images keep the ids of their samples if these are unique numbers; otherwise they are numbered from 1,
    since most tools read only numbers."""
    numbers = [image_id(record["id"]) for record in records]
    if not all(isinstance(number, int) for number in numbers) or len({*numbers}) < len(numbers):
        numbers = [*range(1, len(records) + 1)]
    numbered = [{**record, "id": number} for record, number in zip(records, numbers, strict=True)]
    path = destination.path("annotations", f"instances_{destination.split}.json")
    _write_annotations(path, numbered, destination.classes, category_ids(destination))


def _write_annotations(
    path: Path, records: Sequence[Record], classes: Sequence[str], numbers: Sequence[int]
) -> None:
    images = [{key: value for key, value in record.items() if key != "annotations"} for record in records]
    rows = [{**row, "image_id": record["id"]} for record in records for row in record["annotations"]]
    # Ids must be unique and at least 1: pycocotools treats a match with annotation 0 as no match.
    if len({row["id"] for row in rows}) < len(rows) or any(row["id"] < 1 for row in rows):
        rows = [{**row, "id": k} for k, row in enumerate(rows, 1)]
    content = {
        "info": {"description": "written by Stormproof"},  # pycocotools requires it
        "images": images,
        "annotations": rows,
        "categories": [
            {"id": n, "name": name, **category_fields(rows)} for n, name in zip(numbers, classes, strict=True)
        ],
    }
    write_text(path, json.dumps(content, ensure_ascii=False) + "\n")


def _spec(destination: Destination) -> Spec:
    root, split = destination.root, destination.split
    return Spec("coco", f"{root}/annotations/instances_{split}.json", {"images": f"{root}/{split}"})


WRITERS.add("coco", Writer(_write, _spec, finish=_finish), module=__name__)
