"""Write the tables of docs/checked.md: how every recipe on a GPU agrees with the CPU, and how fast it is.

    python docs/make_gpu.py expect EXPECTED.npz               where Numba and OpenCV are: the CPU's images
    python docs/make_gpu.py compare EXPECTED.npz EQUAL.json   where the GPU is; needs torch, NumPy and Pillow
    python docs/make_gpu.py page EQUAL.json SPEED.json [RUN.json …]   of benchmarks/gpu.py and gpu_run.py
    python docs/make_gpu.py sizes SIZES.json …                of benchmarks/gpu_sizes.py, on several machines
    python docs/make_gpu.py equality EQUAL.json               this part of the page alone

The CPU's images travel as hashes, beside the photographs. Where a hash differs, the torch path on that
machine's CPU, which equals the CPU set wherever both are, says by how much. `compare` begins with imagenet-c,
and stops after --seconds; the patterns of imagenet-c-bar need Numba there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from parts import write_part

from stormproof.core.condition import Condition
from stormproof.corruptions import SUITES, find

SUITES_SHOWN = (
    "imagenet-c", "holdout", "optics", "camera", "camera-variants", "mutators", "contextual",
    "foggy-cityscapes", "3dcc", "street-physics", "imagenet-c-bar",
)  # fmt: skip
PHOTOGRAPHS = {"astronaut": (131, 97), "chelsea": (200, 151), "coffee": (640, 480)}  # width, height
KINDS = {"image": ("", 0.0), "frame": ("clip", 1.3)}  # sequence and time: a single image, a frame of a clip

# What is done value by value, and must be equal; all else filters or resamples.
FILTERS = {
    "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow", "frost", "fog", "elastic_transform",
    "pixelate", "jpeg_compression", "gaussian_blur", "spatter", "psf_blur", "geometric_distortion", "haze",
    "defocus", "lens_obstruction", "focus_motor_damage", "colour_space_damage", "cfa_interpolation_damage",
    "bad_pixel_damage", "camera_fog", "lens_shading_damage", "ray_fog", "fog_3d", "near_focus", "far_focus",
    "xy_motion_blur", "z_motion_blur", "flash", "rain", "night", "sun_glare", "caustic_refraction",
}  # fmt: skip


def conditions() -> list[tuple[str, Condition]]:
    return [(suite, condition) for suite in SUITES_SHOWN for condition in SUITES[suite].conditions]


def photographs() -> dict[str, np.ndarray]:
    import cv2
    import skimage.data

    return {
        name: cv2.resize(getattr(skimage.data, name)(), size, interpolation=cv2.INTER_AREA)
        for name, size in PHOTOGRAPHS.items()
    }


def depth_of(height: int, width: int) -> np.ndarray:
    """A street: near at the bottom, far above, an object before it, sky at the top."""
    metres = np.tile(np.geomspace(200, 2, height)[:, None], (1, width))
    metres[height // 3 : 2 * height // 3, width // 4 : width // 3] = 6
    metres[: height // 8] = np.inf
    return metres.astype(np.float32)


def digest(image: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest()


def expect(file: Path) -> None:
    from stormproof.core.sample import Context, Sample
    from stormproof.corruptions import apply

    kept: dict[str, Any] = {}
    for name, image in photographs().items():
        kept[f"pixels {name}"] = image
        kept[f"depth {name}"] = depth = depth_of(*image.shape[:2])
        for kind, (sequence, seconds) in KINDS.items():
            sample = Sample(name, image, context=Context(depth=depth), sequence=sequence, time=seconds)
            for _, condition in conditions():
                kept[f"{kind} {name} {condition}"] = digest(apply(sample, condition).image)
    np.savez_compressed(file, **kept)
    print(f"{file}: {file.stat().st_size / 1e6:.1f} MB, {len(conditions())} conditions")


def on(
    where: str, pixels: np.ndarray, depth: np.ndarray, name: str, condition: Condition, kind: str
) -> np.ndarray:
    """An image under a condition, by torch: twice in a batch, so that mixing up two images is noticed."""
    import torch

    from stormproof.core.randomness import Frame
    from stormproof.corruptions.on_device import corrupt_batch

    batch = torch.from_numpy(np.stack([pixels] * 2)).permute(0, 3, 1, 2).contiguous().to(where)
    needs = find(condition.corruption or "").needs
    metres = torch.from_numpy(np.stack([depth] * 2)).to(where) if needs else None
    ids = [Frame(name, *KINDS[kind])] * 2
    made = corrupt_batch(batch, condition, ids=ids, depth=metres).permute(0, 2, 3, 1).cpu().numpy()
    assert (made[0] == made[1]).all(), f"{condition}: two copies of one image differ"
    return made[0]


def padded(where: str, kept: Any, condition: Condition) -> dict[str, np.ndarray]:
    """All photographs under a condition, by torch, in one batch of their sizes."""
    import torch

    from stormproof.corruptions.on_device import corrupt_batch

    sizes = [kept[f"pixels {name}"].shape[:2] for name in PHOTOGRAPHS]
    height, width = np.max(sizes, axis=0).tolist()
    pixels, metres = (
        np.full((len(sizes), height, width, 3), 77, np.uint8),
        np.ones((len(sizes), height, width)),
    )
    for i, name in enumerate(PHOTOGRAPHS):
        pixels[i, : sizes[i][0], : sizes[i][1]] = kept[f"pixels {name}"]
        metres[i, : sizes[i][0], : sizes[i][1]] = kept[f"depth {name}"]
    batch = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous().to(where)
    needs = find(condition.corruption or "").needs
    depth = torch.from_numpy(metres.astype(np.float32)).to(where) if needs else None
    found = corrupt_batch(batch, condition, ids=list(PHOTOGRAPHS), depth=depth, sizes=sizes)
    made = found.permute(0, 2, 3, 1).cpu().numpy()
    return {name: made[i, : sizes[i][0], : sizes[i][1]] for i, name in enumerate(PHOTOGRAPHS)}


def compared(task: tuple[str, list[str], Path, str, float]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """A recipe's conditions on every photograph, and the kernels that were refused."""
    from stormproof.imaging.gpu import triton_kernels

    suite, conditions, file, device, until = task
    kept, found = np.load(file), []
    for text in conditions:
        condition = Condition.parse(text)
        together: dict[str, np.ndarray] = {}
        for name, kind, mixed in (
            *product(PHOTOGRAPHS, KINDS, (False,)),
            *product(PHOTOGRAPHS, ("image",), (True,)),
        ):
            entry: dict[str, Any] = {"suite": suite, "condition": text, "photograph": name, "kind": kind}
            entry |= {"mixed": mixed}
            given = kept[f"pixels {name}"], kept[f"depth {name}"], name, condition, kind
            if time.time() > until:
                continue
            try:
                if mixed and not together:
                    together = padded(device, kept, condition)
                made = together[name] if mixed else on(device, *given)
                if digest(made) == str(kept[f"{kind} {name} {condition}"]):
                    entry |= {"largest": 0, "equal": 1.0}
                else:
                    difference = np.abs(made.astype(int) - on("cpu", *given))
                    entry |= {"largest": int(difference.max()), "equal": float((difference == 0).mean())}
            except ImportError as error:
                entry |= {"on CPU": str(error)}
            except Exception as error:
                entry |= {"failed": f"{type(error).__name__}: {error}"}
            found.append(entry)
    return found, {str(name): why for name, why in triton_kernels.refused.items()}


