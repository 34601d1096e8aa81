"""Depth and disparity maps and camera calibrations in files, and folders of estimated depth.

Depth is float32 metres: infinity is the sky, NaN is unknown. Disparity is float32 pixels; NaN is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError, OutputError
from stormproof.core.files import make_folder, read_npy, read_npz, read_text, whole_file
from stormproof.core.imagefile import open_image
from stormproof.core.sample import Camera

Map = npt.NDArray[np.float32]

SUFFIXES = frozenset({".png", ".pfm", ".npy", ".pgm", ".tif", ".tiff"})
CALIBRATION_SUFFIXES = frozenset({".txt", ".json"})
JOURNAL = "keys.jsonl"  # of a folder of estimated depth: what each map was made from
DOUBT = 0.5  # a pixel with less confidence is doubtful
MOST_DOUBTFUL = 0.3  # an image with more than this fraction of doubtful pixels is reported
UNITS_16_BIT = 256.0  # KITTI and Cityscapes store 256 units per metre of depth or pixel of disparity


@dataclass(frozen=True)
class Calibration:
    """A camera, and the offset in pixels that is added to disparities before triangulating (`doffs`)."""

    camera: Camera
    offset: float = 0.0


def stem_of(sample_id: str) -> str:
    """The stem of the file that stores a sample's map; different ids have different stems.

    >>> stem_of("aachen/000001")
    'aachen%2F000001'
    """
    return quote(sample_id, safe=" +,=@()[]")


def read_depth(path: Path, scale: float | None = None) -> Map:
    """Read depth in metres; `scale` is the number of stored units per metre.

    By default, 16-bit files have 256 units per metre, as in KITTI, and floating-point files (PFM, NPY, TIFF)
    contain metres. In a file of integers, 0 means unknown.
    """
    stored, known = _read(path)
    depth = stored / np.float32(_scale(scale, stored, path))
    return np.where(known & (depth > 0), depth, np.float32(np.nan)).astype(np.float32)


def read_disparity(path: Path, scale: float | None = None) -> Map:
    """Read disparity in pixels; `scale` is the number of stored units per pixel.

    By default, 16-bit files have 256 units per pixel, 8-bit and floating-point files one. In a file of
    integers, 0 means unknown; in a file of floats, infinity does.
    """
    stored, known = _read(path)
    disparity = stored / np.float32(_scale(scale, stored, path))
    known &= np.isfinite(disparity) & (disparity >= 0)
    return np.where(known, disparity, np.float32(np.nan)).astype(np.float32)


def depth_from_disparity(disparity: Map, calibration: Calibration) -> Map:
    """Depth = focal length × baseline / (disparity + offset); a disparity of 0 is infinitely far.

    >>> camera = Camera(fx=700, fy=700, cx=0, cy=0, baseline=0.5)
    >>> depth_from_disparity(np.array([[35.0, 0.0]], np.float32), Calibration(camera)).tolist()
    [[10.0, inf]]
    """
    camera = calibration.camera
    if camera.baseline is None:
        raise ValueError("depth from disparity needs a calibration with a baseline")
    with np.errstate(divide="ignore"):
        depth = np.float32(camera.fx * camera.baseline) / (disparity + np.float32(calibration.offset))
    return np.where(depth > 0, depth, np.float32(np.nan)).astype(np.float32)


def fill_unknown(depth: Map) -> Map:
    """Give unknown pixels the depth of the nearest known one; a map without known pixels is unchanged."""
    from scipy.ndimage import distance_transform_edt

    unknown = np.isnan(depth)
    if unknown.all() or not unknown.any():
        return depth
    nearest = distance_transform_edt(unknown, return_distances=False, return_indices=True)
    filled: Map = depth[tuple(nearest)]
    return filled


def _read(path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The numbers in a file, and which of them are known."""
    if path.suffix.lower() == ".npy":
        stored = read_npy(path)
    else:
        with open_image(path) as image:
            stored = np.array(image)
    if stored.ndim != 2 or stored.dtype.kind not in "uif":
        raise DatasetError(
            path, f"contains {stored.dtype} {stored.shape}; a depth or disparity map is H×W numbers."
        )
    known = ~np.isnan(stored) if stored.dtype.kind == "f" else stored > 0
    return stored, known


def _scale(scale: float | None, stored: npt.NDArray[Any], path: Path) -> float:
    if scale is None:
        return UNITS_16_BIT if stored.dtype.kind in "ui" and stored.dtype != np.uint8 else 1.0
    if not (isfinite(scale) and scale > 0):
        raise DatasetError(path, f"scale {scale} must be a finite number > 0.")
    return scale


def read_calibration(path: Path) -> Calibration:
    """Read a KITTI or Middlebury text file, a Cityscapes camera JSON, or JSON with fx, fy, cx, cy."""
    text = read_text(path)
    try:
        if path.suffix.lower() == ".json":
            calibration = _from_json(json.loads(text))
        else:
            calibration = _from_middlebury(text) if "cam0" in text else _from_kitti(text)
        camera = calibration.camera
        numbers = (camera.fx, camera.fy, camera.cx, camera.cy, camera.baseline or 0.0, calibration.offset)
        if not all(map(isfinite, numbers)) or min(camera.fx, camera.fy) <= 0:
            raise ValueError("numbers must be finite, and focal lengths > 0")
        return calibration
    except (
        KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError
    ) as error:  # fmt: skip
        known = "KITTI, Middlebury, Cityscapes, or JSON with fx, fy, cx, cy"
        raise DatasetError(path, f"is not a calibration ({error!r:.80}); known formats: {known}.") from None


