"""The worked additions of docs/adding, from the pages' own text: each diff applies, its commands succeed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(page for page in (ROOT / "docs" / "adding").glob("*.md") if page.stem != "README")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def test_each_worked_addition_has_a_page_and_is_listed() -> None:
    expected = {
        "corruption", "dataset", "adapter", "metric", "aggregate", "section", "plugin", "task", "boundary",
    }  # fmt: skip
    assert {page.stem for page in PAGES} == expected
    listed = re.findall(r"\]\((\w+)\.md\)", (ROOT / "docs/adding/README.md").read_text(encoding="utf-8"))
    assert {page.stem for page in PAGES} <= {*listed}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_addition_works_as_the_page_says(page: Path, tmp_path: Path) -> None:
    diffs, commands = blocks(page, "diff"), blocks(page, "console")
    assert diffs
    assert commands
    passing = shutil.ignore_patterns("*.jpg", "*.tmp.*", "*.pyc.*")  # what others are writing just now
    for name in ("src", "docs", "tests"):  # with Numba's cache, which takes a minute to make
        shutil.copytree(ROOT / name, tmp_path / name, ignore=passing)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    # Without a repository above it, git would look for one and apply nothing.
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for diff in diffs:
        done = subprocess.run(
            ["git", "apply", "-"], input=diff, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{page.name}: the diff no longer applies: {done.stderr}"
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "PATH": os.pathsep.join(paths)}
    for command in (line[2:] for block in commands for line in block.splitlines() if line.startswith("$ ")):
        command = command.replace(
            "vanes:60", "vanes:12"
        )  # less work, and below no workers, which start slowly
        if command.startswith("stormproof run") and "--engine" not in command:
            command += " --engine local"
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout}{done.stderr}"
