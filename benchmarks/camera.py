"""Every camera fault at every severity: CPU milliseconds at 640×480 on one core.

    python benchmarks/camera.py            medians of 15 images a cell
    python benchmarks/camera.py --quick    medians of 3

Where albumentations is installed and has the same operation (Gaussian blur, a power curve, one black
block), it runs in turn with ours at severity 5. `--limit 10` makes the exit code 1 if any cell takes longer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import cv2
import numpy as np
import skimage.data
from rich.console import Console
from rich.table import Table

from stormproof.core.condition import SEVERITIES, Condition
from stormproof.corruptions import corrupt_image
from stormproof.corruptions.suites import ORDER

Call = Callable[[], object]


def photo() -> np.ndarray:
    return cv2.resize(skimage.data.astronaut(), (640, 480), interpolation=cv2.INTER_AREA)


def milliseconds(calls: list[Call], repeats: int) -> list[float]:
    """Median CPU time of each call, all taken in turn so that a noisy machine disturbs them alike."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats + 1):
        for own, call in zip(times, calls, strict=True):
            start = time.process_time()
            call()
            own.append(1000 * (time.process_time() - start))
    return [median(own[1:]) for own in times]  # the first compiles and fills caches


def peers(image: np.ndarray) -> dict[str, Call]:
    """What albumentations shares with a fault, with the parameters of severity 5."""
    if not find_spec("albumentations"):
        return {}
    import albumentations as al

    same: dict[str, Any] = {
        "focus_motor_damage": al.GaussianBlur(blur_limit=0, sigma_limit=(3.0, 3.0), p=1),
        "gamma_damage": al.RandomGamma(gamma_limit=(220, 220), p=1),
        "memory_exception": al.CoarseDropout(
            num_holes_range=(1, 1), hole_height_range=(0.12, 0.12), hole_width_range=(0.12, 0.12), fill=0, p=1
        ),
    }
    return {name: partial(operation, image=image) for name, operation in same.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit", type=float, help="milliseconds that no cell may exceed")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    image, repeats = photo(), 3 if options.quick else 15
    others = peers(image)
    table = Table("fault", *(f"@{s}" for s in SEVERITIES), "albumentations @5", box=None, pad_edge=False)
    slowest = 0.0
    for name in ORDER:
        ours: list[Call] = [partial(corrupt_image, image, Condition.of(name, s)) for s in SEVERITIES]
        times = milliseconds([*ours, *([others[name]] if name in others else [])], repeats)
        slowest = max(slowest, *times[:5])
        table.add_row(name, *(f"{t:.2f}" for t in times), *([""] if name not in others else []))
    Console().print(table)
    print(f"slowest cell: {slowest:.2f} ms")
    if options.limit is not None and slowest > options.limit:
        sys.exit(1)


if __name__ == "__main__":
    main()