def _from_json(content: Mapping[str, Any]) -> Calibration:
    if "intrinsic" in content:
        inner, baseline = content["intrinsic"], float(content["extrinsic"]["baseline"])
        camera = Camera(
            float(inner["fx"]), float(inner["fy"]), float(inner["u0"]), float(inner["v0"]), baseline
        )
        # Cityscapes stores disparity × 256 + 1, so that 0 is free to mean unknown.
        return Calibration(camera, offset=-1 / UNITS_16_BIT)
    fx, fy, cx, cy = (float(content[key]) for key in ("fx", "fy", "cx", "cy"))
    stated = content.get("baseline")
    return Calibration(Camera(fx, fy, cx, cy, None if stated is None else float(stated)))


def _from_middlebury(text: str) -> Calibration:
    """`cam0=[f 0 cx; 0 f cy; 0 0 1]`, `doffs` in pixels and `baseline` in millimetres."""
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    matrix = [float(number) for number in re.findall(r"[-+\d.eE]+", fields["cam0"])]
    offset = float(fields.get("doffs", 0))
    baseline = float(fields["baseline"]) / 1000
    camera = Camera(matrix[0], matrix[4], matrix[2], matrix[5], baseline, offset)
    return Calibration(camera, offset)


def _from_kitti(text: str) -> Calibration:
    """The left colour camera, P2, and its distance from the right one, P3, both rectified."""
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    left = [float(number) for number in (rows.get("P2") or rows["P_rect_02"]).split()]
    right_row = rows.get("P3") or rows.get("P_rect_03")
    baseline = None
    if right_row:
        right = [float(number) for number in right_row.split()]
        baseline = (left[3] - right[3]) / left[0]
    return Calibration(Camera(left[0], left[5], left[2], left[6], baseline))


@dataclass(frozen=True, slots=True, eq=False)
class DepthEstimate:
    """Estimated depth in metres, and the confidence of each pixel, from 0 to 1."""

    depth: Map
    confidence: Map

    @property
    def mean_confidence(self) -> float:
        """Roughly the share of the image whose depth was measured, or that lies close to measured pixels."""
        return float(self.confidence.mean())

    @property
    def doubtful(self) -> float:
        """The fraction of the pixels with a confidence below `DOUBT`, where depth is a guess."""
        return float((self.confidence < DOUBT).mean())


class _Entry(NamedTuple):
    """What the journal says about a map; NaN where it does not."""

    key: str = ""
    confidence: float = nan
    doubtful: float = nan


class DepthFolder:
    """A folder of estimated depth: for each sample an NPY file in metres and its confidence, and a journal of
    what each map was made from."""

    def __init__(self, folder: Path) -> None:
        self.folder = make_folder(folder)
        self._entries = dict(_read_journal(self.folder / JOURNAL))

    def path(self, sample_id: str) -> Path:
        return self.folder / f"{stem_of(sample_id)}.npy"

    def holds(self, sample_id: str, key: str) -> bool:
        """Whether the sample's map exists and was made from the inputs that the key identifies."""
        return self._entry(sample_id).key == key and self.path(sample_id).is_file()

    def read(self, sample_id: str) -> DepthEstimate:
        """The sample's map and its confidence."""
        return DepthEstimate(
            np.asarray(read_npy(self.path(sample_id)), np.float32), self.confidence(sample_id)
        )

    def confidence(self, sample_id: str) -> Map:
        """The confidence of each pixel of the sample's map, from 0 to 1."""
        (percent,) = read_npz(self._confidence_path(sample_id), "percent")
        return np.asarray(percent, np.float32) / np.float32(100)

    def mean_confidence(self, sample_id: str) -> float:
        """The mean confidence of the sample's map; NaN if the folder does not know it."""
        return self._entry(sample_id).confidence

    def doubtful(self, sample_id: str) -> float:
        """The fraction of doubtful pixels in the sample's map; NaN if the folder does not know it."""
        return self._entry(sample_id).doubtful

    def _entry(self, sample_id: str) -> _Entry:
        return self._entries.get(sample_id, _Entry())

    def write(self, sample_id: str, key: str, estimate: DepthEstimate) -> None:
        """Store a map and its confidence; each file appears whole or not at all."""
        percent = np.rint(100 * estimate.confidence).astype(np.uint8)
        with whole_file(self._confidence_path(sample_id), durable=False) as file:
            np.savez_compressed(file, percent=percent)
        with whole_file(self.path(sample_id), durable=False) as file:
            np.save(file, estimate.depth.astype(np.float32, copy=False))
        mean, doubtful = estimate.mean_confidence, estimate.doubtful
        entry = {"id": sample_id, "key": key, "confidence": round(mean, 4), "doubtful": round(doubtful, 4)}
        try:
            with (self.folder / JOURNAL).open("a+b") as journal:
                journal.seek(max(journal.tell() - 1, 0))
                whole = journal.read() in (b"", b"\n")  # else a crash cut its last line short
                journal.write(b"\n" * (not whole) + json.dumps(entry).encode() + b"\n")
        except OSError as error:
            raise OutputError(
                f"Cannot write {self.folder / JOURNAL}: {error.strerror}; check the folder and its space."
            ) from None
        self._entries[sample_id] = _Entry(key, mean, doubtful)

    def _confidence_path(self, sample_id: str) -> Path:
        # Depth maps have other suffixes, so a dataset that opens the folder does not read this as one.
        return self.folder / f"{stem_of(sample_id)}.confidence.npz"


def _read_journal(path: Path) -> Iterator[tuple[str, _Entry]]:
    for line in read_text(path).splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
            confidence, doubtful = (float(entry.get(name, nan)) for name in ("confidence", "doubtful"))
            yield str(entry["id"]), _Entry(entry["key"], confidence, doubtful)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # a line cut short by a crash: its map is made again
