"""A real browser: Debian's Chromium, driven by Playwright. `make test-browser` installs what is needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.explore_desk import BOXES, CONDITIONS, MASKS, Desk
from helpers.hostile import SCRIPT, rename_classes, rename_model
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from helpers.visits import Visit

ASKED = "STORMPROOF_BROWSER"  # set by make test-browser
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not os.environ.get(ASKED):
        pytest.skip(
            "needs a browser: run 'make test-browser', which installs Chromium, Playwright and axe-core"
        )
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "no Chromium found; make test-browser installs Debian's"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report, a comparison and a leaderboard, with hostile names wherever a user can put one."""
    from stormproof.engine.config import make_config
    from stormproof.engine.run import run
    from stormproof.report.comparison import compare_view
    from stormproof.report.leaderboard.published import published_submissions
    from stormproof.report.leaderboard.site import build_site
    from stormproof.report.leaderboard.submission import submission_of
    from stormproof.report.make import Options, make_report, write_page
    from stormproof.report.page import page
    from stormproof.report.sources import run_scores
    from stormproof.results.run import Run

    folder = tmp_path_factory.mktemp("site")
    scene = write_scene(folder / "scene", images=8, size=(96, 128))
    rename_classes(scene)
    runs = []
    for name in ("contrast_boxes", "contrast_masks"):
        settings = {"model": f"{MODELS}:{name}", "data": scene, "tags": {"backbone": name}, "engine": "local"}
        where = {"conditions": ["fog,gaussian_noise,motion_blur"], "out": str(folder / name)}
        run(make_config(settings | where))
        runs.append(folder / name)
    rename_model(runs[0], SCRIPT)
    make_report([str(path) for path in runs], folder / "report.html", Options(images=3, measure="AP"))
    first, second = (run_scores(Run(path), interval=True) for path in runs)
    compared = compare_view(first, second, measure="AP")
    write_page(folder / "compare.html", compared, page(compared))
    entries = [submission_of(Run(path), measure="AP", note=SCRIPT) for path in runs]
    build_site([*entries, *list(published_submissions())[:12]], folder / "board")
    entry = next(p for p in sorted((folder / "board" / "models").glob("script*.html")))
    return {"report": folder / "report.html", "compare": folder / "compare.html",
            "board": folder / "board" / "index.html", "entry": entry}  # fmt: skip


@pytest.fixture
def visit(browser: Any, site: dict[str, Path]) -> Iterator[Any]:
    contexts = []

    def opened(name: str, width: int = 1280, scheme: str = "light") -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        return Visit(context.new_page(), site[name])

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def runs(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two models on the same scenes, with hostile names wherever a user can put one."""
    from stormproof.engine.config import make_config
    from stormproof.engine.run import run

    folder = tmp_path_factory.mktemp("explored")
    scene = write_scene(folder / "scene", images=12, size=(96, 128))
    rename_classes(scene)
    made = []
    for model in (BOXES, MASKS):
        out = folder / model.rpartition(":")[2]
        run(make_config({"model": model, "data": scene, "engine": "local", "chunk": 4, "out": str(out),
                         "conditions": [CONDITIONS]}))  # fmt: skip
        made.append(out)
    rename_model(made[0], SCRIPT)
    return made


@pytest.fixture(scope="module")
def served(runs: list[Path]) -> Iterator[Callable[..., str]]:
    """Start servers; the models are named again, so that they are asked."""
    from stormproof.explore.serve import Server, open_subjects

    servers: list[Any] = []

    def start(folders: list[Path], models: tuple[str, ...] = (BOXES, MASKS), data: str | None = None) -> str:
        server = Server(open_subjects(folders, models, data))
        server.start()
        servers.append(server)
        return str(server.link)

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def link(served: Callable[..., str], runs: list[Path]) -> str:
    return served(runs)


@pytest.fixture
def desk(browser: Any, link: str) -> Iterator[Callable[..., Desk]]:
    contexts = []

    def opened(
        width: int = 1400, scheme: str = "light", state: str = "", at: str = "", **settings: Any
    ) -> Desk:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True, **settings
        )
        contexts.append(context)
        return Desk(context.new_page(), (at or link) + (f"#{state}" if state else ""))

    yield opened
    for context in contexts:
        context.close()
