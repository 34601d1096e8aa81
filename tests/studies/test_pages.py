"""Parts of pages that scripts write: renewed, checked, and current where they are quick to recompute."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("parts")


def test_parts_are_renewed_and_the_rest_stays(parts: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- one: begin -->\nold\n<!-- one: end -->\n\nThe end.\n")
    text = parts.table(["a", "b"], [["1", "2"]])
    assert text == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    parts.renew(page, {"one": text, "two": "new"}, check=False)
    assert page.read_text() == (
        f"# Title\n\n<!-- one: begin -->\n{text}\n<!-- one: end -->\n\nThe end.\n"
        "\n<!-- two: begin -->\nnew\n<!-- two: end -->\n"
    )


def test_a_check_names_stale_parts_and_writes_nothing(
    parts: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    made = {"one": "same", "two": "same"}
    parts.renew(page, made, check=False)
    before = page.read_text()
    parts.renew(page, made, check=True)
    assert "all 2 parts" in capsys.readouterr().out
    # "same" stands on the page, but not in part two's place
    with pytest.raises(SystemExit, match=r"out of date: two, three\."):
        parts.renew(page, {"one": "same", "two": "sam", "three": "same"}, check=True)
    assert page.read_text() == before


def test_tables_of_the_int8_study_are_what_its_results_give(tmp_path: Path) -> None:
    folder = ROOT / "studies" / "int8"
    page = tmp_path / "README.md"
    page.write_text((folder / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(folder / "study.py"), "--check", "--page", str(page)]
    subprocess.run(command, check=True, capture_output=True)
    page.write_text(page.read_text(encoding="utf-8").replace("-13.9", "-13.8"), encoding="utf-8")
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 1
    assert "twins, groups" in found.stderr
