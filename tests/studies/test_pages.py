"""Parts of pages that scripts write: renewed, checked, and current where they are quick to recompute."""

from __future__ import annotations

import importlib
import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
INT8 = ROOT / "studies" / "int8"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("parts")


def test_generated_parts_are_renewed_and_the_rest_stays(parts: ModuleType, tmp_path: Path) -> None:
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


def test_tables_of_the_study_of_pairs_follow_from_its_scores() -> None:
    command = [sys.executable, str(ROOT / "studies" / "together" / "study.py"), "--check"]
    subprocess.run(command, check=True, capture_output=True)


def test_tables_of_the_int8_study_follow_from_its_results(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text((INT8 / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(INT8 / "study.py"), "--check", "--page", str(page)]
    subprocess.run(command, check=True, capture_output=True)
    page.write_text(page.read_text(encoding="utf-8").replace("-12.9", "-12.8"), encoding="utf-8")
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 1
    assert "twins, groups, causes, processors" in found.stderr


@pytest.mark.slow
def test_the_float_head_begins_after_the_neck(tmp_path: Path) -> None:
    """Of every built-in network: the convolutions that make its outputs, and no part of its body."""
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    quantise, study = (runpy.run_path(str(INT8 / f"{name}.py")) for name in ("quantise", "study"))
    for network in study["NETWORKS"]:
        plain = tmp_path / f"{network}.onnx"
        quantise["_fold"](quantise["folder"]() / plain.name, plain)
        graph = onnx.load(plain).graph
        head = quantise["_head"](plain)
        makers = {node.name for node in graph.node if {*node.output} & {out.name for out in graph.output}}
        assert makers <= {*head}
        assert len(head) < len(graph.node) - 40


def test_numbers_of_one_network_are_kept_beside_the_others(tmp_path: Path) -> None:
    keep = runpy.run_path(str(INT8 / "study.py"))["keep"]
    path = tmp_path / "results.json"
    twins = {"static": {"differences": {"P": [-1.5, -2.0, 1e-05]}}}
    keep(path, "street-plain", {"twins": {}})
    keep(path, "street-grid", {"twins": twins})
    assert list(json.loads(path.read_text())["networks"]) == ["street-grid", "street-plain"]
    assert json.loads(path.read_text())["networks"]["street-grid"]["twins"] == twins
    assert "[-1.5, -2.0, 1e-05]" in path.read_text()