def compare(file: Path, result: Path, device: str, seconds: float, processes: int) -> None:
    """Recipes go to processes in the order of the suites; what is known is written after each."""
    import torch

    by_recipe: dict[tuple[str, str], list[str]] = defaultdict(list)
    for suite, condition in conditions():
        by_recipe[suite, condition.corruption or ""].append(str(condition))
    until = time.time() + seconds  # processes share this clock
    tasks = [(suite, own, file, device, until) for (suite, _), own in by_recipe.items()]
    about: dict[str, Any] = {"torch": torch.__version__, "device": device}
    if device != "cpu":
        about |= {"gpu": torch.cuda.get_device_name()}
    found: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for entries, why in pool.map(compared, tasks):
            found += entries
            refused |= why
            result.write_text(json.dumps({"about": about, "found": found, "refused": refused}))
            for entry in entries:
                if entry.get("largest") != 0:
                    print(entry, flush=True)
    equal = sum(entry.get("largest") == 0 for entry in found)
    every = len(conditions()) * len(PHOTOGRAPHS) * (len(KINDS) + 1)
    print(f"{equal} of {len(found)} comparisons equal; {every - len(found)} left out for lack of time")
    print("kernels refused:", refused or "none")


def rows(found: list[dict[str, Any]]) -> Iterator[str]:
    by_recipe: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in found:
        by_recipe[Condition.parse(entry["condition"]).corruption or ""].append(entry)
    for name, entries in by_recipe.items():
        kind = "filter" if name in FILTERS else "point"
        done = [entry for entry in entries if "largest" in entry]
        asked = len({entry["condition"] for entry in entries})
        hosted = len({entry["condition"] for entry in entries if "on CPU" in entry})
        if not done:
            yield f"| {name} | {kind} | {asked} | on the CPU | |"
            continue
        largest, least = max(e["largest"] for e in done), min(e["equal"] for e in done)
        share = "100 %" if least == 1 else f"{100 * least:.4f} %"
        note = f" ({hosted} on the CPU)" if hosted else ""
        yield f"| {name} | {kind} | {asked}{note} | {largest} | {share} |"


