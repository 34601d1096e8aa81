"""What a report and a leaderboard cost: seconds, megabytes, and how soon a browser shows something.

    python benchmarks/report.py            every table, with the limit each number is held to
    python benchmarks/report.py --quick    few images and conditions, to see that it runs; nothing is judged

Runs are written straight to the store: 640×480 scenes, a hundred boxes an image, scored beforehand, so that
the time is the report's own. First paint is measured where Chromium and Playwright are installed
(make test-browser) and is left out elsewhere.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image
from rich.console import Console
from rich.table import Table

from stormproof.core.condition import Condition
from stormproof.core.sample import Prediction
from stormproof.corruptions import SUITES, find
from stormproof.datasets import read_dataset
from stormproof.report.leaderboard.published import published_submissions
from stormproof.report.leaderboard.site import build_site
from stormproof.report.make import Options, make_report
from stormproof.results.run import Run
from stormproof.results.store.parts import part_path, writing_part
from stormproof.results.store.record import DatasetRecord, ModelRecord, RunRecord, claim
from stormproof.results.store.schema import Row

LIMITS = {"report": (60.0, "s"), "page": (15.0, "MB"), "first paint": (1.0, "s"), "freeze": (1.0, "s"),
          "leaderboard": (30.0, "s")}  # fmt: skip
BOXES, CLASSES = 100, 20
CHUNK = 50


def write_scene(folder: Path, images: int) -> str:
    """Smooth pictures with seven boxes each, as COCO."""
    (folder / "images").mkdir(parents=True)
    rng = np.random.default_rng(3)
    records, annotations = [], []
    for i in range(images):
        small = rng.integers(0, 255, (12, 16, 3), np.uint8)
        PIL.Image.fromarray(small).resize((640, 480), PIL.Image.Resampling.BICUBIC).save(
            folder / "images" / f"{i:04d}.jpg"
        )
        records.append({"id": i + 1, "file_name": f"{i:04d}.jpg", "height": 480, "width": 640})
        for k in range(7):
            x, y = rng.integers(0, 400, 2).tolist()
            box = [x, y, 120, 70]
            annotations.append({"id": 7 * i + k + 1, "image_id": i + 1, "category_id": 1 + (i + k) % CLASSES,
                                "iscrowd": 0, "bbox": box, "area": 8400})  # fmt: skip
    names = [{"id": k + 1, "name": "person" if k == 0 else f"class {k}"} for k in range(CLASSES)]
    content = {"images": records, "annotations": annotations, "categories": names}
    (folder / "instances.json").write_text(json.dumps(content))
    return f"coco:{folder / 'instances.json'},images={folder / 'images'}"


def write_run(out: Path, spec: str, model: int, conditions: Sequence[Condition]) -> Path:
    """A run as the engine leaves it: boxes near the truth, fewer and worse the stronger the condition."""
    dataset = read_dataset(spec)
    names = dict.fromkeys(c.corruption for c in conditions if c.corruption)
    record = RunRecord(
        model=ModelRecord(spec=f"model-{model}", name=f"model-{model}", fingerprint=f"{model:032x}",
                          classes=dataset.classes),
        dataset=DatasetRecord(spec=spec, name=dataset.name, fingerprint=dataset.fingerprint,
                              images=len(dataset), classes=dataset.classes),
        seed=0, chunk=CHUNK, images=len(dataset), conditions=("clean", *map(str, conditions)),
        recipes={name: find(name).version for name in names},
        tags={"backbone": f"b{model % 3}", "framework": f"f{model % 2}"},
    )  # fmt: skip
    claim(out, record)
    rng = np.random.default_rng(model)
    ordered = sorted((Condition(), *conditions), key=str)
    for chunk in range(-(-len(dataset) // CHUNK)):
        with writing_part(part_path(out, chunk), record.key) as part:
            for index in range(chunk * CHUNK, min((chunk + 1) * CHUNK, len(dataset))):
                truth = dataset.truth(index).instances
                assert truth is not None
                for condition in ordered:
                    hurt = (condition.severity or 0) * (4 + model)
                    recipe = find(condition.corruption).version if condition.corruption else 0
                    said = _said(rng, truth.boxes, truth.labels, hurt)
                    part.add(Row.of(index, dataset.ids[index], condition, recipe, (480, 640), said))
    return out


def _said(rng: np.random.Generator, boxes: np.ndarray, labels: np.ndarray, hurt: float) -> Prediction:  # type: ignore[type-arg]
    near = boxes + rng.normal(0, 1 + hurt, boxes.shape)
    far = np.sort(rng.uniform(0, 480, (BOXES - len(boxes), 2, 2)), axis=1).reshape(-1, 4)
    found = np.concatenate([near, far])
    found[:, 2:] = np.maximum(found[:, 2:], found[:, :2] + 1)
    scores = np.concatenate([rng.uniform(0.3, 1, len(near)), rng.uniform(0, 0.4, len(far))])
    return Prediction(found, scores, np.concatenate([labels, rng.integers(0, CLASSES, len(far))]))


class Opened(NamedTuple):
    """Seconds a reader waits: for something to read, for the last chart, at most without an answer."""

    painted: float
    drawn: float
    frozen: float


def opened(page: Path) -> Opened | None:
    """How a page opens; none without a browser."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags.split())
        tab = browser.new_page()
        tab.add_init_script(
            "window.tasks = []; new PerformanceObserver(list => list.getEntries().forEach("
            "entry => tasks.push(entry.duration / 1000))).observe({entryTypes: ['longtask']})"
        )
        start = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="commit")
        tab.wait_for_selector('html[data-ready="yes"]', state="attached", timeout=300_000)
        whole = time.perf_counter() - start
        paints = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime / 1000)"
        painted, frozen = tab.evaluate(paints), tab.evaluate("Math.max(0, ...tasks)")
        browser.close()
    return Opened(float(painted[0]), whole, float(frozen))


