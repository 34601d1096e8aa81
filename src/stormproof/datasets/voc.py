"""PASCAL VOC: boxes in XML files, semantic maps in palette PNGs. NREC: people, in the same XML.

The writer marks excused objects as `difficult`. Objects of VOC's own classes that have masks are also
written as segmentations, where excused objects are void (255).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError
from stormproof.core.files import folder, list_files, locate, read_xml
from stormproof.core.sample import Instances, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import (
    IGNORE,
    LabelMaps,
    are_corners,
    by_stem,
    flagged_fraction,
    identity_table,
    list_images,
    raise_all,
    read_classes,
    read_split,
    split_files,
    split_name,
    unknown_split,
)
from stormproof.datasets.dataset import READERS, FileDataset
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer

Numbers = npt.NDArray[np.uint8]

CLASSES = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
    "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip


@READERS.declare("voc")
def open_voc(main: str, *, split: str | None = None, classes: str | None = None) -> FileDataset:
    """Boxes of a VOC folder; `split` names a list in ImageSets/Main; without it, every XML file is read.

    `classes` is a text file of one class name per line, for data in VOC's format with other classes.
    """
    root = _root(locate(main))
    annotations = by_stem(list_files(folder(root / "Annotations", "XML annotations"), {".xml"}))
    ids = _ids(root, "Main", split, annotations)
    names = read_classes(locate(classes, root)) if classes else CLASSES
    files = split_files(ids, annotations, root / "Annotations" / "id.xml", split)
    return FileDataset(
        name=split_name(root, split),
        root=root,
        ids=ids,
        images=_images(root, ids),
        labels=VocBoxes(files, names),
        sources=files,
        classes=names,
    )


@READERS.declare("voc-seg")
def open_voc_segmentation(
    main: str, *, split: str | None = None, labels: str = "SegmentationClass"
) -> FileDataset:
    """Semantic maps of a VOC folder: background and 20 classes, 255 where there is no truth."""
    root = _root(locate(main))
    maps = by_stem(list_files(folder(root / labels, "palette PNGs"), {".png"}))
    ids = _ids(root, "Segmentation", split, maps)
    names = ("background", *CLASSES)
    files = split_files(ids, maps, root / labels / "id.png", split)
    return FileDataset(
        name=split_name(root, split),
        root=root,
        ids=ids,
        images=_images(root, ids),
        labels=LabelMaps(files, identity_table(names, IGNORE)),
        sources=files,
        semantic_classes=names,
    )


def _root(path: Path) -> Path:
    """The folder with JPEGImages in it: `path`, or the only VOC year below it."""
    years = [year for year in sorted(path.glob("VOC20*")) if year.is_dir()]
    if not (path / "Annotations").is_dir() and not (path / "JPEGImages").is_dir():
        if len(years) == 1:
            return years[0]
        if years:
            raise DatasetError(path, f"contains several years; open one of them, such as {years[0]}.")
    return path


def _ids(root: Path, purpose: str, split: str | None, files: dict[str, Path]) -> tuple[str, ...]:
    if split is None:
        if not files:
            raise DatasetError(root, "contains no annotations.")
        return tuple(sorted(files))
    listing = root / "ImageSets" / purpose / f"{split}.txt"
    if not listing.is_file():
        # Main also lists the images of each class, as in car_val.txt; these need not be suggested.
        names = [f.stem for f in listing.parent.glob("*.txt") if f.stem.rpartition("_")[0] not in CLASSES]
        raise unknown_split(split, names, listing.parent)
    return read_split(listing)


def _images(root: Path, ids: tuple[str, ...]) -> tuple[Path, ...]:
    directory = root / "JPEGImages"
    files = by_stem(list_images(directory)) if directory.is_dir() else {}
    return tuple(files.get(name, directory / f"{name}.jpg") for name in ids)


# A width or height; some tools write 0 if they do not know it.
_SIDE = re.compile(r"0{0,9}[1-9]\d{0,8}", re.ASCII)


@dataclass(frozen=True)
class VocBoxes:
    """One XML file per image."""

    files: tuple[Path, ...]
    classes: tuple[str, ...]

    def size(self, index: int) -> tuple[int, int] | None:
        root = read_xml(self.files[index])
        height, width = root.findtext("size/height", ""), root.findtext("size/width", "")
        return (int(height), int(width)) if _SIDE.fullmatch(height) and _SIDE.fullmatch(width) else None

    def truth(self, index: int) -> Truth:
        file = self.files[index]
        objects = read_xml(file).findall("object")
        raise_all(
            [
                DatasetError(file, problem, f"object {i}")
                for i, element in enumerate(objects)
                for problem in self._problems(element)
            ]
        )
        return Truth(Instances.of(map(self._row, objects), "ignore", "occlusion", "truncation"))

    def _row(self, element: Element) -> tuple[Any, ...]:
        hidden, cut = (flagged_fraction(_flag(element, key)) for key in ("occluded", "truncated"))
        difficult = _flag(element, "difficult") is True
        return _box(element), self.classes.index(_class(element)), difficult, hidden, cut

    def _problems(self, element: Element) -> Iterator[str]:
        name = _class(element)
        if name not in self.classes:
            yield f"unknown class {name!r}; name your own classes with classes=FILE, one per line."
        corners = _corners(element)
        if not are_corners(corners):
            yield f"box xmin, ymin, xmax, ymax = {corners} must be finite, with xmax ≥ xmin and ymax ≥ ymin."


def _class(element: Element) -> str:
    return element.findtext("name", "").strip()


def _corners(element: Element) -> tuple[float, float, float, float]:
    """xmin, ymin, xmax, ymax as written; NaN if missing or not a number."""

    def number(key: str) -> float:
        try:
            return float(element.findtext(f"bndbox/{key}", "nan"))
        except ValueError:
            return float("nan")

    return number("xmin"), number("ymin"), number("xmax"), number("ymax")


def _box(element: Element) -> tuple[float, float, float, float]:
    """Corners as pixel edges: VOC counts pixels from 1, and the last one belongs to the box."""
    x1, y1, x2, y2 = _corners(element)
    return x1 - 1, y1 - 1, x2, y2


def _flag(element: Element, key: str) -> bool | None:
    text = element.findtext(key)
    return None if text is None else text.strip().lower() in ("1", "true", "yes")


# The NREC Agricultural Person-Detection Dataset: people in orchards, boxes as VOC XML, in the layout of the
# benchmark's public evaluation (nrecAgPersonEval): ROOT/SPLIT/collected/ImagesPositiveNegative/*.png and
# ROOT/SPLIT/collected/AnnotationsPositiveNegative/*.xml.
PEOPLE = ("person",)
NREC_IMAGES, NREC_ANNOTATIONS = "ImagesPositiveNegative", "AnnotationsPositiveNegative"
PARTS = ("person-part", "person_part", "personpart")  # heavily occluded: ignored


@READERS.declare("nrec")
def open_nrec(main: str, *, split: str = "test") -> FileDataset:
    """People of one split: train, val or test. Parts of people are ignored regions, as in the benchmark.

    An image without a label file shows nobody.
    """
    root = locate(main)
    place = root / split / "collected"
    if not place.is_dir():
        known = [path.name for path in sorted(root.iterdir()) if (path / "collected").is_dir()]
        raise unknown_split(split, known, root)
    images = by_stem(list_images(folder(place / NREC_IMAGES, "images")))
    if not images:
        raise DatasetError(place / NREC_IMAGES, "contains no images.")
    labels = by_stem(list_files(folder(place / NREC_ANNOTATIONS, "XML annotations"), {".xml"}))
    ids = tuple(sorted(images))
    return FileDataset(
        name=f"nrec-{split}",
        root=root,
        ids=ids,
        images=tuple(images[name] for name in ids),
        labels=NrecBoxes(tuple(labels.get(name) for name in ids)),
        sources=tuple(labels[name] for name in ids if name in labels),
        classes=PEOPLE,
    )


@dataclass(frozen=True)
class NrecBoxes:
    """One XML file per image that shows people."""

    files: tuple[Path | None, ...]

    def size(self, index: int) -> tuple[int, int] | None:
        file = self.files[index]
        return None if file is None else VocBoxes((file,), PEOPLE).size(0)

    def truth(self, index: int) -> Truth:
        file = self.files[index]
        if file is None:
            return Truth(Instances.of(()))
        objects = VocBoxes((file,), (*PEOPLE, *PARTS)).truth(0).objects
        part = objects.labels >= len(PEOPLE)
        return Truth(replace(objects, labels=np.where(part, 0, objects.labels), ignore=objects.ignore | part))


TRUNCATED, OCCLUDED = 0.15, 0.05  # fractions above which VOC's flags are set


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    path = destination.write_image("JPEGImages", name, sample.image)
    objects, classes = sample.truth.objects, destination.classes
    segmented = objects.masks is not None and classes == CLASSES
    root = _annotation(path.name, sample, objects, classes, segmented=segmented)
    destination.write_text("Annotations", f"{name}.xml", tostring(root, encoding="unicode"))
    if segmented:
        by_class, by_object = _segmentations(objects, (sample.image.shape[0], sample.image.shape[1]))
        destination.write_map("SegmentationClass", name, by_class, _palette())
        destination.write_map("SegmentationObject", name, by_object, _palette())
    shown = sorted({classes[label] for label in objects.labels.tolist()})
    return path, {"name": name, "classes": shown, "segmented": segmented}


def _annotation(
    file: str, sample: Sample, objects: Instances, classes: Sequence[str], *, segmented: bool
) -> Element:
    height, width = sample.image.shape[:2]
    root = Element("annotation")
    _add(root, folder="VOC", filename=file)
    _add(SubElement(root, "source"), database="Stormproof")
    channels = 1 if sample.image.ndim == 2 else sample.image.shape[2]
    _add(SubElement(root, "size"), width=width, height=height, depth=channels)
    _add(root, segmented=int(segmented))
    for k, (x1, y1, x2, y2) in enumerate(objects.boxes.tolist()):
        element = SubElement(root, "object")
        _add(element, name=classes[int(objects.labels[k])], pose="Unspecified")
        if not np.isnan(objects.truncation[k]):
            _add(element, truncated=int(objects.truncation[k] > TRUNCATED))
        _add(element, difficult=int(objects.crowd[k] or objects.ignore[k]))
        if not np.isnan(objects.occlusion[k]):
            _add(element, occluded=int(objects.occlusion[k] > OCCLUDED))
        # VOC counts pixels from 1 and includes the last.
        _add(SubElement(element, "bndbox"), xmin=x1 + 1, ymin=y1 + 1, xmax=x2, ymax=y2)
    indent(root, "\t")
    return root


def _add(parent: Element, **values: str | float) -> None:
    """Give an element children with these names and texts; whole numbers are written without a point."""
    for tag, value in values.items():
        whole = isinstance(value, float) and value.is_integer()
        SubElement(parent, tag).text = str(int(value) if whole else value)


def _segmentations(objects: Instances, size: tuple[int, int]) -> tuple[Numbers, Numbers]:
    """Maps of class numbers and of object numbers."""
    by_class, by_object = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    for k, mask in enumerate(objects.masks or ()):
        excused, inside = objects.crowd[k] or objects.ignore[k], mask.to_mask()
        by_class[inside] = IGNORE if excused else objects.labels[k] + 1
        by_object[inside] = IGNORE if excused else (k + 1) % IGNORE
    return by_class, by_object


def _palette() -> list[int]:
    """VOC's colours: the bits of a number go in turn to red, green and blue, highest first."""
    return [
        sum(((number >> (3 * bit + channel)) & 1) << (7 - bit) for bit in range(3))
        for number in range(256)
        for channel in range(3)
    ]


def _finish(destination: Destination, records: Sequence[Record]) -> None:
    """Lists of the split's images; for VOC's own classes, also which images show each class."""
    split, names = destination.split, "".join(f"{record['name']}\n" for record in records)
    destination.write_text("ImageSets/Main", f"{split}.txt", names)
    if destination.classes != CLASSES:
        destination.write_text(".", "classes.txt", "".join(f"{name}\n" for name in destination.classes))
        return
    segmented = "".join(f"{record['name']}\n" for record in records if record["segmented"])
    if segmented:
        destination.write_text("ImageSets/Segmentation", f"{split}.txt", segmented)
    for label in CLASSES:
        lines = (f"{r['name']} {'1' if label in r['classes'] else '-1':>2}\n" for r in records)
        destination.write_text("ImageSets/Main", f"{label}_{split}.txt", "".join(lines))


def _spec(destination: Destination) -> Spec:
    own = {} if destination.classes == CLASSES else {"classes": f"{destination.root}/classes.txt"}
    return Spec("voc", str(destination.root), {"split": destination.split, **own})


WRITERS.add("voc", Writer(_write, _spec, finish=_finish), module=__name__)
