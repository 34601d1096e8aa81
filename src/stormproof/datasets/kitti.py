"""KITTI object detection: `image_2`, `label_2` and `calib` folders of numbered files. KITTI tracking: clips.

The writer turns excused objects into DontCare regions. It also stores what a sample's context has: the
right-hand image in `image_3`, the camera in `calib`, and depth in `depth_2` as metres × 256 in 16 bits,
where 0 is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stormproof.core.errors import DatasetError
from stormproof.core.files import first_folder, list_files, locate, read_text
from stormproof.core.randomness import Frame
from stormproof.core.sample import Camera, Instances, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import (
    are_corners,
    by_stem,
    list_images,
    raise_all,
    read_split,
    split_files,
    split_name,
    unknown_split,
)
from stormproof.datasets.dataset import READERS, FileDataset, Labels
from stormproof.datasets.groups import drop_singletons
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer, lacks_objects

CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc")
DONT_CARE = "DontCare"

# KITTI grades occlusion (visible, partly, largely, unknown); each grade is read as one fraction.
OCCLUSION = {-1: np.nan, 0: 0.0, 1: 1 / 3, 2: 2 / 3, 3: np.nan}


@READERS.declare("kitti")
def open_kitti(main: str, *, split: str | None = None) -> FileDataset:
    """Open a KITTI object folder; `split` names a list in ImageSets; without it, every image is read."""
    root = locate(main)
    root = root / "training" if (root / "training" / "label_2").is_dir() else root
    labels = by_stem(list_files(first_folder([root / "label_2", root / "labels"], "label files"), {".txt"}))
    ids = _ids(root, split) or tuple(sorted(labels))
    files = split_files(ids, labels, root / "label_2" / "id.txt", split)
    if not ids:
        raise DatasetError(root / "label_2", "contains no label files.")
    directory = next((p for p in (root / "image_2", root / "images") if p.is_dir()), root / "image_2")
    images = by_stem(list_images(directory)) if directory.is_dir() else {}
    if split is None:
        _refuse_unlabelled(images, labels, "an empty file if it shows no object, or a list of ids and split=")
    return FileDataset(
        name=split_name(root, split),
        root=root,
        ids=ids,
        images=tuple(images.get(name, directory / f"{name}.png") for name in ids),
        labels=KittiObjects(files),
        sources=files,
        classes=CLASSES,
        groups=drop_singletons({name: match[1] for name in ids if (match := _DRIVE.match(name))}),
    )


# Names of raw recordings, 2011_09_26_drive_0005_sync_0000000109, and of the stereo sets, 000042_10 and
# 000042_11; the object benchmark numbers its images at random.
_DRIVE = re.compile(r"(\d{4}_\d\d_\d\d_drive_\d{4}|\d{6}(?=_\d\d$))", re.ASCII)
HERTZ = 10.0  # frames per second of KITTI's recordings


@READERS.declare("kitti-tracking")
def open_kitti_tracking(main: str, *, sequence: str | None = None) -> FileDataset:
    """Open a KITTI tracking folder: `label_02/0000.txt` with `image_02/0000/000000.png`, …, at 10 frames a
    second. `sequence` names one of the sequences; without it, all are read."""
    root = locate(main)
    root = root / "training" if (root / "training" / "label_02").is_dir() else root
    files = by_stem(list_files(first_folder([root / "label_02"], "label files"), {".txt"}))
    if sequence is not None and sequence not in files:
        raise unknown_split(sequence, files, root / "label_02")
    chosen = sorted(files) if sequence is None else [sequence]
    if sequence is None and (root / "image_02").is_dir():
        folders = {place.name: place for place in (root / "image_02").iterdir() if place.is_dir()}
        _refuse_unlabelled(folders, files, "an empty file if it shows no object, or sequence=")
    frames, images, places = dict[str, Frame](), list[Path](), list[tuple[int, int]]()
    for clip, name in enumerate(chosen):
        for image in list_images(first_folder([root / "image_02" / name], f"images of sequence {name}")):
            if not image.stem.isdecimal():
                raise DatasetError(image, "must be named by the number of its frame, as 000012.png.")
            identity = f"{name}/{image.stem}"
            frames[identity] = Frame(identity, name, int(image.stem) / HERTZ)
            images.append(image)
            places.append((clip, int(image.stem)))
    if not images:
        raise DatasetError(root / "image_02", "contains no images.")
    sources = tuple(files[name] for name in chosen)
    return FileDataset(
        name=split_name(root, sequence), root=root, ids=tuple(frames), images=tuple(images),
        labels=KittiTracks(sources, tuple(places)), sources=sources, classes=CLASSES, frames=frames,
    )  # fmt: skip


def _refuse_unlabelled(images: Mapping[str, Path], labels: Mapping[str, Path], fix: str) -> None:
    """Refuse images without a label file: leaving them out would change every score without a word."""
    raise_all([DatasetError(images[name], f"has no label file; add one, {fix}.")
               for name in sorted(images.keys() - labels.keys())])  # fmt: skip


def _ids(root: Path, split: str | None) -> tuple[str, ...]:
    if split is None:
        return ()
    folders = (root / "ImageSets", root.parent / "ImageSets")
    listing = next((f / f"{split}.txt" for f in folders if (f / f"{split}.txt").is_file()), None)
    if listing is None:
        raise unknown_split(split, [f.stem for place in folders for f in place.glob("*.txt")], root)
    return read_split(listing)


@dataclass(frozen=True)
class KittiObjects(Labels):
    """One text file per image, one object per line."""

    files: tuple[Path, ...]

    def truth(self, index: int) -> Truth:
        file = self.files[index]
        lines = enumerate(read_text(file).splitlines(), 1)
        return _truth([row for i, line in lines if line.strip() for row in _rows(line, file, i)])


def _truth(rows: Sequence[_KittiObject]) -> Truth:
    return Truth(Instances.of(rows, *_KittiObject._fields[2:]))


@dataclass(frozen=True)
class KittiTracks(Labels):
    """One text file per sequence, one object per line, with the numbers of its frame and its track."""

    files: tuple[Path, ...]
    places: tuple[tuple[int, int], ...]  # of each image: its file, and its number in the sequence

    def truth(self, index: int) -> Truth:
        file, frame = self.places[index]
        return _truth(self._tables[file].get(frame, []))

    @cached_property
    def _tables(self) -> list[dict[int, list[_KittiObject]]]:
        return [_tracks(file) for file in self.files]


def _tracks(file: Path) -> dict[int, list[_KittiObject]]:
    """The objects of a sequence by frame."""
    by_frame: dict[int, list[_KittiObject]] = {}
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip():
            continue
        frame, _, rest = line.strip().partition(" ")
        track, _, rest = rest.strip().partition(" ")
        try:
            place, identity = int(frame), int(np.int64(int(track)))
        except (ValueError, OverflowError):
            problem = f"{line!r:.80} must begin with the numbers of its frame and its track."
            raise DatasetError(file, problem, f"line {number}") from None
        kind = rest.strip()
        rows = _rows(kind.replace("Person ", "Person_sitting ", 1), file, number)
        by_frame.setdefault(place, []).extend(row._replace(tracks=identity) for row in rows)
    return by_frame


class _KittiObject(NamedTuple):
    box: tuple[float, float, float, float]
    label: int
    ignore: bool
    truncation: float
    occlusion: float
    distance: float
    tracks: int = -1


def _rows(line: str, file: Path, number: int) -> list[_KittiObject]:
    """One line: type, truncation, occlusion, angle, box x1 y1 x2 y2, and 3-D fields, of which z is used.

    A DontCare region excuses detections of any class, so it becomes one ignored object of every class.
    """
    where, fields = f"line {number}", line.split()
    name = fields[0] if fields else ""
    if name not in (*CLASSES, DONT_CARE):
        problem = f"unknown type {name!r}; KITTI has {', '.join(CLASSES)} and {DONT_CARE}."
        raise DatasetError(file, problem, where)
    try:
        truncation, occlusion, _, x1, y1, x2, y2 = map(float, fields[1:8])
    except ValueError:
        raise DatasetError(file, f"{line!r:.80} must be a type and at least 7 numbers.", where) from None
    if not are_corners((x1, y1, x2, y2)):
        problem = f"box x1, y1, x2, y2 = {(x1, y1, x2, y2)} must be finite, with x2 ≥ x1 and y2 ≥ y1."
        raise DatasetError(file, problem, where)
    if occlusion not in OCCLUSION:
        raise DatasetError(file, f"occlusion {occlusion:g} must be 0, 1, 2 or 3 (−1 for {DONT_CARE}).", where)
    labels = range(len(CLASSES)) if name == DONT_CARE else [CLASSES.index(name)]
    cut = truncation if truncation >= 0 else np.nan
    hidden = OCCLUSION[int(occlusion)]
    away = _distance(fields)
    return [_KittiObject((x1, y1, x2, y2), label, name == DONT_CARE, cut, hidden, away) for label in labels]


def _distance(fields: Sequence[str]) -> float:
    """The distance of the object's centre along the camera's axis in metres; NaN if the line has none."""
    try:
        z = float(fields[13])
    except (IndexError, ValueError):
        return float("nan")
    return z if 0 < z < float("inf") else float("nan")


PARTLY, LARGELY = 0.1, 0.5  # occluded fractions from which grades 1 and 2 begin
FARTHEST = 255.99  # metres; larger depths do not fit into 16 bits
_NO_3D_BOX = "-1 -1 -1 -1000 -1000 -1000 -10"  # how KITTI writes an unmeasured 3-D box


def write_sample(
    destination: Destination, name: str, sample: Sample, solids: Sequence[Sequence[float]] = ()
) -> tuple[Path, Record]:
    """Write one sample; `solids`, if given, are its objects in space, in the numbers of KITTI's lines: alpha,
    then height, width, length, x, y, z and rotation_y."""
    path, context = destination.write_image("training/image_2", name, sample.image), sample.context
    lines = dict.fromkeys(_lines(sample.truth.objects, destination.classes, solids))
    destination.write_text("training/label_2", f"{name}.txt", "".join(f"{line}\n" for line in lines))
    if context.right is not None:
        destination.write_image("training/image_3", name, context.right)
    if context.camera is not None:
        destination.write_text("training/calib", f"{name}.txt", _calibration(context.camera))
    if context.depth is not None:
        metres = np.where(context.depth < FARTHEST, context.depth, 0) * np.float32(256)
        destination.write_map("training/depth_2", name, np.rint(metres).astype(np.uint16))
    return path, {"name": name}


def _lines(objects: Instances, classes: Sequence[str], solids: Sequence[Sequence[float]]) -> Iterator[str]:
    """A line per object; one region that excuses several classes gives the same line several times."""
    for k, corners in enumerate(objects.boxes.tolist()):
        box = " ".join(f"{v:.2f}" for v in corners)
        if objects.crowd[k] or objects.ignore[k]:
            yield f"{DONT_CARE} -1 -1 -10 {box} {_NO_3D_BOX}"
            continue
        alpha, space = "-10", _NO_3D_BOX
        if solids:
            alpha, *rest = (f"{value:.2f}" for value in solids[k])
            space = " ".join(rest)
        cut = objects.truncation[k]
        truncation = "-1" if np.isnan(cut) else f"{cut:.2f}"
        grade = _grade(float(objects.occlusion[k]))
        yield f"{classes[int(objects.labels[k])]} {truncation} {grade} {alpha} {box} {space}"


def _grade(occlusion: float) -> int:
    if np.isnan(occlusion):
        return 3
    return 0 if occlusion < PARTLY else 1 if occlusion < LARGELY else 2


def _calibration(camera: Camera) -> str:
    """KITTI's matrices for cameras 0 to 3: 0 and 2 are on the left, 1 and 3 on the right."""

    def row(values: Iterable[float]) -> str:
        return " ".join(f"{v:.12e}" for v in values)

    def projection(shift: float) -> str:
        return row((camera.fx, 0, camera.cx, -camera.fx * shift, 0, camera.fy, camera.cy, 0, 0, 0, 1, 0))

    cameras = range(3) if camera.baseline is None else range(4)
    shifts = {1: camera.baseline or 0.0, 3: camera.baseline or 0.0}
    lines = [f"P{k}: {projection(shifts.get(k, 0.0))}" for k in cameras]
    # A laser scanner's axes, x ahead, y left, z up, at the left camera's place.
    scanner = row((0, -1, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0))
    rest = (f"R0_rect: {row(np.eye(3).ravel())}", f"Tr_velo_to_cam: {scanner}",
            f"Tr_imu_to_velo: {row(np.eye(3, 4).ravel())}", "")  # fmt: skip
    return "\n".join((*lines, *rest))


def _finish(destination: Destination, records: Sequence[Record]) -> None:
    names = "".join(f"{record['name']}\n" for record in records)
    destination.write_text("ImageSets", f"{destination.split}.txt", names)


def _spec(destination: Destination) -> Spec:
    return Spec("kitti", str(destination.root), {"split": destination.split})


def _lacks(destination: Destination) -> str:
    unknown = [name for name in destination.classes if name not in CLASSES]
    return f"{unknown[0]!r} is not a KITTI class" if unknown else lacks_objects(destination)


WRITERS.add("kitti", Writer(write_sample, _spec, _lacks, finish=_finish), module=__name__)
