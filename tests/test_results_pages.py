"""The pages of docs/results name the versions they rest on; `make results` remakes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from stormproof.corruptions.corruption import find
from stormproof.report.leaderboard.submission import read_submission

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted((DOCS / "results").glob("*.md"))
ENTRIES = sorted((DOCS / "results").glob("*.json"))
RECIPE = re.compile(r"(\w+) (\d+)")
NETWORK = re.compile(r"^\| network `([^`]+)` \| SHA-256 `(\w+)` \|$", re.MULTILINE)
IMAGES = re.compile(r"^\| images `([^`]+)` \| fingerprint `(\w+)` \|$", re.MULTILINE)
DETECTORS = ("yolox_nano", "ssdlite")
AGAIN = "remake it with `make results`"


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """What makes the pages."""
    monkeypatch.syspath_prepend(str(DOCS))
    import make_results

    yield make_results
    for name in [name for name in sys.modules if name.startswith(("results_pages", "make_results"))]:
        del sys.modules[name]


def recipes_of(page: Path) -> dict[str, int]:
    """The versions that a page names."""
    line = re.search(r"^\| recipes \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None, f"{page.name} does not say which recipes it was made with; {AGAIN}"
    return {name: int(version) for name, version in RECIPE.findall(line[1])}


def test_every_page_is_made(pages: ModuleType) -> None:
    assert {page.stem for page in PAGES} == pages.PAGES.keys()
    assert {entry.stem for entry in ENTRIES} == {run.name for run in pages.imagenet_c.RUNS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_recipes_are_those_of_the_package(page: Path) -> None:
    held = recipes_of(page)
    now = {name: find(name).version for name in held}
    assert held == now, f"{page.name} was made with other recipes; {AGAIN}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.stem)
def test_recipes_of_entries_are_those_of_the_package(entry: Path) -> None:
    held = read_submission(entry).recipes
    assert held
    assert held == {name: find(name).version for name in held}, f"{entry.name} is out of date; {AGAIN}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_networks_and_images_exist(page: Path, pages: ModuleType) -> None:
    """Built-in ones always; those under ../shared where it is there."""
    text = page.read_text(encoding="utf-8")
    networks, images = NETWORK.findall(text), IMAGES.findall(text)
    assert networks
    assert images
    shared = pages.runs.PLACES["$MODELS"].parent.exists()
    if not shared and not any(pages.runs.BUILTIN in name for name, _ in networks):
        pytest.skip("the networks and photographs of ../shared are not here")
    for name, version in networks:
        if shared or name.startswith(pages.runs.BUILTIN):
            assert pages.runs.network_hash(name) == version, f"{page.name}: {name} changed; {AGAIN}"
    for data, version in images:
        if shared or "$" not in data:
            assert pages.runs.images_hash(data) == version, f"{page.name}: {data} changed; {AGAIN}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_the_commands_that_make_it(page: Path, pages: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    for run in pages.PAGES[page.stem].RUNS:
        assert run.command in text, f"{page.name} was made with other commands; {AGAIN}"


def test_the_readme_has_these_numbers() -> None:
    """Of two detectors: their clean scores, and the share that each keeps under corruption."""
    found = {name: read_submission(DOCS / "results" / f"{name}.json") for name in DETECTORS}
    clean = {name: f"{100 * entry.P:.1f}" for name, entry in found.items()}
    kept = {name: 100 * entry.mPC / entry.P for name, entry in found.items()}
    assert all(entry.dataset.images == 40 for entry in found.values())
    text = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    first, second = DETECTORS
    assert f"(YOLOX-nano {clean[first]}, SSDLite {clean[second]})" in text
    assert f"YOLOX-nano keeps {kept[first]:.0f} % of its score and SSDLite {kept[second]:.0f} %" in text
    assert f"a difference of {kept[first] - kept[second]:.0f} points" in text


def test_a_finding_is_listed_by_whether_it_holds(pages: ModuleType) -> None:
    found = [pages.runs.Finding("Fog costs 3 points.", True), pages.runs.Finding("Snow costs 9.", False)]
    assert pages.runs.as_lists(found) == (
        "## Agrees on these images\n\n- Fog costs 3 points.\n\n## Does not agree\n\n- Snow costs 9.\n\n"
    )
    assert "Does not" not in pages.runs.as_lists(found[:1])
