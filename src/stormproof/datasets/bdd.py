"""BDD100K: boxes from one JSON file of frames, semantic maps with Cityscapes' 19 classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormproof.core.errors import DatasetError
from stormproof.core.files import first_folder, folder, is_file, list_files, locate, read_json
from stormproof.core.randomness import Frame
from stormproof.core.sample import Instances, Truth
from stormproof.datasets.annotations import (
    IGNORE,
    are_corners,
    by_stem,
    expect_list,
    file_name,
    flagged_fraction,
    identity_table,
    is_number,
    map_dataset,
    named_folder,
    raise_all,
    split_folder,
    unique_names,
)
from stormproof.datasets.cityscapes import SEMANTIC_CLASSES
from stormproof.datasets.dataset import READERS, FileDataset, Labels

CLASSES = (
    "pedestrian", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle", "traffic light",
    "traffic sign",
)  # fmt: skip
# Names of the 2018 release, and the categories that the benchmark ignores, with the class they belong to.
RENAMED = {"person": "pedestrian", "bike": "bicycle", "motor": "motorcycle"}
TRACKS_HERTZ = 5.0  # labelled frames per second of the tracking sets
EXCUSED = {"other person": "pedestrian", "other vehicle": "car", "trailer": "truck"}


@READERS.declare("bdd")
def open_bdd(main: str, *, images: str | None = None) -> FileDataset:
    """Boxes from `det_val.json` or `bdd100k_labels_images_val.json`; `images` is the folder of its images.

    Labels without a box (lanes, drivable areas) are skipped. A folder, such as `box_track_20/val`, holds one
    file per video. Frames with `videoName` and `frameIndex` belong to clips of 5 frames a second, as BDD100K
    labels tracks; their images may lie in a folder of the video's name.
    """
    path = locate(main)
    sources = tuple(list_files(path, {".json"})) if path.is_dir() else (path,)
    frames = [frame for source in sources for frame in _frames(source)]
    names = [file_name(frame, path, f"frame {i}", "name") for i, frame in enumerate(frames)]
    raise_all(
        [error for i, frame in enumerate(frames) for error in _describe_errors(frame, path, f"frame {i}")]
    )
    raise_all([problem for frame in frames for problem in _problems(frame, path)])
    directory = named_folder("images", images, path.parent) if images else path.parent
    ids = unique_names((name.stem for name in names), path, "frame")
    return FileDataset(
        name=path.stem,
        root=path.parent,
        ids=ids,
        images=tuple(_image(directory, name, frame, path) for name, frame in zip(names, frames, strict=True)),
        labels=BddBoxes(tuple(tuple(_boxed_labels(frame)) for frame in frames)),
        sources=sources,
        classes=CLASSES,
        attributes=_attributes(frames, ids),
        frames=_clips(frames, ids),
    )


def _frames(path: Path) -> list[Any]:
    content = read_json(path)
    return content if isinstance(content, list) else expect_list(content, "frames", path)


def _image(directory: Path, name: Path, frame: Mapping[str, Any], path: Path) -> Path:
    if not frame.get("videoName"):
        return directory / name
    inside = directory / file_name(frame, path, f"frame {frame['name']!r}", "videoName") / name
    return inside if is_file(inside) else directory / name


def _clips(frames: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> dict[str, Frame]:
    """The frames of videos with several frames; a video's only frame is an image like any other."""
    placed = {
        name: Frame(name, str(frame["videoName"]), float(frame["frameIndex"]) / TRACKS_HERTZ)
        for name, frame in zip(ids, frames, strict=True)
        if frame.get("videoName") and is_number(frame.get("frameIndex"))
    }
    several = Counter(frame.sequence for frame in placed.values())
    return {name: frame for name, frame in placed.items() if several[frame.sequence] > 1}


