"""Stormproof beside imagecorruptions 1.1.2 and its maintained fork: time and extra memory, one core, one run.

    python benchmarks/corruptions.py              severity 3 at both sizes, then every severity at 640×480
    python benchmarks/corruptions.py --quick      severity 3 at 640×480

Times are medians of CPU milliseconds, all taken in turn so that a noisy machine disturbs them alike. "Faster"
is against whichever of the two is faster. The fork, imagecorruptions-imaug, has the same import name, so it
is installed in a folder of its own (`make bench` does that). Memory is the rise of the peak resident set
while one image is made, in bytes of the image.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import skimage.data

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from helpers import reference
from stormproof import corrupt, get_corruption_names

SMALL, LARGE = (480, 640), (1024, 2048)


@dataclass(frozen=True)
class Row:
    name: str
    severity: int
    ours: float
    theirs: float
    fork: float  # NaN where it is not installed

    @property
    def ratio(self) -> float:
        return float(np.nanmin([self.theirs, self.fork])) / self.ours


@cache
def fork() -> Any:
    """The package imagecorruptions-imaug under a name of its own; None where it is not installed."""
    file = Path(sys.prefix) / "fork" / "imagecorruptions" / "__init__.py"
    if not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location(
        "imagecorruptions_fork", file, submodule_search_locations=[str(file.parent)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu_ms(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return 1000 * (time.process_time() - start)


def extra_memory(call: Callable[[], object], image: np.ndarray) -> float:
    """Rise of the peak resident set during one call, in multiples of the image's bytes."""
    call()  # tables, caches and compiled code are not the image's
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    result = call()
    rise = _status("VmHWM") - before
    del result
    return max(rise, 0) / image.nbytes


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def print_memory(size: tuple[int, int]) -> None:
    """Extra memory of every corruption as JSON, for a process whose allocator keeps nothing back."""
    image = photo(size)
    found = {}
    for name in get_corruption_names("all"):
        ours = extra_memory(lambda: corrupt(image, 5, name), image)  # noqa: B023  (called at once)
        slow = name == "glass_blur"  # minutes for the reference; its memory is a few copies of the image
        theirs = float("nan") if slow else extra_memory(lambda: reference.corrupt(image, name, 5), image)  # noqa: B023
        found[name] = (ours, theirs)
    print(json.dumps(found))


def measured_memory(size: tuple[int, int]) -> dict[str, tuple[float, float]]:
    """`print_memory` in a process where freed arrays go back to the system at once."""
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    command = [sys.executable, __file__, "--memory", f"{size[1]}x{size[0]}"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return {name: tuple(pair) for name, pair in json.loads(run.stdout.splitlines()[-1]).items()}


def photo(size: tuple[int, int]) -> np.ndarray:
    return cv2.resize(skimage.data.astronaut(), size[::-1], interpolation=cv2.INTER_AREA)


def measure(image: np.ndarray, name: str, severity: int, seconds: float) -> Row:
    def ours() -> object:
        return corrupt(image, severity, name)

    def theirs() -> object:
        return reference.corrupt(image, name, severity)

    def forked() -> object:
        return fork().corrupt(image, severity, name)

    ours()  # compile, fill tables
    if fork() is not None:
        forked()
    times: tuple[list[float], ...] = ([], [], [])
    deadline = time.perf_counter() + seconds
    while not times[1] or (time.perf_counter() < deadline and len(times[1]) < 15):
        times[0].append(min(cpu_ms(ours) for _ in range(3)))
        times[1].append(cpu_ms(theirs))
        if fork() is not None:
            times[2].append(cpu_ms(forked))
    return Row(name, severity, *(float(np.median(series)) if series else np.nan for series in times))


def rows(size: tuple[int, int], severities: tuple[int, ...], seconds: float) -> Iterator[Row]:
    image = photo(size)
    for name in get_corruption_names("all"):
        for severity in severities:
            row = measure(image, name, severity, seconds)
            where = f"{name:18} {severity:8} {size[1]:5}×{size[0]:<5}"
            theirs = f"{row.theirs:12.2f} {row.fork:9.2f}"
            print(f"{where} {row.ours:9.2f} {theirs} {row.ratio:9.1f}×", flush=True)
            yield row


def geometric_mean(found: list[Row]) -> float:
    return float(np.exp(np.mean([np.log(row.ratio) for row in found])))


def show_memory(size: tuple[int, int]) -> None:
    found = measured_memory(size)
    print(f"\nextra memory at {size[1]}×{size[0]}, severity 5, in bytes of the image (bar: 10)")
    for name, (ours, theirs) in found.items():
        print(f"{name:18} {ours:8.1f} {theirs:12.1f}")
    worst = max(found, key=lambda name: found[name][0])
    print(f"most: {worst}, {found[worst][0]:.1f}×")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", metavar="WxH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    if options.memory:
        width, height = map(int, options.memory.split("x"))
        print_memory((height, width))
        return
    print("corruption         severity        size   ours ms  reference ms  its fork    faster")
    every = list(rows(SMALL, (3,), 1.0))
    print(f"geometric mean at severity 3, 640×480: {geometric_mean(every):.1f}× faster (bar: 12×)")
    show_memory(SMALL)
    if options.quick:
        return
    large = list(rows(LARGE, (3,), 1.0))
    print(f"geometric mean at severity 3, 2048×1024: {geometric_mean(large):.1f}× faster (bar: 12×)")
    show_memory(LARGE)
    every += large + list(rows(SMALL, (1, 2, 4, 5), 0.3))
    slowest = min(every, key=lambda row: row.ratio)
    print(
        f"closest to the reference: {slowest.name}@{slowest.severity}, {slowest.ratio:.2f}× faster (bar: 1×)"
    )


if __name__ == "__main__":
    main()
