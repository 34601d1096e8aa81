"""Write docs/demo/: the report that `make demo` ends with, the first screen of one that decides between two
networks, and the table of the README.

python docs/make_demo_report.py

The runs go to demo/ and continue where they were: minutes the first time. The screenshot needs Chromium and
Playwright (make test-browser installs both); without them it stays as it was.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import PIL.Image
from parts import write_part

from stormproof.report.demo import NETWORKS
from stormproof.report.make import Options, make_report

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "demo"
DECIDED = ("street-grid", "street-centre")  # whose report the picture shows: a clear difference
SETTINGS = ("--data", "world:test", "--limit", "100", "--conditions", "imagenet-c@3")
BUDGET = 1.5  # MB of the page
SIZE = {"width": 1280, "height": 1000}  # of the screenshot, in pixels
MACHINE = re.compile(r"<dt>(hardware|made)</dt><dd>[^<]*</dd>")  # a published page names none


def stormproof(*words: str) -> str:
    """What a command prints."""
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-m", "stormproof", *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def printed() -> str:
    """What the demo prints, from the table's title to the first sentence."""
    lines = [line.rstrip() for line in stormproof("demo", "--out", "demo").splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("Three networks"))
    end = next(i for i, line in enumerate(lines) if line.startswith("street-grid keeps"))
    return "\n".join(lines[start : end + 1])


def write_page() -> Path:
    """The report, small enough to be kept, without its machine and without report.json."""
    runs = [str(Path("demo") / name) for name in NETWORKS]
    page, beside = make_report(runs, OUT / "report.html", Options(images=1, budget=BUDGET))
    page.write_text(MACHINE.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")
    beside.unlink()
    return page


def decide(folder: Path) -> Path:
    """The report of the two networks of which one is clearly better."""
    for name in DECIDED:
        stormproof("run", "--model", f"builtin:{name}", *SETTINGS, "--out", str(folder / name))
    return make_report([str(folder / name) for name in DECIDED], folder / "report.html", Options(images=1))[0]


def write_screenshot(page: Path) -> None:
    """The first screen, as someone meets it who opens the page."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("No screenshot: Chromium or Playwright is missing (make test-browser installs both).")
        return
    raw = OUT / "report.png"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport=SIZE, color_scheme="light")
        tab.goto(page.as_uri())
        tab.wait_for_selector('html[data-ready="yes"]', state="attached", timeout=300_000)
        tab.screenshot(path=str(raw))
        browser.close()
    PIL.Image.open(raw).convert("RGB").save(OUT / "report.jpg", quality=80)
    raw.unlink()


def main() -> None:
    os.chdir(ROOT)
    table = printed()
    write_page()
    write_screenshot(decide(ROOT / "demo" / "decided"))
    copy = "[a copy](docs/demo/report.html), to save and open"
    told = f"It ends with a page, `demo/report.html` ({copy})."
    write_part(ROOT / "README.md", "demo", f"```\n{table}\n```\n\n{told}")


if __name__ == "__main__":
    main()
