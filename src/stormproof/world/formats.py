"""The street on disk: scenes in the classes of each format, written by the format's own writer.

The files do not depend on the number of processes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from stormproof.core.errors import InvalidOption, OutputError, UnknownName
from stormproof.core.processes import spread, worker_count
from stormproof.core.sample import Bools, Instances, Sample, SemanticMap, Truth
from stormproof.corruptions.geometry import select
from stormproof.datasets import camvid, cityscapes, find_writer, kitti, voc
from stormproof.datasets.writing import Destination, Record
from stormproof.world.classes import BICYCLE, COCO_IDS, OBJECTS, PERSON, SEMANTIC, VOID
from stormproof.world.samples import BASELINE, SPLITS, Rendered, check_scene, render

_KITTI = {"car": "Car", "truck": "Truck", "bus": "Misc", "person": "Pedestrian"}
_CITYSCAPES = {"stop sign": "traffic sign"}
_CAMVID = {
    "sidewalk": "pavement", "traffic sign": "signsymbol", "vegetation": "tree", "person": "pedestrian",
    "truck": "car", "bus": "car", "bicycle": "bicyclist",
}  # fmt: skip


def _objects(scene: Rendered) -> Instances:
    assert scene.sample.truth.instances is not None
    return scene.sample.truth.instances


def _names(scene: Rendered) -> list[str]:
    return [OBJECTS[label] for label in _objects(scene).labels.tolist()]


def _rides(scene: Rendered) -> Bools:
    """Whether each object is a person on a bicycle."""
    return np.asarray((_objects(scene).labels == PERSON) & (np.array(scene.groups, np.int64) >= 0), np.bool_)


def _renamed(objects: Instances, names: list[str], classes: tuple[str, ...]) -> Instances:
    """The objects whose names are among the classes, with the labels of these classes."""
    kept = np.array([k for k, name in enumerate(names) if name in classes], np.int64)
    labels = np.array([classes.index(names[k]) for k in kept], np.int64)
    return replace(select(objects, kept), labels=labels)


def _semantic(scene: Rendered, names: Mapping[str, str], classes: tuple[str, ...]) -> SemanticMap:
    """The semantic map in other classes; `names` translates class names."""
    assert scene.sample.truth.semantic is not None
    table = np.full(VOID + 1, VOID, np.uint8)
    table[: len(SEMANTIC)] = [classes.index(names.get(name, name)) for name in SEMANTIC]
    return SemanticMap(table[scene.sample.truth.semantic.labels], VOID)


def _as_coco(scene: Rendered, index: int) -> Sample:
    return replace(scene.sample, id=str(index))


def _as_voc(scene: Rendered, index: int) -> Sample:
    """VOC has persons, bicycles, cars and buses; everything else is background."""
    return replace(scene.sample, truth=Truth(_renamed(_objects(scene), _names(scene), voc.CLASSES)))


def _as_yolo(scene: Rendered, index: int) -> Sample:
    return replace(scene.sample, truth=Truth(replace(_objects(scene), masks=None)))


def as_cityscapes(scene: Rendered, index: int = 0) -> Sample:
    """Riders and traffic lights have classes of their own."""
    names = ["rider" if rides else _CITYSCAPES.get(name, name)
             for name, rides in zip(_names(scene), _rides(scene), strict=True)]  # fmt: skip
    classes = cityscapes.SEMANTIC_CLASSES
    stuff = _semantic(scene, {}, classes).labels
    things = np.array([VOID, *map(classes.index, names)], np.uint8)[scene.instance]
    semantic = SemanticMap(np.where(scene.instance > 0, things, stuff), VOID)
    return replace(scene.sample, truth=Truth(_renamed(_objects(scene), names, cityscapes.CLASSES), semantic))


def _as_camvid(scene: Rendered, index: int) -> Sample:
    """Trucks and buses are cars, a rider with a bicycle is a bicyclist, traffic lights are signs."""
    semantic = _semantic(scene, _CAMVID, camvid.CLASSES)
    riders = np.flatnonzero(_rides(scene)) + 1
    semantic.labels[np.isin(scene.instance, riders)] = camvid.CLASSES.index("bicyclist")
    return replace(scene.sample, truth=Truth(semantic=semantic))


def _as_kitti(scene: Rendered) -> tuple[Sample, tuple[tuple[float, ...], ...]]:
    """A rider and the bicycle are one Cyclist, buses are Misc; bicycles alone, traffic lights and signs have
    no label. Also returns the box in space of each object, as KITTI's lines state it."""
    objects, rides = _objects(scene), _rides(scene)
    bicycles = {group: k for k, group in enumerate(scene.groups)
                if group >= 0 and objects.labels[k] == BICYCLE}  # fmt: skip
    kept = [k for k, name in enumerate(_names(scene)) if name in _KITTI]
    pairs = [[k, *([bicycles[scene.groups[k]]] if rides[k] and scene.groups[k] in bicycles else [])]
             for k in kept]  # fmt: skip
    names = ["Cyclist" if rides[k] else _KITTI[OBJECTS[objects.labels[k]]] for k in kept]
    low, high = objects.boxes[:, :2], objects.boxes[:, 2:]
    truth = Instances(
        np.array([(*low[pair].min(axis=0), *high[pair].max(axis=0)) for pair in pairs]).reshape(-1, 4),
        np.array([kitti.CLASSES.index(name) for name in names], np.int64),
        ignore=np.array([objects.ignore[pair].all() for pair in pairs], np.bool_),
        occlusion=np.array([objects.occlusion[pair].min() for pair in pairs]),
        truncation=np.array([objects.truncation[pair].min() for pair in pairs]),
    )
    solids = (scene.solids[k] for k in kept)
    lines = ((one.alpha, one.height, one.width, one.length, *one.at, one.turn) for one in solids)
    return replace(scene.sample, truth=Truth(truth)), tuple(lines)