def scored(spec: str, folder: Path, models: int, conditions: Sequence[Condition]) -> list[str]:
    """Run folders of several models: one that is scored, and copies, which cost a report as much."""
    first = write_run(folder / f"run-{models}-0", spec, 0, conditions)
    Run(first).score(interval=True)
    others = [first.with_name(f"run-{models}-{i}") for i in range(1, models)]
    return [str(first), *(str(shutil.copytree(first, other)) for other in others)]


def copies(count: int) -> list[object]:
    """Submissions under names of their own."""
    papers = list(published_submissions())
    return [
        (entry := papers[i % 40]).model_copy(
            update={"model": entry.model.model_copy(update={"name": f"{entry.model.name} {i}"})}
        )
        for i in range(count)
    ]


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--quick", action="store_true")
    asked.add_argument("--images", type=int, default=500, help="of the first report; the limits are for 500")
    options = asked.parse_args()
    quick = options.quick
    # 19 corruptions at 5 severities
    every = [*SUITES["imagenet-c"].conditions, *SUITES["holdout"].conditions]
    images, conditions, entries, many = (10, every[:10], 20, 3) if quick else (options.images, every, 500, 20)
    table = Table(title="Report and leaderboard", title_justify="left")
    for name in ("what", "measured", "limit"):
        table.add_column(name)
    missed = []

    def judged(what: str, key: str, value: float) -> None:
        limit, unit = LIMITS[key]
        table.add_row(what, f"{value:.2f} {unit}", f"{limit:g} {unit}")
        if value > limit and not quick:
            missed.append(what)

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spec = write_scene(folder / "scene", images)
        runs = scored(spec, folder, 4, conditions)
        page = folder / "report.html"
        start = time.process_time()
        make_report(runs, page, Options())
        size = f"4 models × {len(conditions)} conditions × {images} images"
        judged(f"{size}: seconds of one core", "report", time.process_time() - start)
        judged(f"{size}: the page", "page", page.stat().st_size / 1e6)
        seen = opened(page)
        if seen is not None:
            judged(f"{size}: first paint", "first paint", seen.painted)
            table.add_row(f"{size}: every chart drawn", f"{seen.drawn:.1f} s", "")
        few = write_scene(folder / "few", 10)
        wide = scored(few, folder, many, SUITES["imagenet-c"].conditions if not quick else conditions)
        make_report(wide, page, replace(Options(), images=1))
        seen = opened(page)
        size = f"{many} models × 76 conditions"
        if seen is None:
            table.add_row(f"{size} opens", "no browser here", "")
        else:
            judged(f"{size}: first paint", "first paint", seen.painted)
            judged(f"{size}: longest moment without answer", "freeze", seen.frozen)
            table.add_row(f"{size}: every chart drawn", f"{seen.drawn:.1f} s", "")
        start = time.process_time()
        build_site(copies(entries), folder / "site")  # type: ignore[arg-type]
        judged(f"leaderboard of {entries}: seconds of one core", "leaderboard", time.process_time() - start)
    Console().print(table)
    if missed:
        print("Missed: " + ", ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