def machine(about: dict[str, Any]) -> str:
    return f"{about.get('gpu', about['device'])} with torch {about['torch']}"


def equality(given: dict[str, Any]) -> str:
    about = given["about"]
    done = {entry["condition"] for entry in given["found"]}
    whole = [suite for suite in SUITES_SHOWN if done.issuperset(map(str, SUITES[suite].conditions))]
    found = [entry for entry in given["found"] if entry["suite"] in whole]  # `compare` may run out of time
    sizes = ", ".join(f"{width}×{height}" for width, height in PHOTOGRAPHS.values())
    equal = sum(entry.get("largest") == 0 for entry in found)
    every = sum(len(SUITES[suite].conditions) for suite in whole) * len(PHOTOGRAPHS) * (len(KINDS) + 1)
    left_out = f"; {every - len(found)} were left out for lack of time" if every > len(found) else ""
    lines = [
        "### Equality",
        "",
        f"Made by `python docs/make_gpu.py` on {machine(about)}: every condition of "
        f"{', '.join(whole)}, on photographs of {sizes} pixels, each as a single image and as a frame of a "
        "clip, in a batch of its size, and all together in one padded batch, compared with the CPU. "
        f"In {equal} of {len(found)} comparisons every value is equal{left_out}. For each recipe, the "
        "largest difference in grey levels and the smallest share of equal values:",
        "",
        "| recipe | kind | conditions | largest difference | equal, at least |",
        "|---|---|---|---|---|",
        *rows(found),
    ]
    return "\n".join(lines)


def speed(given: dict[str, Any]) -> str:
    about = given["about"]
    runs = ", ".join(f"{run['seconds']:.1f} s in batches of {run['batch']}" for run in given["whole"])
    names = {"device µs": "device", "host µs": "host"}
    known = *names, "plain torch", "torchvision v2", "kornia"
    others = [name for name in known if any(name in row for row in given["table"])]
    by_recipe: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in given["table"]:
        condition = Condition.parse(row["condition"])
        by_recipe[condition.corruption or ""][int(condition.severity or 0)] = row
    lines = [
        "### Speed",
        "",
        f"Made by `python benchmarks/gpu.py` on {machine(about)}, batches of {about['batch']} images of "
        f"640×480: µs of wall-clock time per image, including the host's planning. A copy takes "
        f"{given['copy']:.2f} µs. {given['whole'][0]['images']:,} images, every condition of imagenet-c, "
        "took "
        f"{runs}: only corrupting, with the images already on the device. "
        '"Device" and "host" are their times at severity 3, which overlap from batch to batch. "Plain '
        'torch" '
        "is the same without Triton; the other libraries have similar effects, not the same pixels.",
        "",
        "| recipe | 1 | 2 | 3 | 4 | 5 | "
        + " | ".join(f"{names.get(name, name)} (3)" for name in others)
        + " |",
        "|---" * (6 + len(others)) + "|",
    ]
    for name, found in by_recipe.items():
        cells = [f"{found[s]['µs']:.1f}" if "µs" in found.get(s, {}) else "" for s in range(1, 6)]
        cells += [f"{found[3][other]:.1f}" if other in found.get(3, {}) else "" for other in others]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    refused = given.get("kernels", {}).get("refused", {})
    if refused:
        names = ", ".join(dict.fromkeys(name.split("'")[1] for name in refused))
        lines += ["", f"In this run, these kernels were refused, and plain torch ran instead: {names}."]
    if "detector" in given:
        share = 100 * given["detector"]["share"]
        lines += [
            "",
            "Before torchvision's Faster R-CNN (ResNet-50, untrained, batches of 16, imagenet-c at "
            f"severity 3) corrupting takes {share:.1f} % of the time.",
        ]
    if "memory" in given:
        m = given["memory"]
        lines += [
            "",
            f"A batch of {m['images']:,} images ({m['batch GB']:.1f} GB) under fog@3 needs "
            f"{m['peak GB']:.1f} GB at its peak. "
            f'It says: "{" ".join(m["said"])}"',
        ]
    return "\n".join(lines)


