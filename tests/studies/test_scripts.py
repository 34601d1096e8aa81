"""Every script of the studies finds what it imports."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

STUDIES = Path(__file__).resolve().parents[2] / "studies"


@pytest.mark.parametrize("script", sorted(STUDIES.rglob("*.py")), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_script_loads(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(script.parent)
    for module in script.parent.glob("*.py"):  # scripts of two studies may have one name
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
    assert runpy.run_path(str(script), run_name="loaded")["__doc__"]
