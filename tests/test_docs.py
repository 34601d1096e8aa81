"""Pages that are made by scripts are those the scripts would make, and links between pages lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import stormproof
from programs.wheel import blocks, commands
from stormproof import extend
from stormproof.cli import app, inspect
from stormproof.core.imagefile import write_image
from stormproof.core.loading import ON_PYPI

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md"), *(ROOT / "studies").rglob("*.md")]
)
# Pages to paste from.
TYPED = sorted([*DOCS.glob("migrating-*.md"), DOCS / "tutorial.md", ROOT / "README.md"])
ALONE = {  # no pools in a test, and less work
    "run": ("--engine", "local", "--limit", "2"),
    "corrupt": ("--workers", "1"),
}
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def test_the_pages_of_corruptions_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import make_corruptions

    made = make_corruptions.pages()
    assert {path.name for path in make_corruptions.OUT.glob("*.md")} == made.keys()
    for name, text in made.items():
        kept = (make_corruptions.OUT / name).read_text(encoding="utf-8")
        assert kept == text, f"{name} is out of date; run python docs/make_corruptions.py"
    drawn = {path.stem for path in make_corruptions.OUT.glob("*.webp")}
    assert drawn == {one.name for some in make_corruptions.members().values() for one in some}


@pytest.mark.slow
@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.stem)
def test_commands_and_python_of_a_page_work(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = np.random.default_rng(5).integers(0, 256, (48, 64, 3), np.uint8)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inspect, "_GLANCE", 20)  # of 200 images
    (tmp_path / "photographs").mkdir()
    write_image(tmp_path / "photographs" / "one.png", image)
    known: dict[str, object] = {"image": image}
    for block in blocks(page, "yaml"):
        (tmp_path / "requirements.yaml").write_text(block)
    for block in blocks(page, "python"):
        exec(compile(block.replace("limit=4", "limit=1"), page.name, "exec"), known)
    for command in commands(page):
        program, *words = shlex.split(command)
        if program == "pip" or words[0] == "demo":
            continue  # tests/programs/wheel.py runs both in an empty environment
        done = CliRunner().invoke(app, [*words, *ALONE.get(words[0], ())])
        assert done.exit_code in ((0, 3) if words[0] == "check" else (0,)), (
            f"{command}\n{done.output}\n{done.exception}"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = [link for link in LINK.findall(text) if "://" not in link]
    broken = [link for link in targets if not (page.parent / link.partition("#")[0]).exists()]
    assert broken == []


def anchors(page: Path) -> set[str]:
    """What a page's headings are called in links."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_page_of_what_stays_stable_lists_every_public_name() -> None:
    page = (DOCS / "stability.md").read_text(encoding="utf-8").partition("## Python names")[2]
    for listed, module in zip(page.split("## Names for plugins"), (stormproof, extend), strict=True):
        assert set(re.findall(r"`(\w+)`", listed)) - {"stormproof", "MODULES"} == set(module.__all__)


def test_nothing_is_installed_by_name_before_it_is_published() -> None:
    """Pages and hints, but for the checklist of a release and the notebook."""
    by_name = re.compile(r"pip install[^\n]*(?<![./\w-])stormproof(?![\w/-])")
    pages = [page for page in PAGES if page.name != "releasing.md" and by_name.search(page.read_text())]
    assert bool(pages) == ON_PYPI, pages


def test_links_to_headings_exist() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            file, _, head = link.partition("#")
            target = page.parent / file if file else page
            if head and "://" not in link and target.suffix == ".md" and head not in anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []
