"""Charts are drawn in a process of their own, whose death is an error with a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.toy_scores import toy_scores
from stormproof.core.errors import RunError
from stormproof.report import vega
from stormproof.report.figures import write_figures
from stormproof.report.view import make_view

SPEC = {"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}


def test_draws_every_format_in_the_order_given() -> None:
    png, svg, pdf = vega.draw_charts([("png", SPEC), ("svg", SPEC), ("pdf", SPEC)])
    assert png.startswith(b"\x89PNG")
    assert svg.startswith(b"<svg")
    assert pdf.startswith(b"%PDF")
    assert vega.draw_charts([]) == []


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux only")
def test_too_little_memory_is_an_error_and_not_a_native_stack(tmp_path: Path) -> None:
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from stormproof.core.errors import RunError\n"
        "from stormproof.report.vega import draw_charts\n"
        f"try: draw_charts([('svg', {SPEC!r})])\n"
        "except RunError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the process of vl-convert was ended by SIG" in done.stdout
    assert "ulimit -v" in done.stdout
    assert done.stderr == ""


def test_a_process_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "dies.py"
    program.write_text("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    monkeypatch.setattr(vega, "_PROGRAM", program)
    with pytest.raises(RunError, match="ended by SIGTERM"):
        write_figures(make_view([toy_scores()]), tmp_path / "figures")
    assert not list((tmp_path / "figures").iterdir())


def test_reports_what_vl_convert_refuses() -> None:
    with pytest.raises(RunError, match="vl-convert says"):
        vega.draw_charts([("svg", {"mark": "no such mark"})])
