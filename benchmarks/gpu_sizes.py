"""Corrupting photographs as they are, of mixed sizes, on a GPU: images a second, and the start of a process.

    python benchmarks/gpu_sizes.py PHOTOGRAPHS                 a folder of images; on cuda
    python benchmarks/gpu_sizes.py PHOTOGRAPHS --out SIZES.json
    python benchmarks/gpu_sizes.py PHOTOGRAPHS --device cpu --batches 2 --images 2 --every 37 --steps whole
                                                               a dry run

1. Start: every condition of imagenet-c once over one batch, in a new process with no compiled kernels, and in
   a second one, which finds what the first has compiled and compared. Importing torch is counted by itself.
2. The whole: every condition over 5,000 images, copies of the photographs, padded into batches as they come.
   Each batch goes through all conditions, as in a run. Only corrupting, with images already on the device.
3. The same for images of one size, for images that all have different sizes, and with a launch per size.
4. By recipe: µs an image at severity 3, mixed sizes and one size.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()
import numpy as np
import torch

from stormproof.corruptions import SUITES, on_device
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.imaging.gpu import triton_kernels

Sizes = list[tuple[int, int]]
STEPS = ("start", "whole", "one-size", "table", "all-different", "by-size")


def photographs(folder: Path) -> list[np.ndarray]:
    from PIL import Image

    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in (".jpg", ".jpeg", ".png"))
    return [np.asarray(Image.open(file).convert("RGB")) for file in files]


def batches(
    images: list[np.ndarray], batch: int, count: int, device: str
) -> list[tuple[torch.Tensor, Sizes]]:
    """`count` images, padded in batches as they come."""
    made = []
    for first in range(0, count, batch):
        own = [images[i % len(images)] for i in range(first, min(first + batch, count))]
        sizes = [(int(image.shape[0]), int(image.shape[1])) for image in own]
        height, width = np.max(sizes, axis=0).tolist()
        padded = np.zeros((len(own), height, width, 3), np.uint8)
        for place, image in zip(padded, own, strict=True):
            place[: image.shape[0], : image.shape[1]] = image
        made.append((torch.from_numpy(padded).permute(0, 3, 1, 2).contiguous().to(device), sizes))
    return made


def different(count: int) -> list[np.ndarray]:
    """Images of which hardly two have one size: noise over a slope."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(300, 641, (count, 2)).tolist()
    noise = rng.integers(0, 56, (640, 640, 3)) + np.linspace(0, 199, 640)[:, None]
    return [noise[:height, :width].astype(np.uint8) for height, width in sizes]


def synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def whole(parts: list[tuple[torch.Tensor, Any]], conditions: list[Any], device: str) -> dict[str, float]:
    """Seconds for every condition over every batch."""
    made = 0
    synchronise(device)
    start = time.perf_counter()
    for number, (images, sizes) in enumerate(parts):
        ids = [f"{number}-{i}.jpg" for i in range(len(images))]
        for condition in conditions:
            corrupt_batch(images, condition, ids=ids, sizes=sizes)
            made += len(images)
    host = time.perf_counter() - start
    synchronise(device)
    spent = time.perf_counter() - start
    return {"images": made, "seconds": spent, "host": host, "a second": made / spent}


def shown(title: str, found: dict[str, Any]) -> dict[str, Any]:
    numbers = "  ".join(f"{k} {v:,.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items())
    print(f"{title}: {numbers}", flush=True)
    return found


def first_pass(folder: Path, batch: int, device: str, every: int) -> dict[str, Any]:
    imported = time.perf_counter() - BEGAN
    (images, sizes), *_ = batches(photographs(folder), batch, batch, device)
    synchronise(device)
    start = time.perf_counter()
    whole([(images, sizes)], list(SUITES["imagenet-c"].conditions)[::every], device)
    spent = time.perf_counter() - start
    stack = sorted(name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules)
    refused = {str(name): why for name, why in triton_kernels.refused.items()}
    return {"importing": imported, "first pass": spent, "compilers loaded": stack, "refused": refused}


def started(given: argparse.Namespace, batch: int) -> list[dict[str, Any]]:
    """First passes of two processes in turn, with caches that are empty at first."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        own = {"TRITON_CACHE_DIR": f"{folder}/triton", "XDG_CACHE_HOME": f"{folder}/cache"}
        for title in ("first process", "second process"):
            command = [sys.executable, __file__, str(given.folder), "--first-pass", "--batches", str(batch)]
            command += ["--device", given.device, "--every", str(given.every)]
            run = subprocess.run(command, env=os.environ | own, stdout=subprocess.PIPE, text=True, check=True)
            found.append(shown(title, json.loads(run.stdout.splitlines()[-1])))
    return found


def by_recipe(mixed: tuple[torch.Tensor, Sizes], one: torch.Tensor, device: str) -> list[dict[str, Any]]:
    rows = []
    for condition in list(SUITES["imagenet-c"].conditions)[2::5]:
        row: dict[str, Any] = {}
        for title, images, sizes in (("mixed", *mixed), ("one size", one, None)):
            found = whole([(images, sizes)] * 10, [condition], device)
            row |= {title: 1e6 * found["seconds"] / found["images"]}
            row |= {f"{title}, host": 1e6 * found["host"] / found["images"]}
        rows.append({"condition": str(condition)} | shown(str(condition), row))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--every", type=int, default=1, help="of the conditions, every so many")
    parser.add_argument("--first-pass", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=STEPS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = given.device
    if given.first_pass:
        print(json.dumps(first_pass(given.folder, given.batches[0], device, given.every)))
        return
    result: dict[str, Any] = {"about": {"torch": torch.__version__, "device": device}}
    if device != "cpu":
        result["about"]["gpu"] = torch.cuda.get_device_name()

    def keep(**parts: Any) -> None:
        result.update(parts)
        if given.out:
            given.out.write_text(json.dumps(result, ensure_ascii=False))

    if "start" in given.steps:
        keep(start=started(given, given.batches[0]))
    images = photographs(given.folder)
    conditions = list(SUITES["imagenet-c"].conditions)[:: given.every]
    distinct = len({image.shape for image in images})
    result["about"] |= {"photographs": len(images), "sizes": distinct}
    runs = []
    for batch in given.batches:
        parts = batches(images, batch, given.images, device)
        same = parts[0][0][:, :, :480].contiguous()
        whole(parts[:4], conditions, device)  # compiles, compares, and takes the memory it needs
        runs.append(shown("mixed sizes", {"batch": batch} | whole(parts, conditions, device)))
        if "one-size" in given.steps:
            whole([(same, None)], conditions, device)
            equal = shown("one size", {"batch": batch} | whole([(same, None)] * 5, conditions, device))
            runs[-1]["one size, a second"] = equal["a second"]
        if batch == given.batches[0] and "table" in given.steps:
            keep(table=by_recipe(parts[0], same, device))
        keep(whole=runs)
    batch = given.batches[0]
    if "all-different" in given.steps:
        parts = batches(different(given.images), batch, given.images, device)
        keep(different=shown("all sizes different", {"batch": batch} | whole(parts, conditions, device)))
    if "by-size" in given.steps:
        few = batches(images, batch, min(given.images, 2 * batch), device)
        on_device._takes_sizes = lambda *_: False
        whole(few, conditions, device)
        keep(by_size=shown("a launch per size", {"batch": batch} | whole(few, conditions, device)))
    refused = {str(name): why for name, why in triton_kernels.refused.items()}
    keep(refused=refused)
    print("refused:", refused or "none")


if __name__ == "__main__":
    main()