def runs(given: list[dict[str, Any]], about: dict[str, Any]) -> str:
    """What `stormproof run` says with corruption on the GPU and on the CPU, and how long it takes."""
    lines = [
        "### Runs",
        "",
        f"Made by `python benchmarks/gpu_run.py` on {machine(about)}: `stormproof run` over imagenet-c and "
        "the clean images, the model on the GPU, corruption on the GPU (`--device cuda`) or on the CPU. A "
        "cell is equal if its labels, scores and boxes are equal in every bit. The last column is the share "
        "of the worker's time on the GPU that corrupting takes: it includes the upload and measuring how far "
        "pixels changed, but not compiling. Another run used the same GPU at the time, so the shares are "
        "rough.",
        "",
        "| model | cells | objects | cells that are equal | corrupting |",
        "|---|---|---|---|---|",
    ]
    for run in given:
        share = f"{100 * run['gpu']['share']:.1f} %"
        equal = f"{run['equal']:,}" if run["equal"] < run["cells"] else "all"
        lines.append(f"| {run['model']} | {run['cells']:,} | {run['objects']:,} | {equal} | {share} |")
    return "\n".join(lines)


def sizes(files: tuple[Path, ...]) -> str:
    """How fast photographs of mixed sizes are corrupted, and how long a process takes to start."""
    given = [json.loads(file.read_text()) for file in files]
    about = given[0]["about"]
    lines = [
        "### Photographs as they are",
        "",
        f"Made by `python benchmarks/gpu_sizes.py` on {machine(about)}: {about['photographs']} photographs "
        f"of COCO, of {about['sizes']} sizes, copied to 5,000 and padded into batches as they come. "
        f"{given[0]['whole'][0]['images']:,} images are every condition of imagenet-c: only corrupting, with "
        "the images already on the device. Machines differ in their CPU, which launches the kernels; small "
        "batches take the time of their launches. The last column is of one size, 640×480.",
        "",
        "| machine | batch | seconds | images a second | images a second, one size |",
        "|---|---|---|---|---|",
    ]
    for number, one in enumerate(given, 1):
        for run in one.get("whole", []):
            equal = f"{run['one size, a second']:,.0f}" if "one size, a second" in run else ""
            numbers = f"{run['seconds']:.1f} | {run['a second']:,.0f} | {equal}"
            lines.append(f"| {number} | {run['batch']} | {numbers} |")
    lines += [
        "",
        "The first pass over one batch of 32, by a process that finds no compiled kernels, and by the next:",
        "",
        "| machine | importing torch | first process | second process |",
        "|---|---|---|---|",
    ]
    for number, one in enumerate(given, 1):
        if "start" in one:
            first, second = one["start"]
            spent = f"{first['first pass']:.0f} s | {second['first pass']:.1f} s"
            lines.append(f"| {number} | {first['importing']:.1f} s | {spent} |")
    return "\n".join(lines)


def page(equal: Path, times: Path, *cells: Path) -> None:
    target = Path(__file__).with_name("checked.md")
    found, measured, *compared = (json.loads(file.read_text()) for file in (equal, times, *cells))
    write_part(target, "equality", equality(found))
    if compared:  # else the page keeps those it has
        write_part(target, "runs", runs(compared, measured["about"]))
    write_part(target, "speed", speed(measured))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("expect", "compare", "page", "sizes", "equality"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=3600, help="after which `compare` stops")
    parser.add_argument("--processes", type=int, default=1, help="of `compare`")
    given = parser.parse_args()
    if given.step == "expect":
        expect(*given.files)
    elif given.step == "compare":
        compare(*given.files, device=given.device, seconds=given.seconds, processes=given.processes)
    elif given.step == "page":
        page(*given.files)
    elif given.step == "sizes":
        write_part(Path(__file__).with_name("checked.md"), "sizes", sizes(tuple(given.files)))
    else:
        found = json.loads(given.files[0].read_text())
        write_part(Path(__file__).with_name("checked.md"), "equality", equality(found))


if __name__ == "__main__":
    sys.exit(main())