@dataclass(frozen=True, slots=True)
class Format:
    """How scenes are stored in a format: names of files and classes, and the conversion to these classes."""

    name: str  # of image files; a template
    sample: Callable[[Rendered, int], Sample]
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    category_ids: tuple[int, ...] = ()
    split: str = "{split}"  # the name of a split; a template


FORMATS: Mapping[str, Format] = {
    "coco": Format("{index:012d}", _as_coco, OBJECTS, (), COCO_IDS, split="{split}2017"),
    "voc": Format("{split}_{index:06d}", _as_voc, voc.CLASSES),
    "cityscapes": Format(
        f"{cityscapes.CITY}_{{thousands:06d}}_{{rest:06d}}", as_cityscapes, cityscapes.CLASSES,
        cityscapes.SEMANTIC_CLASSES,
    ),
    "yolo": Format("{index:06d}", _as_yolo, OBJECTS),
    "kitti": Format("{index:06d}", lambda scene, _: _as_kitti(scene)[0], kitti.CLASSES),
    "camvid": Format("{split}_{index:06d}", _as_camvid, (), camvid.CLASSES),
    "panoptic": Format("{index:012d}", _as_coco, OBJECTS, SEMANTIC, split="{split}2017"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SceneOrder:
    """What to write: scenes 0 … count − 1 of a split, at a size, in a format."""

    split: str
    count: int
    format: str
    width: int = 512
    height: int = 320
    seed: int = 0
    stereo: bool = False
    baseline: float = BASELINE
    suffix: str = ".png"

    def check(self) -> None:
        if self.format not in FORMATS:
            raise UnknownName("format", self.format, FORMATS, f"Formats: {', '.join(FORMATS)}.")
        check_scene(self.split, 0, self.width, self.height, self.baseline)
        if not 0 < self.count <= SPLITS[self.split]:
            raise InvalidOption(
                f"Count {self.count}: split {self.split!r} has 1 to {SPLITS[self.split]} scenes."
            )

    def destination(self, root: Path) -> Destination:
        known = FORMATS[self.format]
        return Destination(
            root, known.split.format(split=self.split), self.suffix, classes=known.classes,
            semantic_classes=known.semantic_classes, category_ids=known.category_ids,
        )  # fmt: skip


def _write(order: SceneOrder, root: Path, index: int) -> tuple[int, Record]:
    """Render and write one scene; runs in a worker."""
    scene = render(
        order.seed, order.split, index, width=order.width, height=order.height,
        stereo=order.stereo, baseline=order.baseline,
    )  # fmt: skip
    camera = scene.sample.context.camera
    assert camera is not None
    context = replace(scene.sample.context, camera=replace(camera, baseline=order.baseline))
    scene = replace(scene, sample=replace(scene.sample, context=context))
    known, destination = FORMATS[order.format], order.destination(root)
    thousands, rest = divmod(index, 1000)
    name = known.name.format(split=order.split, index=index, thousands=thousands, rest=rest)
    if order.format == "kitti":
        return index, kitti.write_sample(destination, name, *_as_kitti(scene))[1]
    return index, find_writer(order.format).write(destination, name, known.sample(scene, index))[1]


def check_destination(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that is not empty, a file, and a place that is not writable."""
    if out.is_dir():
        if any(out.iterdir()) and not overwrite:
            raise OutputError(f"{out} is not empty; choose another folder, or add --overwrite to replace it.")
    elif out.exists():
        raise OutputError(f"{out} is a file; choose a folder.")
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise OutputError(f"Cannot write to {out}: {above} is not a folder you may write to; choose another.")


def export(
    order: SceneOrder,
    out: Path,
    *,
    workers: int = 1,
    overwrite: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Write the scenes to a new folder `out`, which appears only once it is complete.

    `advance` is called after every scene. An interrupted export leaves nothing behind.
    """
    order.check()
    if workers < 0:
        raise InvalidOption(f"Workers {workers}: give a number of processes, or 0 for one per core.")
    workers = min(worker_count(workers), max(1, order.count // 4))
    try:
        check_destination(out, overwrite=overwrite)
        out.parent.mkdir(parents=True, exist_ok=True)
        begun = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        try:
            records: dict[int, Record] = {}
            for index, record in spread(partial(_write, order, begun), range(order.count), workers=workers):
                records[index] = record
                advance()
            in_order = [records[index] for index in range(order.count)]
            find_writer(order.format).finish(order.destination(begun), in_order)
            begun.chmod(0o755)
            if out.exists():
                shutil.rmtree(out)
            begun.rename(out)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
    except OutputError:
        raise
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise OutputError(
            f"Cannot write to {out}: {error.strerror}; choose a folder you may write to."
        ) from error
    except OSError as error:
        raise OutputError(f"Cannot write to {out}: {error}.") from error
