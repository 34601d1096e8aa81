"""Corruptions on a GPU: µs an image, beside a copy, plain torch, torchvision v2 and kornia, in one run.

    python benchmarks/gpu.py                          the whole table and the whole of COCO-C, on cuda
    python benchmarks/gpu.py --batch 4 --images 8     a dry run; --device cpu where there is no GPU
    python benchmarks/gpu.py --out SPEED.json         for docs/make_gpu.py

Times are by the clock between two synchronisations, the host's planning included, as a training loop would
see them; "device" is what CUDA's own events count for the same calls. "plain torch" is the same primitives
without Triton. Images are 640×480 noise over a gradient, in batches. The detector is torchvision's Faster
R-CNN with ResNet-50, untrained: corrupting takes as long before any detector.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

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


def timed(call: Call, images: int, device: str, repeats: int = 3) -> tuple[float, float]:
    """µs an image by the clock and by the device, medians; the first call, which compiles, is not counted."""
    call()
    clock, counted = [], []
    for _ in range(repeats):
        synchronise(device)
        start = time.perf_counter()
        if device == "cpu":
            call()
            events = 0.0
        else:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            call()
            last.record()
            synchronise(device)
            events = 1000 * first.elapsed_time(last)
        clock.append(1e6 * (time.perf_counter() - start) / images)
        counted.append(events / images)
    return median(clock), median(counted)


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


def table(
    images: torch.Tensor, device: str, conditions: list[Condition], until: float
) -> list[dict[str, Any]]:
    ids = [f"{i}.jpg" for i in range(len(images))]
    others = peers(images)
    rows: list[dict[str, Any]] = []
    for condition in conditions:
        if time.monotonic() > until:
            print("out of time: the rest of the table is left out", flush=True)
            break
        row: dict[str, Any] = {"condition": str(condition)}
        try:
            row["µs"], row["device µs"] = timed(
                lambda c=condition: corrupt_batch(images, c, ids=ids), len(images), device
            )
            if condition.severity == 3:
                with triton_kernels.without():
                    row["plain torch"], _ = timed(
                        lambda c=condition: corrupt_batch(images, c, ids=ids), len(images), device
                    )
                for library, calls in others.items():
                    if condition.corruption in calls:
                        row[library], _ = timed(calls[condition.corruption], len(images), device)
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"[:300]
        rows.append(row)
        print(
            "  ".join(f"{k} {v:.1f}" if isinstance(v, float) else str(v) for k, v in row.items()), flush=True
        )
    return rows


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
    return {"images": made, "seconds": time.perf_counter() - start}


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
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--images", type=int, default=COCO, help="images of the whole run")
    parser.add_argument("--size", type=int, nargs=2, default=SIZE, metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--seconds", type=float, default=600, help="for the table and the whole run")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    images = photographs(given.batch, given.device, tuple(given.size))
    conditions = list(SUITES["imagenet-c"].conditions)
    result: dict[str, Any] = {
        "about": {"torch": torch.__version__, "device": given.device, "batch": given.batch}
    }
    if given.device != "cpu":
        result["about"]["gpu"] = torch.cuda.get_device_name()
    result["copy"] = timed(images.clone, len(images), given.device, repeats=9)
    print(f"copy {result['copy'][0]:.2f} µs an image", flush=True)
    more = [c for c in SUITES["holdout"].conditions if c.severity == 3]
    until = time.monotonic() + given.seconds
    result["table"] = table(images, given.device, conditions + more, until)
    each = sum(row.get("µs", 0.0) for row in result["table"][: len(conditions)]) / 1e6
    count = min(given.images, int(max(until - time.monotonic(), 5) / max(each, 1e-6)))
    result["whole"] = whole(images, given.device, max(count, 1), conditions)
    print("whole", result["whole"], flush=True)
    try:
        result["detector"] = detector(images[:16], given.device)
        print("detector", result["detector"], flush=True)
    except ImportError:
        print("detector: torchvision is not installed", flush=True)
    if given.device != "cpu":
        result["memory"] = memory(given.device, 8192)
        print("memory", result["memory"], flush=True)
    result["kernels"] = {
        "trusted": sorted(map(str, triton_kernels.trusted)),
        "refused": {str(k): v for k, v in triton_kernels.refused.items()},
    }
    print("kernels", result["kernels"], flush=True)
    if given.out:
        given.out.write_text(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
