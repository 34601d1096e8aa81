"""How fast `stormproof explore` answers, by the browser's own clock.

    python benchmarks/explore.py            every number, with the limit it is held to
    python benchmarks/explore.py --quick    a small run and a few steps, to see that it runs; fails never

The map: a run of 5,000 images under 75 conditions and clean, written straight to the store with three boxes
an image; its kept scores have the shape of that run (errors of every image, 200 halves) but the values of a
hundred images. The time is from opening the link to the drawn map. The cell: from choosing a condition of
that run to its list. The slider: from moving it to the picture with its predictions, over every step of four
corruptions at 640×480. The server has one core. It needs Chromium and Playwright (make test-browser), and
for yolox-nano the models and photographs of ../shared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from stormproof.core.condition import Condition
from stormproof.core.sample import Prediction
from stormproof.corruptions import SUITES, find
from stormproof.datasets import read_dataset
from stormproof.results.kept import save_scores, scores_key
from stormproof.results.run import Run
from stormproof.results.store.parts import part_path, writing_part
from stormproof.results.store.record import DatasetRecord, ModelRecord, RunRecord, claim
from stormproof.results.store.schema import Row
from stormproof.results.worst import ImageErrors

LIMITS = {"map": 1000.0, "slider": 200.0}  # ms, of the median
SHARED = Path(__file__).resolve().parents[2] / "shared"
CHUNK, SCORED, PHOTOGRAPHS = 50, 100, 8
SLID = ("gaussian_noise", "fog", "motion_blur", "jpeg_compression")
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"


def write_scene(folder: Path, images: int) -> str:
    """Pictures with three boxes each, as COCO; the files are links to a few."""
    (folder / "images").mkdir(parents=True)
    rng = np.random.default_rng(3)
    few = [folder / "images" / f"{i:06d}.jpg" for i in range(min(images, 20))]
    for path in few:
        small = PIL.Image.fromarray(rng.integers(0, 255, (12, 16, 3), np.uint8))
        small.resize((640, 480), PIL.Image.Resampling.BICUBIC).save(path)
    records, annotations = [], []
    for i in range(images):
        if i >= len(few):
            os.link(few[i % len(few)], folder / "images" / f"{i:06d}.jpg")
        records.append({"id": i + 1, "file_name": f"{i:06d}.jpg", "height": 480, "width": 640})
        for k, (x, y) in enumerate(rng.integers(0, 400, (3, 2)).tolist()):
            annotations.append({"id": 3 * i + k + 1, "image_id": i + 1, "category_id": 1 + k, "iscrowd": 0,
                                "bbox": [x, y, 120, 70], "area": 8400})  # fmt: skip
    names = [{"id": k + 1, "name": name} for k, name in enumerate(("person", "car", "bicycle"))]
    content = {"images": records, "annotations": annotations, "categories": names}
    (folder / "instances.json").write_text(json.dumps(content))
    return f"coco:{folder / 'instances.json'},images={folder / 'images'}"


def write_run(out: Path, spec: str, conditions: Sequence[Condition], images: int) -> Run:
    """A run as the engine leaves it: boxes near the truth, farther off the stronger the condition."""
    dataset = read_dataset(spec)
    names = dict.fromkeys(c.corruption for c in conditions if c.corruption)
    record = RunRecord(
        model=ModelRecord(spec="a-model", name="a-model", fingerprint="0" * 32, classes=dataset.classes),
        dataset=DatasetRecord(spec=spec, name=dataset.name, fingerprint=dataset.fingerprint,
                              images=len(dataset), classes=dataset.classes),
        seed=0, chunk=CHUNK, images=images, conditions=("clean", *map(str, conditions)),
        recipes={name: find(name).version for name in names},
    )  # fmt: skip
    claim(out, record)
    rng = np.random.default_rng(0)
    ordered = sorted((Condition(), *conditions), key=str)
    recipes = [find(c.corruption).version if c.corruption else 0 for c in ordered]
    for chunk in range(-(-images // CHUNK)):
        with writing_part(part_path(out, chunk), record.key) as part:
            for index in range(chunk * CHUNK, min((chunk + 1) * CHUNK, images)):
                truth = dataset.truth(index).instances
                assert truth is not None
                for condition, recipe in zip(ordered, recipes, strict=True):
                    off = rng.normal(0, 2 + 4 * (condition.severity or 0), (len(truth), 1)).round(1)
                    said = Prediction(truth.boxes + off, rng.uniform(0.3, 1, len(truth)), truth.labels)
                    part.add(Row.of(index, dataset.ids[index], condition, recipe, (480, 640), said))
    return Run(out)


def keep_scores(run: Run, few: Run) -> None:
    """Keep scores of a run that have its shape and the values of a run of few images."""
    scores = few.score(interval=True)
    errors = scores.image_errors
    assert errors is not None
    times = -(-len(run.ids) // len(errors.ids))
    every = {text: np.tile(values, times)[: len(run.ids)] for text, values in errors.by_condition.items()}
    whole = replace(scores, images=len(run.ids), image_errors=ImageErrors(tuple(run.ids), every))
    save_scores(run, scores_key(run, scores.options), whole)


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """The link of `stormproof explore`, on one core."""
    core = min(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(core), sys.executable, "-m", "stormproof", "explore", "--no-open"]
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "http://" in line:
                yield line[line.index("http://") :].split()[0]
                return
        raise SystemExit(f"stormproof explore {' '.join(arguments)} did not start")
    finally:
        process.terminate()
        process.wait()


class Page:
    """A page of explore in a browser."""

    def __init__(self, browser: Any, link: str, state: str = "") -> None:
        self.tab = browser.new_page(viewport={"width": 1400, "height": 900})
        self.tab.goto(f"{link}#{state}")
        self.tab.wait_for_selector('html[data-ready="yes"]', state="attached", timeout=600_000)

    def mark(self, name: str) -> float:
        """Milliseconds from opening the page to the first mark of that name."""
        return float(self.tab.evaluate(f"performance.getEntriesByName({name!r})[0].startTime"))

    def durations(self, name: str) -> list[float]:
        script = f"performance.getEntriesByName({name!r}, 'measure').map((entry) => entry.duration)"
        return [float(value) for value in self.tab.evaluate(script)]

    def forget(self, name: str) -> None:
        self.tab.evaluate(f"performance.clearMeasures({name!r})")


def time_map(browser: Any, link: str, loads: int) -> list[float]:
    """Milliseconds to the map, from a server that has just started and then again."""
    times = []
    for _ in range(loads):
        page = Page(browser, link)
        times.append(page.mark("map drawn"))
        page.tab.close()
    return times


def time_cells(browser: Any, link: str, count: int) -> list[float]:
    """Milliseconds from choosing a condition to its list of images."""
    page = Page(browser, link)
    page.forget("cell listed")
    values = page.tab.eval_on_selector_all("#condition option", "all => all.map((one) => one.value)")
    for value in [value for value in values if value != "clean"][:count]:
        page.tab.select_option("#condition", value)
        page.tab.wait_for_selector(f'html[data-cell="{value}"]', state="attached")
    return page.durations("cell listed")


def time_slider(browser: Any, link: str, steps: int) -> list[float]:
    """Milliseconds from moving the slider to the picture, one step after the other."""
    times = []
    for corruption in SLID:
        page = Page(browser, link, f"at={corruption}@1")
        page.tab.wait_for_function("() => document.querySelector('#severity').max > 4")
        page.forget("picture shown")
        for place in range(1, steps + 1):
            before = page.tab.evaluate("document.documentElement.dataset.look")
            page.tab.evaluate(
                "(place) => { const slider = document.querySelector('#severity'); slider.value = place;"
                " slider.dispatchEvent(new Event('input')); }",
                place,
            )
            page.tab.wait_for_function("(old) => document.documentElement.dataset.look !== old", arg=before)
        times += page.durations("picture shown")[1:]  # the first opens what the model needs
        page.tab.close()
    return times


def report(name: str, times: Sequence[float], limit: str = "") -> bool:
    """Print median and 95th percentile; whether the median is within its limit."""
    median, high = np.percentile(times, [50, 95])
    is_met = not limit or median <= LIMITS[limit]
    verdict = f"limit {LIMITS[limit]:.0f} ms: {'met' if is_met else 'MISSED'}" if limit else ""
    print(f"{name:<46} median {median:7.0f} ms   95 % within {high:7.0f} ms   of {len(times):3d}   {verdict}")
    return is_met


def photographs(folder: Path) -> str | None:
    """A dataset of a few photographs of ../shared at 640×480; None if there are none."""
    sources = sorted(p for p in SHARED.rglob("*.jpg") if p.stat().st_size > 20_000)[:PHOTOGRAPHS]
    if not sources:
        return None
    folder.mkdir()
    for path in sources:
        image = PIL.Image.open(path).convert("RGB")
        image.resize((640, 480), PIL.Image.Resampling.BICUBIC).save(folder / f"{path.stem}.png")
    return f"images:{folder}"


def measure(browser: Any, folder: Path, *, quick: bool) -> bool:
    """Every number; whether all limits are met."""
    images, loads, steps = (200, 2, 5) if quick else (5000, 10, 40)
    conditions = SUITES["imagenet-c"].conditions
    spec = write_scene(folder / "scene", images)
    run = write_run(folder / "run", spec, conditions, images)
    keep_scores(run, write_run(folder / "few", spec, conditions, SCORED))
    print(f"run of {len(run.ids)} images under {len(run.conditions)} conditions written")
    judged = []
    with served(str(folder / "run")) as link:
        judged.append(report("map, kept scores, just started", time_map(browser, link, 1), "map"))
        judged.append(report("map, kept scores, opened again", time_map(browser, link, loads), "map"))
        report("cell of that run", time_cells(browser, link, steps))
    street = "world:test,size=640x480,count=8"
    with served("--model", "builtin:street-grid", "--data", street) as link:
        judged.append(report("slider, street-grid", time_slider(browser, link, steps), "slider"))
    model, data = SHARED / "models" / "yolox_nano_416_coco.onnx", photographs(folder / "photographs")
    if data is None or not model.exists():
        print("slider, yolox-nano: left out, there are no models and photographs in ../shared")
        return all(judged)
    with served("--model", f"onnx:{model}", "--data", data) as link:
        judged.append(report("slider, yolox-nano, photographs", time_slider(browser, link, steps), "slider"))
    return all(judged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Install Chromium and Playwright first: make test-browser")
    folder = Path(tempfile.mkdtemp(prefix="explore-"))
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
            is_met = measure(browser, folder, quick=options.quick)
            browser.close()
    finally:
        shutil.rmtree(folder)
    if not is_met and not options.quick:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