@READERS.declare("bdd-seg")
def open_bdd_segmentation(main: str, *, split: str = "val") -> FileDataset:
    """Semantic maps: `images/10k/SPLIT` with `labels/sem_seg/masks/SPLIT`, or the older `seg` folder."""
    root = locate(main)
    images = first_folder([root / "images" / "10k", root / "images", root / "seg" / "images"], "images")
    masks = first_folder(
        [root / "labels" / "sem_seg" / "masks", root / "labels", root / "seg" / "labels"], "label maps"
    )
    maps = by_stem(list_files(split_folder(masks, split), {".png"}), ["_train_id"])
    table = identity_table(SEMANTIC_CLASSES, IGNORE)
    return map_dataset(
        f"bdd100k-{split}", root, folder(images / split, "images"), maps, table, SEMANTIC_CLASSES
    )


def _attributes(frames: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Weather, scene and time of day, by name and frame; undefined values are left out."""
    attributes: dict[str, dict[str, str]] = {}
    for frame, name in zip(frames, ids, strict=True):
        held = frame.get("attributes")
        for key, value in held.items() if isinstance(held, Mapping) else ():
            if isinstance(value, str) and value != "undefined":
                attributes.setdefault(str(key), {})[name] = value
    return attributes


def _describe_errors(frame: Mapping[str, Any], path: Path, where: str) -> Iterator[DatasetError]:
    """Errors in the structure of a frame."""
    labels = frame.get("labels")
    if labels is not None and not isinstance(labels, list):
        yield DatasetError(path, f"labels is {labels!r:.60}, not a list.", where)
        return
    for i, label in enumerate(labels or []):
        attributes = label.get("attributes") if isinstance(label, Mapping) else None
        if not isinstance(label, Mapping) or not isinstance(attributes, Mapping | None):
            yield DatasetError(
                path, f"is {label!r:.60}; a label and its attributes must be objects.", f"{where}, label {i}"
            )


def _boxed_labels(frame: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (label for label in frame.get("labels") or [] if label.get("box2d") is not None)


def _problems(frame: Mapping[str, Any], path: Path) -> Iterator[DatasetError]:
    for i, label in enumerate(_boxed_labels(frame)):
        where = f"frame {frame['name']!r}, label {label.get('id', i)}"
        if _class(label) not in CLASSES:
            yield DatasetError(path, f"unknown category {label.get('category')!r}.", where)
        corners = _corners(label)
        if not are_corners(corners):
            problem = f"box2d {label['box2d']!r:.120} must have finite x1, y1, x2 ≥ x1 and y2 ≥ y1."
            yield DatasetError(path, problem, where)


def _track(label: Mapping[str, Any]) -> int:
    """The number of an object's track; −1 if its id is not a number that fits into 64 bits."""
    text = str(label.get("id", ""))
    return int(text) if text.isdecimal() and len(text) <= 18 else -1


def _class(label: Mapping[str, Any]) -> str:
    category = str(label.get("category"))
    return RENAMED.get(category, EXCUSED.get(category, category))


def _corners(label: Mapping[str, Any]) -> tuple[float, ...]:
    try:
        return tuple(float(label["box2d"][key]) for key in ("x1", "y1", "x2", "y2"))
    except (KeyError, TypeError, ValueError, OverflowError):
        return (float("nan"),) * 4


@dataclass(frozen=True)
class BddBoxes(Labels):
    """The labels of each frame that have boxes."""

    frames: tuple[tuple[Mapping[str, Any], ...], ...]

    def truth(self, index: int) -> Truth:
        rows = map(_row, self.frames[index])
        return Truth(Instances.of(rows, "crowd", "ignore", "occlusion", "truncation", "tracks"))


def _row(label: Mapping[str, Any]) -> tuple[Any, ...]:
    said = label.get("attributes") or {}
    hidden, cut = (flagged_fraction(said.get(key)) for key in ("occluded", "truncated"))
    excused = bool(said.get("crowd")), label["category"] in EXCUSED
    return _corners(label), CLASSES.index(_class(label)), *excused, hidden, cut, _track(label)
