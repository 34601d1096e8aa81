"""Cityscapes: `leftImg8bit` images, `gtFine` maps of instance ids or polygons.

The writer draws objects of the eight instance classes over the semantic map; excused objects become
groups, which are a class without a number. It also stores what a sample's context has: the right-hand
image, the camera and the disparity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
import PIL.Image
import PIL.ImageDraw

from stormproof.core.errors import DatasetError
from stormproof.core.files import first_folder, list_files, locate, read_json
from stormproof.core.imagefile import image_size
from stormproof.core.masks import FARTHEST, mask_box, masks_by_id
from stormproof.core.sample import Camera, Instances, Sample, SemanticMap, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import (
    IGNORE,
    by_stem,
    checked_size,
    expect_list,
    identity_table,
    list_images,
    raise_all,
    read_label_map,
    semantic_map,
    split_folder,
)
from stormproof.datasets.dataset import READERS, FileDataset
from stormproof.datasets.groups import close_frames
from stormproof.datasets.writing import (
    WRITERS,
    Destination,
    Record,
    Writer,
    lacks_maps,
    semantic_labels,
)


class Label(NamedTuple):
    """A row of the Cityscapes label table; a label without an id has −1, one without a train id 255."""

    name: str
    id: int
    colour: str = "000000"  # in hexadecimal
    train_id: int = IGNORE
    has_instances: bool = False


LABELS = (
    Label("unlabeled", 0), Label("ego vehicle", 1), Label("rectification border", 2), Label("out of roi", 3),
    Label("static", 4), Label("dynamic", 5, "6f4a00"), Label("ground", 6, "510051"),
    Label("road", 7, "804080", 0), Label("sidewalk", 8, "f423e8", 1), Label("parking", 9, "faaaa0"),
    Label("rail track", 10, "e6968c"), Label("building", 11, "464646", 2), Label("wall", 12, "66669c", 3),
    Label("fence", 13, "be9999", 4), Label("guard rail", 14, "b4a5b4"), Label("bridge", 15, "966464"),
    Label("tunnel", 16, "96785a"), Label("pole", 17, "999999", 5), Label("polegroup", 18, "999999"),
    Label("traffic light", 19, "faaa1e", 6), Label("traffic sign", 20, "dcdc00", 7),
    Label("vegetation", 21, "6b8e23", 8), Label("terrain", 22, "98fb98", 9), Label("sky", 23, "4682b4", 10),
    Label("person", 24, "dc143c", 11, True), Label("rider", 25, "ff0000", 12, True),
    Label("car", 26, "00008e", 13, True), Label("truck", 27, "000046", 14, True),
    Label("bus", 28, "003c64", 15, True), Label("caravan", 29, "00005a", IGNORE, True),
    Label("trailer", 30, "00006e", IGNORE, True), Label("train", 31, "005064", 16, True),
    Label("motorcycle", 32, "0000e6", 17, True), Label("bicycle", 33, "770b20", 18, True),
    Label("license plate", -1, "00008e"),
)  # fmt: skip
BY_NAME = {label.name: label for label in LABELS}
BY_ID = {label.id: label for label in LABELS}
SEMANTIC_CLASSES = tuple(label.name for label in LABELS if label.train_id != IGNORE)
CLASSES = tuple(label.name for label in LABELS if label.has_instances and label.train_id != IGNORE)

# Kinds of annotation file by ending, the most detailed first.
INSTANCE_IDS, POLYGONS, LABEL_IDS, TRAIN_IDS = (
    "instanceIds.png", "polygons.json", "labelIds.png", "labelTrainIds.png",
)  # fmt: skip


@READERS.declare("cityscapes")
def open_cityscapes(
    main: str, *, split: str = "val", annotations: str = "gtFine", excuse_caravans: bool = False
) -> FileDataset:
    """Open a Cityscapes folder: 19 semantic classes, and 8 instance classes if there are ids or polygons.

    `annotations=gtCoarse` reads the coarse set. Caravans and trailers are skipped, as by the converter
    behind the published detection numbers; with `excuse_caravans=true` they excuse detections of any class.
    """
    root = locate(main)
    truths = first_folder([root / annotations], "annotations")
    files = annotation_files(split_folder(truths, split), annotations)
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
        images=tuple(
            images.get(name, place / name.partition("_")[0] / f"{name}_leftImg8bit.png") for name in ids
        ),
        labels=CityscapesLabels(sources, excuse_caravans),
        sources=sources,
        classes=CLASSES if objects else (),
        semantic_classes=SEMANTIC_CLASSES,
        category_ids=tuple(BY_NAME[name].id for name in CLASSES) if objects else (),
        attributes={"city": {name: name.partition("_")[0] for name in ids}},
        groups=snippets(ids),
        variant="caravans excused" if excuse_caravans else "",
    )


def snippets(frames: Iterable[str]) -> dict[str, str]:
    """Groups of frames that belong to one snippet; their names are such as aachen_000003_000019.

    Cityscapes labels one frame of each snippet of 30. A sequence number may be that of a snippet (most
    cities) or of a drive of an hour (Frankfurt, Hamburg), so it is the distance between frames that counts.
    """
    parts = {frame: frame.rpartition("_") for frame in frames if _FRAME.fullmatch(frame)}
    places = {frame: (drive, int(number)) for frame, (drive, _, number) in parts.items()}
    return close_frames(places, gap=_SNIPPET)


def annotation_files(root: Path, annotations: str) -> dict[str, Path]:
    """The most detailed annotation file of every frame."""
    files: dict[str, Path] = {}
    for kind in (INSTANCE_IDS, POLYGONS, LABEL_IDS, TRAIN_IDS):
        ending = f"_{annotations}_{kind}"
        for path in list_files(root, {Path(kind).suffix}):
            if path.name.endswith(ending):
                files.setdefault(path.name.removesuffix(ending), path)
    if not files:
        raise DatasetError(root, f"contains no *_{annotations}_{INSTANCE_IDS}, …{POLYGONS} or …{LABEL_IDS}.")
    return files


@dataclass(frozen=True)
class CityscapesLabels:
    """One annotation file per frame, of any kind."""

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
        semantic = _semantic(numbers, file)
        segments = np.where(semantic.labels == IGNORE, 0, numbers).astype(np.int32)
        groups = tuple(label.id for label in LABELS if label.has_instances)  # a class without a count
        return Truth(_instances(numbers, self.excuse_caravans), semantic, segments, groups)


def _semantic(numbers: npt.NDArray[np.int32], file: Path) -> SemanticMap:
    """Train ids from label ids, or from instance ids, which are label × 1000 + count."""
    return semantic_map(_label_ids(numbers), {label.id: label.train_id for label in LABELS}, file)


def _instances(numbers: npt.NDArray[np.int32], excuse_caravans: bool) -> Instances:
    """Objects from instance ids; an instance class without a count is a group, that is a crowd.

    Caravans and trailers are not classes of the benchmark. To excuse detections of any class, each becomes
    one ignored object of every class.
    """
    rows: list[tuple[Any, ...]] = []
    for number, mask in masks_by_id(numbers).items():
        label = BY_ID.get(number // 1000 if number >= 1000 else number)
        if label is None or not label.has_instances:
            continue
        evaluated = label.train_id != IGNORE
        if evaluated or excuse_caravans:
            labels = [CLASSES.index(label.name)] if evaluated else range(len(CLASSES))
            rows += [(mask_box(mask), k, mask, number < 1000, not evaluated, number) for k in labels]
    return Instances.of(rows, "masks", "crowd", "ignore", "ids")


def draw_polygons(file: Path) -> npt.NDArray[np.int32]:
    """The map of instance ids that a polygon file describes; later polygons cover earlier ones."""
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
    """The label, and whether the name denotes a group, as 'persongroup' does."""
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


CITY = "stormproof"  # for frames without a city
_FRAME = re.compile(r"[^_]+_\d{6}_\d{6}", re.ASCII)  # city, sequence and frame number
_SNIPPET = 30  # frames of a snippet, 1.8 s


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    frame = name.removesuffix("_leftImg8bit")
    if not _FRAME.fullmatch(frame):
        frame = f"{CITY}_{frame.replace('_', '-')}_000000"
    below, context = f"{destination.split}/{frame.partition('_')[0]}", sample.context
    path = destination.write_image(f"leftImg8bit/{below}", f"{frame}_leftImg8bit", sample.image)
    ids = id_map(sample, destination.classes, destination.semantic_classes)
    truth, stem = f"gtFine/{below}", f"{frame}_gtFine"
    destination.write_map(truth, f"{stem}_instanceIds", ids)
    destination.write_map(truth, f"{stem}_labelIds", _label_ids(ids).astype(np.uint8))
    destination.write_map(truth, f"{stem}_color", paint_ids(ids))
    destination.write_text(truth, f"{stem}_polygons.json", json.dumps(_polygons(ids)))
    if context.right is not None:
        destination.write_image(f"rightImg8bit/{below}", f"{frame}_rightImg8bit", context.right)
    camera = context.camera
    if camera is not None and camera.baseline is not None:
        content = json.dumps(_camera(camera, camera.baseline), indent=4)
        destination.write_text(f"camera/{below}", f"{frame}_camera.json", content)
        if context.depth is not None:
            disparity = np.float32(camera.fx * camera.baseline) / context.depth
            coded = np.minimum(disparity * 256 + 1, 65535)  # 0 means "no measurement"
            destination.write_map(f"disparity/{below}", f"{frame}_disparity", coded.astype(np.uint16))
    return path, {}


def id_map(sample: Sample, classes: Sequence[str], semantic_classes: Sequence[str]) -> npt.NDArray[np.uint16]:
    """Label id × 1000 + number where objects are counted, elsewhere the label id of the semantic map."""
    table = np.zeros(IGNORE + 1, np.uint16)
    table[: len(semantic_classes)] = [BY_NAME[name].id for name in semantic_classes]
    ids, objects = table[semantic_labels(sample, IGNORE)], sample.truth.objects
    counts: dict[int, int] = {}
    for k, mask in enumerate(objects.masks or ()):
        label = BY_NAME.get(classes[int(objects.labels[k])])
        if label is None or not label.has_instances:
            continue
        if _is_caravan(objects, k):
            ids[mask.to_mask() & (ids == 0)] = objects.ids[k]
        elif objects.crowd[k] or objects.ignore[k]:
            ids[mask.to_mask() & (ids > 0)] = label.id
        else:
            ids[mask.to_mask()] = label.id * 1000 + counts.setdefault(label.id, 0)
            counts[label.id] += 1
    return ids


def _is_caravan(objects: Instances, k: int) -> bool:
    """Whether an object excuses every class, as caravans and trailers do (see `_instances`)."""
    number = int(objects.ids[k])
    label = BY_ID.get(number // 1000 or number)
    excuses = label is not None and label.has_instances and label.train_id == IGNORE
    return excuses and bool(objects.ignore[k]) and np.count_nonzero(objects.ids == number) == len(CLASSES)


def _label_ids(ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(ids >= 1000, ids // 1000, ids)


def paint_ids(ids: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """A map of ids in Cityscapes' colours."""
    table = np.zeros((len(LABELS), 3), np.uint8)
    for label in LABELS[:-1]:
        table[label.id] = list(bytes.fromhex(label.colour))
    return np.asarray(table[_label_ids(ids)], np.uint8)


