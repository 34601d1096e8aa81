"""Corruptions on a GPU: µs an image, beside a copy, plain torch, torchvision v2 and kornia, in one run.

    python benchmarks/gpu.py                          everything below, in this order, on cuda
    python benchmarks/gpu.py --seconds 100            as much of it as there is time for
    python benchmarks/gpu.py --batch 4 --images 8     a dry run; --device cpu where there is no GPU
    python benchmarks/gpu.py --out SPEED.json         for docs/make_gpu.py; written after every step

1. Kernels: which were compiled and accepted, and which refused, and why. Processes compile side by side.
2. The whole: every condition of imagenet-c over 5,000 images, twice, and once in batches of 128.
3. The table: severity 3, then the others. Times are by the clock between two synchronisations, the host's
   planning included, as a training loop would see them. "host" is when the call returns; "device" is what
   CUDA's events count while the host is ahead.
4. Kernels' own times, by torch's profiler.
5. Others: the same primitives without Triton ("plain torch"), and other libraries.
6. A detector, torchvision's Faster R-CNN with ResNet-50, untrained, and a batch too large for the memory.

Images are 640×480 noise over a gradient, in batches.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from stormproof.core.condition import Condition
from stormproof.corruptions import SUITES
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.imaging.gpu import triton_kernels

SIZE = (480, 640)
COCO = 5000  # images of val2017
Call = Callable[[], object]


def photographs(count: int, device: str, size: tuple[int, int] = SIZE) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    height, width = size
    slope = torch.linspace(0, 200, width).expand(1, 3, height, width)
    noise = torch.randint(0, 56, (min(count, 8), 3, height, width), generator=generator)
    images = (slope + noise).to(torch.uint8).to(device)
    return images.repeat(-(-count // len(images)), 1, 1, 1)[:count].contiguous()


def synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def timed(call: Call, images: int, device: str, repeats: int = 3) -> dict[str, float]:
    """µs an image by the clock, of the host and of the device, medians; the first call is not counted."""
    call()
    clock, host, counted = [], [], []
    for _ in range(repeats):
        synchronise(device)
        start = time.perf_counter()
        call()
        host.append(time.perf_counter() - start)
        synchronise(device)
        clock.append(time.perf_counter() - start)
        if device != "cpu":
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(20_000_000)  # cycles, about 10 ms: the host is done before the device begins
            first.record()
            call()
            last.record()
            synchronise(device)
            counted.append(first.elapsed_time(last) / 1e3)
    found = {"µs": clock, "host µs": host, "device µs": counted}
    return {name: 1e6 * median(times) / images for name, times in found.items() if times}


def accepted(given: tuple[list[str], str, tuple[int, int]]) -> tuple[list[str], dict[str, str]]:
    """The kernels that some conditions use: those accepted, and those refused with the reason."""
    names, device, size = given
    images = photographs(2, device, size)
    for name in names:
        corrupt_batch(images, name, ids=["a", "b"])
    return sorted(map(str, triton_kernels.trusted)), {str(k): v for k, v in triton_kernels.refused.items()}


def compiled(device: str, size: tuple[int, int], processes: int) -> dict[str, Any]:
    """Compile every kernel of imagenet-c and holdout, in several processes: Triton keeps what they made."""
    names = [str(c) for suite in ("imagenet-c", "holdout") for c in SUITES[suite].conditions]
    start = time.perf_counter()
    trusted: set[str] = set()
    refused: dict[str, str] = {}
    shares = [(names[i::processes], device, size) for i in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for own, others in pool.map(accepted, shares):
            trusted.update(own)
            refused.update(others)
    print(f"kernels: {len(trusted)} accepted, {len(refused)} refused, {time.perf_counter() - start:.0f} s")
    for name, why in refused.items():
        print(f"  refused: {name}: {why}")
    print("  accepted:", ", ".join(sorted(trusted)), flush=True)
    return {"trusted": sorted(trusted), "refused": refused}


def peers(images: torch.Tensor) -> dict[str, dict[str, Call]]:
    """What other libraries have of the same kind: close in effect, and not the same pixels."""
    found: dict[str, dict[str, Call]] = {}
    try:
        from torchvision.transforms import v2
        from torchvision.transforms.v2 import functional

        found["torchvision v2"] = {
            "gaussian_noise": lambda: functional.gaussian_noise(images.float() / 255, sigma=0.18),
            "gaussian_blur": lambda: functional.gaussian_blur(images, [25, 25], [3.0, 3.0]),
            "brightness": lambda: functional.adjust_brightness(images, 1.3),
            "contrast": lambda: functional.adjust_contrast(images, 0.2),
            "saturate": lambda: functional.adjust_saturation(images, 2.0),
            "elastic_transform": lambda: v2.ElasticTransform(alpha=50.0, sigma=5.0)(images),
            "pixelate": lambda: functional.resize(
                functional.resize(images, [192, 256]), list(images.shape[2:])
            ),
        }
    except ImportError:
        pass
    try:
        from kornia import augmentation, filters

        floats = images.float() / 255
        found["kornia"] = {
            "gaussian_noise": lambda: augmentation.RandomGaussianNoise(std=0.18, p=1.0)(floats),
            "gaussian_blur": lambda: filters.gaussian_blur2d(floats, (25, 25), (3.0, 3.0)),
            "motion_blur": lambda: augmentation.RandomMotionBlur(31, 45.0, 0.5, p=1.0)(floats),
            "brightness": lambda: augmentation.RandomBrightness((1.3, 1.3), p=1.0)(floats),
            "contrast": lambda: augmentation.RandomContrast((0.2, 0.2), p=1.0)(floats),
            "saturate": lambda: augmentation.RandomSaturation((2.0, 2.0), p=1.0)(floats),
            "jpeg_compression": lambda: augmentation.RandomJPEG((15.0, 15.0), p=1.0)(floats),
        }
    except ImportError:
        pass
    return found


def shown(row: dict[str, Any]) -> None:
    print("  ".join(f"{k} {v:.1f}" if isinstance(v, float) else str(v) for k, v in row.items()), flush=True)


def table(
    images: torch.Tensor, device: str, conditions: list[Condition], until: float
) -> list[dict[str, Any]]:
    ids = [f"{i}.jpg" for i in range(len(images))]
    rows: list[dict[str, Any]] = []
    for condition in conditions:
        if time.monotonic() > until:
            print("out of time: the rest of the table is left out", flush=True)
            break
        row: dict[str, Any] = {"condition": str(condition)}
        try:
            row |= timed(lambda c=condition: corrupt_batch(images, c, ids=ids), len(images), device)
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"[:300]
        rows.append(row)
        shown(row)
    return rows


def kernels(images: torch.Tensor, conditions: list[Condition], until: float) -> dict[str, dict[str, float]]:
    """µs an image of every kernel that a condition runs."""
    ids = [f"{i}.jpg" for i in range(len(images))]
    found: dict[str, dict[str, float]] = {}
    for condition in conditions:
        if time.monotonic() > until:
            break
        synchronise("cuda")
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            corrupt_batch(images, condition, ids=ids)
            synchronise("cuda")
        spent: dict[str, float] = {}
        for event in profiler.events():
            if event.device_time:
                spent[event.name[:60]] = spent.get(event.name[:60], 0.0) + event.device_time / len(images)
        most = sorted(spent.items(), key=lambda item: -item[1])
        found[str(condition)] = dict(most)
        print(f"{condition}: " + "; ".join(f"{name} {µs:.2f}" for name, µs in most[:12]), flush=True)
    return found


def others(images: torch.Tensor, device: str, rows: list[dict[str, Any]], until: float) -> None:
    """Add plain torch and other libraries to the rows of severity 3."""
    ids = [f"{i}.jpg" for i in range(len(images))]
    known = peers(images)
    for row in rows:
        condition = Condition.parse(row["condition"])
        if condition.severity != 3:
            continue
        if time.monotonic() > until:
            print("out of time: the rest of the comparisons is left out", flush=True)
            break
        calls = {
            name: own[condition.corruption] for name, own in known.items() if condition.corruption in own
        }
        added = {name: timed(call, len(images), device)["µs"] for name, call in calls.items()}
        with triton_kernels.without():
            plain = timed(
                lambda c=condition: corrupt_batch(images, c, ids=ids), len(images), device, repeats=1
            )
        row |= {"plain torch": plain["µs"], **added}
        shown(row)


def whole(images: torch.Tensor, device: str, count: int, conditions: list[Condition]) -> dict[str, float]:
    """Every condition over `count` images, batch after batch, as COCO-C is made."""
    made = 0
    synchronise(device)
    start = time.perf_counter()
    for condition in conditions:
        for first in range(0, count, len(images)):
            part = images[: min(len(images), count - first)]
            corrupt_batch(part, condition, ids=[f"{first + i}.jpg" for i in range(len(part))])
            made += len(part)
    synchronise(device)
    spent = time.perf_counter() - start
    print(f"whole: {made:,} images in batches of {len(images)}: {spent:.2f} s", flush=True)
    return {"batch": len(images), "images": made, "seconds": spent}


def detector(images: torch.Tensor, device: str) -> dict[str, float]:
    """How much of a detector's time corrupting takes, over imagenet-c at severity 3."""
    from torchvision.models.detection import fasterrcnn_resnet50_fpn

    torch.manual_seed(0)
    model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None).eval().to(device)
    ids = [f"{i}.jpg" for i in range(len(images))]
    spent = {"corrupting": 0.0, "detecting": 0.0}

    def measured(name: str, call: Call) -> Any:
        synchronise(device)
        start = time.perf_counter()
        result = call()
        synchronise(device)
        spent[name] += time.perf_counter() - start
        return result

    with torch.inference_mode():
        model(list(images.float() / 255))
        for condition in SUITES["imagenet-c"].conditions[2::5]:
            made = measured("corrupting", lambda c=condition: corrupt_batch(images, c, ids=ids))
            measured("detecting", lambda m=made: model(list(m.float() / 255)))
    return spent | {"share": spent["corrupting"] / sum(spent.values())}


