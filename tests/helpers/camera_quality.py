"""Image quality of the camera faults on real photographs, for tests and docs/make_camera_fidelity.py."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.imagefile import read_image
from stormproof.corruptions import corrupt_image
from stormproof.metrics.quality import ssim

SHARED = Path(__file__).resolve().parents[3] / "shared"
COCO = SHARED / "data" / "coco" / "val2017"
VOC = SHARED / "data" / "voc2012" / "JPEGImages"
ROWS = SHARED / "golden" / "liu_table2_quality.csv"

# Damages whose published SSIM no plausible severities meet; docs/fidelity.md says why.
DISPUTED = ("focus_motor_damage", "lens_shading_damage")
# Damages that meet the paper's VIF, its errors and the authors' scripts instead of its SSIM.
BY_VIF = ("cmos_sensor_damage", "colour_space_damage", "transfer_harness_exception")
TOLERANCE = 0.03


def photographs(folder: Path, count: int | None = None) -> list[Path]:
    """All photographs of a folder, or some spread evenly over it."""
    files = sorted(folder.glob("*.jpg"))
    if count is None or count >= len(files):
        return files
    return [files[round(i * (len(files) - 1) / (count - 1))] for i in range(count)]


def published(measure: str = "ssim") -> dict[str, float]:
    """The paper's SSIM, VIF or IFC by fault, under the names used here."""
    with ROWS.open(encoding="utf-8") as file:
        row = next(row for row in csv.DictReader(file) if row.pop("measure") == measure)
    return {"camera_fog" if name == "fog" else name: float(value) for name, value in row.items()}


def similarities(job: tuple[Path, tuple[Condition, ...]]) -> list[float]:
    """SSIM of one photograph under each condition."""
    path, conditions = job
    cv2.setNumThreads(1)
    clean = read_image(path)
    return [ssim(clean, corrupt_image(clean, c, image_id=path.stem)) for c in conditions]


def mean_similarities(
    paths: Sequence[Path], conditions: Sequence[Condition], *, workers: int = 1
) -> dict[Condition, float]:
    """Mean SSIM over photographs, by condition."""
    jobs = [(path, tuple(conditions)) for path in paths]
    if workers == 1:
        measured = [similarities(job) for job in jobs]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            measured = list(pool.map(similarities, jobs))
    means = np.mean(measured, axis=0)
    return dict(zip(conditions, map(float, means), strict=True))
