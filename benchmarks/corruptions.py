"""Stormproof and imagecorruptions 1.1.2 side by side: time and extra memory, one core, one run.

    python benchmarks/corruptions.py              severity 3 at both sizes, then every severity at 640×480
    python benchmarks/corruptions.py --quick      severity 3 at 640×480

Times are medians of CPU milliseconds, ours and theirs taken in turn so that a noisy machine disturbs
both alike. Memory is the rise of the peak resident set while one picture is made, in bytes of the image.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import skimage.data

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import reference

from stormproof import corrupt, get_corruption_names

SMALL, LARGE = (480, 640), (1024, 2048)


@dataclass(frozen=True)
class Row:
    name: str
    severity: int
    size: tuple[int, int]
    ours: float
    theirs: float
    our_memory: float
    their_memory: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def cpu_ms(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return 1000 * (time.process_time() - start)


def extra_memory(call: Callable[[], object], image: np.ndarray) -> float:
    """Rise of the peak resident set during one call, in multiples of the image's bytes."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    result = call()
    rise = _status("VmHWM") - before
    del result
    return max(rise, 0) / image.nbytes


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def measure(image: np.ndarray, name: str, severity: int, seconds: float) -> Row:
    def ours() -> object:
        return corrupt(image, severity, name)

    def theirs() -> object:
        return reference.corrupt(image, name, severity)

    ours()  # compile, fill tables
    times: tuple[list[float], list[float]] = ([], [])
    deadline = time.perf_counter() + seconds
    while not times[1] or (time.perf_counter() < deadline and len(times[1]) < 15):
        times[0].append(min(cpu_ms(ours) for _ in range(3)))
        times[1].append(cpu_ms(theirs))
    slow = name == "glass_blur"  # tens of seconds a picture: its memory is not worth a second one
    memory = extra_memory(ours, image), float("nan") if slow else extra_memory(theirs, image)
    median_ours, median_theirs = (float(np.median(series)) for series in times)
    return Row(name, severity, image.shape[:2], median_ours, median_theirs, *memory)


def rows(size: tuple[int, int], severities: tuple[int, ...], seconds: float) -> Iterator[Row]:
    image = cv2.resize(skimage.data.astronaut(), size[::-1], interpolation=cv2.INTER_AREA)
    for name in get_corruption_names("all"):
        for severity in severities:
            row = measure(image, name, severity, seconds)
            print(
                f"{name:18} {severity}  {size[1]:4}×{size[0]:<4} {row.ours:9.2f} {row.theirs:10.2f} {row.ratio:9.1f}×"
                f" {row.our_memory:8.1f} {row.their_memory:8.1f}",
                flush=True,
            )
            yield row


def geometric_mean(found: list[Row]) -> float:
    return float(np.exp(np.mean([np.log(row.ratio) for row in found])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    cv2.setNumThreads(1)
    print("corruption  severity      size   ours ms  reference ms     faster  memory, × image: ours, reference")
    at_three = list(rows(SMALL, (3,), 1.0))
    print(f"geometric mean at severity 3, 640×480: {geometric_mean(at_three):.1f}× faster (bar: 12×)")
    if quick:
        return
    large = list(rows(LARGE, (3,), 1.0))
    print(f"geometric mean at severity 3, 2048×1024: {geometric_mean(large):.1f}× faster (bar: 12×)")
    every = at_three + large + list(rows(SMALL, (1, 2, 4, 5), 0.3))
    slowest = min(every, key=lambda row: row.ratio)
    hungriest = max(every, key=lambda row: row.our_memory)
    print(f"closest to the reference: {slowest.name} {slowest.severity}, {slowest.ratio:.2f}× (bar: 1×)")
    print(f"most extra memory: {hungriest.name}, {hungriest.our_memory:.1f}× the image (bar: 10×)")


if __name__ == "__main__":
    main()
