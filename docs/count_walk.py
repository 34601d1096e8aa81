"""Count the functions that `stormproof run` and `stormproof score` call, for docs/architecture.md.

    python docs/count_walk.py           the counts
    python docs/count_walk.py --list    every function with its calls, file by file

A profiler (`sys.setprofile`) watches both commands in a fresh process each: a Python function as the model,
four images of a COCO file, clean and gaussian_noise@3, --engine local. It counts functions of the package,
including those called while importing, but not class bodies, lambdas or comprehensions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

import numpy as np
import PIL.Image

import stormproof

PACKAGE = Path(stormproof.__file__).parent
MODEL = """
from stormproof import Prediction

def detect(images):
    return [Prediction(boxes=[[2, 2, 20, 20]], scores=[0.9], labels=[0]) for _ in images]
"""


def main() -> None:
    if sys.argv[1:2] == ["--profile"]:
        profile(Path(sys.argv[2]), sys.argv[3:])
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(folder)
        data = "coco:val.json,images=images"
        run = ["run", "--model", "walk_model:detect", "--data", data, "--conditions", "gaussian_noise@3"]
        for verb in ([*run, "--engine", "local", "--out", "run"], ["score", "run"]):
            report(verb[0], count_calls(verb, folder))


def make_inputs(folder: Path) -> None:
    """Four images, a COCO file of one object in each, and a model."""
    (folder / "images").mkdir()
    (folder / "walk_model.py").write_text(MODEL)
    pixels = np.random.default_rng(0).integers(0, 256, (4, 48, 64, 3), np.uint8)
    for i, image in enumerate(pixels, 1):
        PIL.Image.fromarray(image).save(folder / "images" / f"{i}.png")
    images = [{"id": i, "file_name": f"{i}.png", "height": 48, "width": 64} for i in range(1, 5)]
    box = {"category_id": 1, "bbox": [2, 2, 18, 18], "area": 324, "iscrowd": 0}
    content = {
        "images": images,
        "annotations": [{"id": i, "image_id": i, **box} for i in range(1, 5)],
        "categories": [{"id": 1, "name": "thing"}],
    }
    (folder / "val.json").write_text(json.dumps(content))


def count_calls(arguments: list[str], folder: Path) -> Counter[tuple[str, str]]:
    """Calls by file and function, of a command in a process of its own."""
    result = folder / "calls.json"
    command = [sys.executable, str(Path(__file__).resolve()), "--profile", str(result), *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return Counter({(file, function): calls for file, function, calls in json.loads(result.read_text())})


def profile(result: Path, arguments: list[str]) -> None:
    """Run a command under the profiler and write its calls; modules imported so far are imported again."""
    for module in [name for name in sys.modules if name.partition(".")[0] == "stormproof"]:
        del sys.modules[module]
    calls: Counter[tuple[str, str]] = Counter()
    root = f"{PACKAGE}/"

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and is_function and code.co_filename.startswith(root):
            calls[code.co_filename.removeprefix(root), code.co_qualname] += 1

    sys.argv = ["stormproof", *arguments]
    sys.path.insert(0, ".")
    sys.setprofile(watch)
    try:
        from stormproof.cli import main as stormproof_main

        stormproof_main()
    finally:
        sys.setprofile(None)
        result.write_text(json.dumps([[*key, count] for key, count in calls.items()]))


def report(verb: str, calls: Counter[tuple[str, str]]) -> None:
    by_file = defaultdict(list)
    for (file, function), count in calls.items():
        by_file[file].append(f"{function} ({count})")
    print(f"{verb}: {len(calls)} functions in {len(by_file)} files")
    if "--list" in sys.argv:
        for file, functions in sorted(by_file.items()):
            print(f"  {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
