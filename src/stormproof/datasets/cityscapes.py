"""Cityscapes: `leftImg8bit` images, `gtFine` maps of instance ids or polygons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import PIL.Image
import PIL.ImageDraw

from stormproof.core.errors import DatasetError
from stormproof.core.files import first_folder, list_files, locate, read_json
from stormproof.core.imagefile import image_size
from stormproof.core.masks import FARTHEST, mask_boxes, masks_by_id
from stormproof.core.sample import Instances, SemanticMap, Truth
from stormproof.core.spec import opens
from stormproof.datasets.annotations import (
    by_stem,
    checked_size,
    expect_list,
    list_images,
    raise_all,
    split_folder,
)
from stormproof.datasets.filedataset import FileDataset
from stormproof.datasets.labelmaps import IGNORE, identity_table, read_label_map, semantic_map


class Label(NamedTuple):
    """A row of the Cityscapes label table; ids are −1 and train ids 255 where a label has none."""

    name: str
    id: int
    train_id: int = IGNORE
    has_instances: bool = False


LABELS = (
    Label("unlabeled", 0), Label("ego vehicle", 1), Label("rectification border", 2), Label("out of roi", 3),
    Label("static", 4), Label("dynamic", 5), Label("ground", 6), Label("road", 7, 0), Label("sidewalk", 8, 1),
    Label("parking", 9), Label("rail track", 10), Label("building", 11, 2), Label("wall", 12, 3),
    Label("fence", 13, 4), Label("guard rail", 14), Label("bridge", 15), Label("tunnel", 16),
    Label("pole", 17, 5), Label("polegroup", 18), Label("traffic light", 19, 6), Label("traffic sign", 20, 7),
    Label("vegetation", 21, 8), Label("terrain", 22, 9), Label("sky", 23, 10), Label("person", 24, 11, True),
    Label("rider", 25, 12, True), Label("car", 26, 13, True), Label("truck", 27, 14, True),
    Label("bus", 28, 15, True), Label("caravan", 29, IGNORE, True), Label("trailer", 30, IGNORE, True),
    Label("train", 31, 16, True), Label("motorcycle", 32, 17, True), Label("bicycle", 33, 18, True),
    Label("license plate", -1),
)  # fmt: skip
BY_NAME = {label.name: label for label in LABELS}
BY_ID = {label.id: label for label in LABELS}
SEMANTIC_CLASSES = tuple(label.name for label in LABELS if label.train_id != IGNORE)
CLASSES = tuple(label.name for label in LABELS if label.has_instances and label.train_id != IGNORE)

# Kinds of annotation file by ending, the most detailed first.
INSTANCE_IDS, POLYGONS, LABEL_IDS, TRAIN_IDS = (
    "instanceIds.png", "polygons.json", "labelIds.png", "labelTrainIds.png",
)  # fmt: skip


@opens("cityscapes")
def open_cityscapes(
    main: str, *, split: str = "val", annotations: str = "gtFine", excuse_caravans: bool = False
) -> FileDataset:
    """Open a Cityscapes folder: 19 semantic classes, and 8 classes of instances where ids or polygons exist.

    `annotations=gtCoarse` reads the coarse set. Caravans and trailers are no objects, as in the converter
    behind the published detection numbers; with `excuse_caravans=true` they excuse detections of any class.
    """
    root = locate(main)
    truths = first_folder([root / annotations], "annotations")
    files = _annotation_files(split_folder(truths, split), annotations)
    place = root / "leftImg8bit" / split
    images = by_stem(list_images(place), ["_leftImg8bit"]) if place.is_dir() else {}
    raise_all(
        [DatasetError(images[name], "has no annotation.") for name in sorted(images.keys() - files.keys())]
    )
    ids = tuple(sorted(files))
    sources = tuple(files[name] for name in ids)
    objects = all(file.name.endswith((INSTANCE_IDS, POLYGONS)) for file in sources)
    return FileDataset(
        name=f"cityscapes-{split}",
        root=root,
        ids=ids,
        images=tuple(images.get(name) or _expected_image(place, name) for name in ids),
        labels=CityscapesLabels(sources, excuse_caravans),
        sources=sources,
        classes=CLASSES if objects else (),
        semantic_classes=SEMANTIC_CLASSES,
        category_ids=tuple(BY_NAME[name].id for name in CLASSES) if objects else (),
    )


def _annotation_files(root: Path, annotations: str) -> dict[str, Path]:
    """The most detailed annotation file of every frame."""
    found: dict[str, Path] = {}
    for kind in (INSTANCE_IDS, POLYGONS, LABEL_IDS, TRAIN_IDS):
        ending = f"_{annotations}_{kind}"
        for path in list_files(root, {Path(kind).suffix}):
            if path.name.endswith(ending):
                found.setdefault(path.name.removesuffix(ending), path)
    if not found:
        raise DatasetError(root, f"holds no *_{annotations}_{INSTANCE_IDS}, …{POLYGONS} or …{LABEL_IDS}.")
    return found


def _expected_image(place: Path, name: str) -> Path:
    return place / name.partition("_")[0] / f"{name}_leftImg8bit.png"


@dataclass(frozen=True)
class CityscapesLabels:
    """One annotation file per frame, of whichever kind is there."""

    files: tuple[Path, ...]
    excuse_caravans: bool = False

    def size(self, index: int) -> tuple[int, int] | None:
        file = self.files[index]
        return _polygon_size(read_json(file), file) if file.suffix == ".json" else image_size(file)

    def truth(self, index: int) -> Truth:
        file = self.files[index]
        if file.name.endswith(TRAIN_IDS):
            return Truth(
                semantic=semantic_map(read_label_map(file), identity_table(SEMANTIC_CLASSES, IGNORE), file)
            )
        if file.name.endswith(LABEL_IDS):
            return Truth(semantic=_semantic(read_label_map(file), file))
        numbers = draw_polygons(file) if file.suffix == ".json" else read_label_map(file)
        return Truth(_instances(numbers, self.excuse_caravans), _semantic(numbers, file))


def _semantic(numbers: npt.NDArray[np.int32], file: Path) -> SemanticMap:
    """Train ids from label ids, or from instance ids: label × 1000 + count."""
    labels = np.where(numbers >= 1000, numbers // 1000, numbers)
    return semantic_map(labels, {label.id: label.train_id for label in LABELS}, file)


def _instances(numbers: npt.NDArray[np.int32], excuse_caravans: bool) -> Instances:
    """Objects from instance ids; a countable class without a count is a group, which is a crowd.

    Caravans and trailers are not classes of the benchmark. Where they are to excuse detections of any class,
    each becomes one ignored object of every class.
    """
    ids, labels, masks, crowd, ignore = [], [], [], [], []
    for number, mask in masks_by_id(numbers).items():
        label = BY_ID.get(number // 1000 if number >= 1000 else number)
        if label is None or not label.has_instances:
            continue
        evaluated = label.train_id != IGNORE
        if not evaluated and not excuse_caravans:
            continue
        for index in [CLASSES.index(label.name)] if evaluated else range(len(CLASSES)):
            ids.append(number)
            labels.append(index)
            masks.append(mask)
            crowd.append(number < 1000)
            ignore.append(not evaluated)
    return Instances(
        mask_boxes(masks), np.array(labels, np.int64), tuple(masks), crowd=np.array(crowd, np.bool_),
        ignore=np.array(ignore, np.bool_), ids=np.array(ids, np.int64),
    )  # fmt: skip


def draw_polygons(file: Path) -> npt.NDArray[np.int32]:
    """The map of instance ids that a polygon file describes: later polygons cover earlier ones."""
    content = read_json(file)
    height, width = _polygon_size(content, file)
    canvas = PIL.Image.new("I", (width, height), 0)
    pen = PIL.ImageDraw.Draw(canvas)
    counts: dict[str, int] = {}
    for i, record in enumerate(expect_list(content, "objects", file)):
        if not isinstance(record, dict):
            raise DatasetError(file, f"is {record!r:.60}, not an object.", f"object {i}")
        if record.get("deleted"):
            continue
        label, group = _polygon_label(str(record.get("label")), file, i)
        if label.id < 0:
            continue
        number = label.id
        if label.has_instances and not group:
            number = label.id * 1000 + counts.setdefault(label.name, 0)
            counts[label.name] += 1
        pen.polygon(_polygon_points(record, file, i), fill=number)
    return np.array(canvas, np.int32)


def _polygon_label(name: str, file: Path, i: int) -> tuple[Label, bool]:
    """The label, and whether it is that of a group: 'persongroup' is a group of persons."""
    group = name not in BY_NAME and name.endswith("group")
    known = BY_NAME.get(name.removesuffix("group") if group else name)
    if known is None:
        raise DatasetError(file, f"unknown label {name!r}.", f"object {i}")
    return known, group


def _polygon_points(record: dict[str, object], file: Path, i: int) -> list[tuple[float, float]]:
    try:
        corners = np.array(record.get("polygon"), np.float64)
    except (TypeError, ValueError, OverflowError):
        corners = np.zeros(0)
    shaped = corners.ndim == 2 and corners.shape[1] == 2 and len(corners) >= 3
    if not shaped or not (np.abs(corners) <= FARTHEST).all():
        problem = (
            f"polygon {record.get('polygon')!r:.80} must be at least 3 points x, y within ±{FARTHEST:,}."
        )
        raise DatasetError(file, problem, f"object {i}")
    return [(x, y) for x, y in corners.tolist()]


def _polygon_size(content: object, file: Path) -> tuple[int, int]:
    size = (content.get("imgHeight"), content.get("imgWidth")) if isinstance(content, dict) else (None, None)
    return checked_size(*size, file, "imgHeight, imgWidth")