def _polygons(ids: npt.NDArray[np.uint16]) -> Record:
    """Outlines of all regions, the largest first, so that regions inside a hole are drawn after it."""
    outlined = []
    for value in np.unique(ids).tolist():
        label = BY_ID[value // 1000 if value >= 1000 else value]
        name = f"{label.name}group" if value < 1000 and label.has_instances else label.name
        region = (ids == value).astype(np.uint8)
        outlines, _ = cv2.findContours(region, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        outlined += [(cv2.contourArea(o), name, o[:, 0].tolist()) for o in outlines if len(o) >= 3]
    outlined.sort(key=lambda item: -item[0])
    objects = [{"label": name, "polygon": points} for _, name, points in outlined]
    return {"imgHeight": ids.shape[0], "imgWidth": ids.shape[1], "objects": objects}


def _camera(camera: Camera, baseline: float) -> Record:
    still = dict.fromkeys(("pitch", "roll", "x", "y", "yaw", "z"), 0.0)
    inner = {"fx": camera.fx, "fy": camera.fy, "u0": camera.cx, "v0": camera.cy}
    return {"extrinsic": {"baseline": baseline, **still}, "intrinsic": inner}


def _lacks(destination: Destination) -> str:
    unknown = [name for name in destination.semantic_classes if name not in BY_NAME]
    return f"{unknown[0]!r} is not a Cityscapes class" if unknown else lacks_maps(destination)


def _drops(destination: Destination) -> str:
    dropped = [name for name in destination.classes if name not in BY_NAME or not BY_NAME[name].has_instances]
    return f"objects of class {', '.join(dropped)}" if dropped else ""


def _spec(destination: Destination) -> Spec:
    # Only a dataset read with the option has caravans to write, so the copy has the same truth.
    return Spec("cityscapes", str(destination.root), {"split": destination.split, "excuse_caravans": "true"})


WRITERS.add("cityscapes", Writer(_write, _spec, _lacks, _drops), module=__name__)
