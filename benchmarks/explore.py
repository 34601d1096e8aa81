"""How fast `stormproof explore` answers, by the browser's own clock.

    python benchmarks/explore.py               every number, with the limit it is held to
    python benchmarks/explore.py --runs DIR    the same; the runs are kept there, and used again
    python benchmarks/explore.py --quick       small runs and a few steps, to see that it works; fails never

Three runs: 5,000 images under 75 conditions and clean, written straight to the store with three boxes an
image; street-grid on generated scenes and yolox-nano on photographs, both at about 640×480 under four
corruptions. All are scored with intervals before. The start: from the command to its link. The map: from
opening the link to the drawn map. The cell: from choosing a condition to its list of images. The scroll: from
a jump in that list to its thumbnails. The slider: from moving it to the picture with its predictions, over
every step. The server has one core. It needs Chromium and Playwright (make test-browser), and for yolox-nano
the models and photographs of ../shared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image

import stormproof
from stormproof.core.condition import Condition
from stormproof.core.sample import Prediction
from stormproof.corruptions import SUITES, find
from stormproof.datasets import read_dataset
from stormproof.results.run import Run
from stormproof.results.store.parts import part_path, writing_part
from stormproof.results.store.record import DatasetRecord, ModelRecord, RunRecord, claim
from stormproof.results.store.schema import Row

LIMITS = {"map": 1000.0, "slider": 200.0}  # ms, of the median
JUMP = """async (share) => {
  const list = document.querySelector('#list'), began = performance.now();
  list.scrollTop = share * (list.scrollHeight - list.clientHeight);
  const frame = () => new Promise(requestAnimationFrame);
  const seen = () => {
    const { top, bottom } = list.getBoundingClientRect();
    return [...list.querySelectorAll('.thumb')].filter((thumb) => {
      const box = thumb.getBoundingClientRect();
      return box.bottom > top && box.top < bottom;
    });
  };
  await frame(); await frame();
  while (!seen().length || !seen().every((thumb) => thumb.querySelector('img').naturalWidth)) await frame();
  return performance.now() - began;
}"""
SHARED = Path(__file__).resolve().parents[2] / "shared"
CHUNK, STARTS = 50, 3
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


class Server(NamedTuple):
    """`stormproof explore`, and how many milliseconds it took to its link."""

    link: str
    started: float
    process: int

    def memory(self) -> float:
        """The most that it has held, in MB."""
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def served(*arguments: str) -> Iterator[Server]:
    """A server, on one core."""
    began = time.perf_counter()
    core = min(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(core), sys.executable, "-m", "stormproof", "explore", "--no-open"]
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "http://" in line:
                link = line[line.index("http://") :].split()[0]
                yield Server(link, 1000 * (time.perf_counter() - began), process.pid)
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


def time_cells(browser: Any, link: str, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from choosing a condition to its list of images, and from a jump in it to thumbnails."""
    page = Page(browser, link)
    page.forget("cell listed")
    values = page.tab.eval_on_selector_all("#condition option", "all => all.map((one) => one.value)")
    for value in [value for value in values if value != "clean"][:count]:
        page.tab.select_option("#condition", value)
        page.tab.wait_for_selector(f'html[data-cell="{value}"]', state="attached")
    jumps = [float(page.tab.evaluate(JUMP, place / count)) for place in range(1, count + 1)]
    return page.durations("cell listed"), jumps


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


def make_runs(folder: Path, *, quick: bool) -> dict[str, Path]:
    """The runs, scored; those that are there already are used again."""
    images, few = (200, 2) if quick else (5000, 8)
    many = folder / "many"
    if not many.exists():
        write_run(many, write_scene(folder / "scene", images), SUITES["imagenet-c"].conditions, images)
    runs = {f"{images} images × 76": many, "street-grid": folder / "street", "yolox-nano": folder / "yolox"}
    asked = {"street": ("builtin:street-grid", f"world:test,size=640x480,count={few}")}
    photographs = sorted((SHARED / "data" / "coco" / "val2017").glob("*.jpg"))[:few]
    if photographs:
        (folder / "ids.txt").write_text("".join(f"{int(path.stem)}\n" for path in photographs))
        coco = f"coco:{SHARED}/data/coco/instances_val2017.json,images={SHARED}/data/coco/val2017"
        model = f"onnx:{SHARED}/models/yolox_nano_416_coco.onnx"
        asked["yolox"] = (model, f"{coco},only={folder / 'ids.txt'}")
    for name, (model, data) in asked.items():
        if not (folder / name).exists():
            stormproof.run(model, data, out=folder / name, conditions=",".join(SLID), engine="local")
    runs = {name: path for name, path in runs.items() if path.exists()}
    for path in runs.values():
        Run(path).score(interval=True)
    return runs


def measure(browser: Any, name: str, run: Path, *, quick: bool) -> bool:
    """Every number of a run; whether its limits are met."""
    starts, first = [], []
    for _ in range(1 if quick else STARTS):
        with served(str(run)) as server:
            starts.append(server.started)
            first += time_map(browser, server.link, 1)
    report(f"{name}: start", starts)
    met = [report(f"{name}: map, just started", first, "map")]
    loads, steps = (2, 5) if quick else (10, 40)
    with served(str(run)) as server:
        met.append(report(f"{name}: map, opened again", time_map(browser, server.link, loads)[1:], "map"))
        cells, jumps = time_cells(browser, server.link, steps)
        report(f"{name}: cell", cells)
        report(f"{name}: scroll", jumps)
        if (run / "run.yaml").exists():  # its model can be asked
            met.append(report(f"{name}: slider", time_slider(browser, server.link, steps), "slider"))
        print(f"{name}: memory of the server at most {server.memory():.0f} MB, load {os.getloadavg()[0]:.1f}")
    return all(met)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=Path)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Install Chromium and Playwright first: make test-browser")
    with tempfile.TemporaryDirectory(prefix="explore-") as made, sync_playwright() as playwright:
        folder = options.runs or Path(made)
        folder.mkdir(exist_ok=True)
        runs = make_runs(folder, quick=options.quick)
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        met = [measure(browser, name, run, quick=options.quick) for name, run in runs.items()]
        browser.close()
    if not all(met) and not options.quick:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