def memory(device: str, count: int) -> dict[str, Any]:
    """A batch far too large for one go: what it needs at its peak, and what is said of splitting."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("stormproof")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    images = photographs(count, device)
    torch.cuda.reset_peak_memory_stats()
    corrupt_batch(images, "fog@3", ids=[str(i) for i in range(count)])
    log.removeHandler(handler)
    peak = torch.cuda.max_memory_allocated() / 1e9
    return {"images": count, "batch GB": images.nbytes / 1e9, "peak GB": peak, "said": said}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--images", type=int, default=COCO, help="images of the whole run")
    parser.add_argument("--size", type=int, nargs=2, default=SIZE, metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--seconds", type=float, default=600, help="after which no step is begun")
    parser.add_argument("--processes", type=int, default=12, help="that compile kernels; 0: none")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    device, size, on_gpu = given.device, tuple(given.size), given.device != "cpu"
    conditions = list(SUITES["imagenet-c"].conditions)
    middle = [c for suite in ("imagenet-c", "holdout") for c in SUITES[suite].conditions if c.severity == 3]
    result: dict[str, Any] = {"about": {"torch": torch.__version__, "device": device, "batch": given.batch}}

    def keep(**parts: Any) -> None:
        result.update(parts)
        if given.out:
            given.out.write_text(json.dumps(result, ensure_ascii=False))

    if given.processes and on_gpu:
        keep(kernels=compiled(device, size, given.processes))
    if on_gpu:
        result["about"]["gpu"] = torch.cuda.get_device_name()
    images = photographs(given.batch, device, size)
    keep(copy=timed(images.clone, len(images), device, repeats=9)["µs"])
    print(f"copy {result['copy']:.2f} µs an image", flush=True)
    ids = [f"{i}.jpg" for i in range(len(images))]
    for one in conditions:
        corrupt_batch(images[:2], one, ids=ids[:2])  # compares each kernel with its twin
    for one in middle:
        corrupt_batch(images, one, ids=ids)  # takes the memory it needs
    runs = [whole(part, device, given.images, conditions) for part in (images, images, images[:128])]
    keep(whole=runs)
    rest = [c for c in conditions if c.severity != 3]
    keep(table=table(images, device, middle + rest, until))
    if on_gpu:
        keep(times=kernels(images, middle, until))
    others(images, device, result["table"], until)
    keep(table=result["table"])
    if time.monotonic() < until:
        try:
            keep(detector=detector(images[:16], device))
            print("detector", result["detector"], flush=True)
        except ImportError:
            print("detector: torchvision is not installed", flush=True)
    if on_gpu and time.monotonic() < until:
        keep(memory=memory(device, 8192))
        print("memory", result["memory"], flush=True)
    refused = {str(name): why for name, why in triton_kernels.refused.items()}
    print("refused in this process:", refused or "none", flush=True)
    if on_gpu:
        found = result.setdefault(
            "kernels", {"trusted": sorted(map(str, triton_kernels.trusted)), "refused": {}}
        )
        keep(kernels={**found, "refused": {**found["refused"], **refused}})


if __name__ == "__main__":
    main()
