"""YOLO: a `data.yaml`, and one text file of boxes or polygons per image, in fractions of its size.

Lines may hold an array of objects instead (`core.forms.YoloLines`), as `data.yaml` says: key points after the
box, four corners. The writer stores such an array if objects have one, polygons if they have masks, else
boxes. It leaves out excused objects, since the format cannot mark them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import yaml

from stormproof.core.errors import DatasetError
from stormproof.core.files import expand, locate, read_lines, read_text, read_yaml
from stormproof.core.forms import FORMS, Form, YoloLines, object_forms
from stormproof.core.imagefile import AS_STORED, PixelRules, image_size
from stormproof.core.masks import polygon_mask
from stormproof.core.sample import RLE, Bools, Floats, Instances, Ints, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import class_names, list_images, unique_names, unknown_split
from stormproof.datasets.dataset import READERS, FileDataset, Labels
from stormproof.datasets.object_data import truth_data
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer

LabelLine = tuple[int, tuple[float, ...]]  # a class and its numbers: 4 for a box, 6 or more for a polygon
_OWN_KEYS = {"path", "train", "val", "test", "names", "nc", "download"}  # of data.yaml: these state no form


@READERS.declare("yolo")
def open_yolo(main: str, *, split: str = "val", oriented: bool | None = None) -> FileDataset:
    """Open a `data.yaml`; labels are in a `labels` folder that mirrors `images`.

    An image without a label file has no objects, by YOLO's convention. With `oriented`, rows are the four
    corners of boxes, not polygons of masks; `data.yaml` may say so too.
    """
    path = locate(main)
    path = path / "data.yaml" if path.is_dir() else path
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise DatasetError(path, "must contain 'names' and the splits 'train', 'val' or 'test'.")
    classes = _classes(read_yaml(path, as_text=True).get("names"), path)
    root = _root(path, content.get("path"))
    images = _images(content, split, root, path)
    texts = tuple(label_file(image) for image in images)
    kind = _stated_kind(content | ({} if oriented is None else {"oriented": oriented}), path)
    rows = tuple(_read_rows(text, len(classes), kind) if text.is_file() else () for text in texts)
    polygons = kind is None and _is_segmentation(rows, texts)
    return FileDataset(
        name=f"{path.parent.name if path.stem == 'data' else path.stem}-{split}",
        root=root,
        ids=unique_names((image.stem for image in images), path, "image id"),
        images=images,
        labels=YoloObjects(images, rows, polygons, kind),
        sources=(path, *(text for text in texts if text.is_file())),
        classes=classes,
        variant="" if oriented is None else f"oriented {oriented}",
    )


def _classes(names: Any, path: Path) -> tuple[str, ...]:
    if isinstance(names, dict):
        if {*names} != {str(number) for number in range(len(names))}:
            raise DatasetError(path, f"class numbers must run 0, 1, 2 …, not {', '.join(names)}.", "names")
        names = [names[str(number)] for number in range(len(names))]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise DatasetError(path, f"names is {names!r:.80}; it must list the class names.", "names")
    return class_names(names, path)


def _root(path: Path, stated: object) -> Path:
    """The folder that splits are relative to: as stated if it exists, else the folder of the YAML file."""
    if not stated:
        return path.parent
    given = expand(str(stated))
    candidates = [given] if given.is_absolute() else [path.parent / given, given]
    return next((place for place in candidates if place.is_dir()), path.parent)


def _images(content: dict[str, Any], split: str, root: Path, path: Path) -> tuple[Path, ...]:
    stated = content.get(split)
    if not stated:
        raise unknown_split(split, (key for key in ("train", "val", "test") if content.get(key)), path)
    places = stated if isinstance(stated, list) else [stated]
    paths = [image for place in places for image in _images_at(str(place), root, path)]
    if not paths:
        raise DatasetError(path, f"no images at {stated!r}, relative to {root}.", split)
    return tuple(paths)


def _images_at(place: str, root: Path, path: Path) -> list[Path]:
    """The images of a folder, or those that a text file lists."""
    # Exports often contain ../train/images although the folder is beside the YAML file.
    options = [expand(root / place), expand(root / place.removeprefix("../"))]
    where = next((option for option in options if option.exists()), None)
    if where is None:
        raise DatasetError(path, f"{place!r} is not below {root}; correct 'path' or the split.")
    if where.is_dir():
        return list_images(where)
    return [expand(root / line) for line in read_lines(where)]  # absolute paths are kept


def label_file(image: Path) -> Path:
    """The label file of an image: the last `images` in its path becomes `labels`; otherwise it is beside it.

    >>> label_file(Path("set/images/val/a.jpg")).as_posix()
    'set/labels/val/a.txt'
    """
    parts = list(image.with_suffix(".txt").parts)
    for i in reversed(range(len(parts) - 1)):
        if parts[i] == "images":
            parts[i] = "labels"
            break
    return Path(*parts)


@dataclass(frozen=True)
class LineKind:
    """What lines hold beside or instead of boxes: an array of objects, as a form and `data.yaml` state it."""

    form: str
    stated: Any

    @property
    def lines(self) -> YoloLines:
        declared = FORMS[self.form].yolo
        assert declared is not None
        return declared

    @property
    def count(self) -> int:
        """The numbers of a line after its class."""
        return 4 * self.lines.boxed + self.lines.count(self.stated)

    @property
    def places(self) -> Bools:
        """Which of these numbers are fractions of the image."""
        return np.concatenate([np.ones(4 * self.lines.boxed, np.bool_), self.lines.places(self.stated)])


def _stated_kind(content: dict[str, Any], path: Path) -> LineKind | None:
    """The array that lines hold; None if they are boxes or polygons."""
    if not content.keys() - _OWN_KEYS:
        return None
    for form in object_forms():
        stated = None if form.yolo is None else content.get(form.yolo.key)
        if form.yolo is not None and stated is not None and stated is not False:
            if problem := form.yolo.problem(stated):
                raise DatasetError(path, problem, form.yolo.key)
            return LineKind(form.name, stated)
    return None


def _read_rows(text: Path, classes: int, kind: LineKind | None) -> tuple[LabelLine, ...]:
    lines = enumerate(read_text(text).splitlines(), 1)
    return tuple(_row(line, classes, kind, text, f"line {i}") for i, line in lines if line.strip())


def _row(line: str, classes: int, kind: LineKind | None, text: Path, where: str) -> LabelLine:
    try:
        number, *values = map(float, line.split())
    except ValueError:
        raise DatasetError(text, f"{line!r:.80} must be a class number and coordinates.", where) from None
    if kind is not None and len(values) != kind.count:
        parts = f"a box (4) and {kind.count - 4} numbers" if kind.lines.boxed else f"the {kind.count} numbers"
        fix = f"as {kind.lines.key}={str(kind.stated).lower()} says; correct one of them"
        problem = f"{len(values)} numbers are not {parts} of {FORMS[kind.form].words}, {fix}."
        raise DatasetError(text, problem, where)
    if kind is None and len(values) != 4 and (len(values) < 6 or len(values) % 2):
        problem = f"{len(values)} coordinates are neither a box (4) nor a polygon (6 or more, even)."
        raise DatasetError(text, problem, where)
    if number not in range(classes):
        raise DatasetError(
            text, f"class {number:g} is not among the {classes} names (0 to {classes - 1}).", where
        )
    places = values if kind is None else np.array(values)[kind.places].tolist()
    if not all(map(isfinite, values)) or not all(-0.01 <= v <= 1.01 for v in places):
        raise DatasetError(text, f"{line!r:.80}: coordinates must be fractions from 0 to 1.", where)
    if (len(values) == 4 if kind is None else kind.lines.boxed) and min(values[2:4]) < 0:
        raise DatasetError(text, f"{line!r:.80}: width and height must be ≥ 0.", where)
    return int(number), tuple(values)


def _is_segmentation(rows: Sequence[tuple[LabelLine, ...]], texts: Sequence[Path]) -> bool:
    """Whether the set contains polygons; boxes among them are an error, since they have no masks."""
    first: bool | None = None
    for file_rows, text in zip(rows, texts, strict=True):
        for i, (_, values) in enumerate(file_rows):
            polygon = len(values) > 4
            if first is None:
                first = polygon
            if polygon != first:
                problem = "this set mixes boxes and polygons; give every object a polygon, or none."
                raise DatasetError(text, problem, f"object {i}")
    return bool(first)


@dataclass(frozen=True)
class YoloObjects(Labels):
    """The rows of each image's text file; coordinates are scaled by the image's size."""

    images: tuple[Path, ...]
    rows: tuple[tuple[LabelLine, ...], ...]
    polygons: bool
    kind: LineKind | None = None
    rules: PixelRules = AS_STORED

    def truth(self, index: int) -> Truth:
        rows = self.rows[index]
        labels = np.array([label for label, _ in rows], np.int64)
        if not rows:
            return Truth(Instances(np.zeros((0, 4)), labels, () if self.polygons else None))
        height, width = image_size(self.images[index], rules=self.rules)
        if self.kind is not None:
            return _with_array(self.kind, labels, np.array([values for _, values in rows]), (width, height))
        if not self.polygons:
            return Truth(Instances(_edges(np.array([values for _, values in rows]), (width, height)), labels))
        rings = [np.array(values).reshape(-1, 2) * [width, height] for _, values in rows]
        corners = np.array([[*ring.min(axis=0), *ring.max(axis=0)] for ring in rings])
        masks = tuple(polygon_mask([ring.ravel()], height, width) for ring in rings)
        return Truth(Instances(corners, labels, masks))


def _edges(values: Floats, size: tuple[int, int]) -> Floats:
    """Boxes x1 y1 x2 y2 in pixels."""
    boxes = values[:, :4] * [*size, *size]
    return np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2])


def _with_array(kind: LineKind, labels: Ints, values: Floats, size: tuple[int, int]) -> Truth:
    """Objects with an array; `size` is width and height."""
    form, lines = FORMS[kind.form], kind.lines
    scaled, places = values.copy(), np.flatnonzero(kind.places)
    scaled[:, places] *= np.resize(size, len(places))  # x and y by turns
    array = lines.read(scaled[:, 4 * lines.boxed :], kind.stated)
    assert form.boxes is not None
    boxes = _edges(values, size) if lines.boxed else form.boxes(array)
    data = truth_data({form.name: array}, {})
    return Truth(Instances(boxes, labels, area=lines.area(boxes, array), data=data))


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    path = destination.write_image(f"images/{destination.split}", name, sample.image)
    size = np.array([sample.image.shape[1], sample.image.shape[0]])
    objects = sample.truth.objects
    lines = [
        f"{int(objects.labels[k])} {' '.join(_numbers(objects, k, size))}\n"
        for k in range(len(objects))
        if not (objects.crowd[k] or objects.ignore[k])
    ]
    destination.write_text(f"labels/{destination.split}", f"{name}.txt", "".join(lines))
    held = _held_form(objects)
    if held is None or not len(objects):
        return path, {}
    form, kind = held
    return path, {kind.key: kind.state(objects.data[form.name])}


def _held_form(objects: Instances) -> tuple[Form, YoloLines] | None:
    """The form of the array that lines can hold, if objects have one."""
    forms = (FORMS[name] for name in objects.data)
    return next(((form, form.yolo) for form in forms if form.yolo is not None), None)


def _numbers(objects: Instances, k: int, size: npt.NDArray[Any]) -> list[str]:
    """What the line of an object holds after its class."""
    x1, y1, x2, y2 = objects.boxes[k].tolist()
    box = _fractions(_centre_and_sides(objects.boxes[k], size))
    if (held := _held_form(objects)) is not None:
        form, lines = held
        entry = lines.write(objects.data[form.name][k]).reshape(-1, form.shape[-1] if form.shape else 2)
        words = [(*_fractions(row[:2] / size), *(f"{value:g}" for value in row[2:])) for row in entry]
        return [*(box if lines.boxed else ()), *(word for each in words for word in each)]
    if objects.masks is None:
        return box
    ring = np.array(_outline(objects.masks[k]) or (x1, y1, x2, y1, x2, y2, x1, y2)).reshape(-1, 2)
    return _fractions(ring / size)


def _centre_and_sides(box: Floats, size: npt.NDArray[Any]) -> Floats:
    """The numbers of a box in fractions; one whose centre is outside the image, or that is larger than the
    image, becomes its part inside."""
    low, high = box[:2], box[2:]
    if (low + high < 0).any() or (low + high > 2 * size).any() or (high - low > size).any():
        low, high = np.clip(low, 0, size), np.clip(high, 0, size)
    numbers: Floats = np.array([(low + high) / 2, high - low]) / size
    return numbers


def _fractions(values: npt.NDArray[Any]) -> list[str]:
    return [f"{value:.9f}" for value in np.clip(values, 0, 1).ravel()]


def _outline(mask: RLE) -> list[float]:
    """The largest outline of a mask, through the centres of its pixels, as x, y pairs."""
    outlines, _ = cv2.findContours(mask.to_mask().astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    largest = max(outlines, key=cv2.contourArea, default=np.zeros((0, 1, 2)))
    return (largest.reshape(-1, 2) + 0.5).ravel().tolist() if len(largest) >= 3 else []


def _finish(destination: Destination, records: Sequence[Record]) -> None:
    split, names = destination.split, dict(enumerate(destination.classes))
    content: dict[str, Any] = {"path": ".", split: f"images/{split}", "names": names}
    for stated in records:
        content |= stated
    destination.write_text(".", "data.yaml", yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def _spec(destination: Destination) -> Spec:
    return Spec("yolo", f"{destination.root}/data.yaml", {"split": destination.split})


WRITERS.add("yolo", Writer(_write, _spec, finish=_finish), module=__name__)
