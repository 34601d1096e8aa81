"""`run.explore()` with a stand-in for IPython and without it; engine/test_notebook.py has a real kernel."""

from __future__ import annotations

import builtins
import sys
import types
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def fetch(link: str) -> tuple[str, str]:
    """A page and its content policy."""
    with urllib.request.urlopen(link, timeout=60) as answer:
        return answer.read().decode(), answer.headers["content-security-policy"]


def test_explore_prints_the_link_without_a_notebook(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stormproof import Run

    server = Run(folder).explore()
    printed = capsys.readouterr().out.strip()
    assert printed == server.link
    assert printed.startswith("http://127.0.0.1:")
    assert "The storm map" in fetch(printed)[0]
    server.stop()


def test_explore_prints_the_link_where_ipython_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormproof import Run

    imported = builtins.__import__

    def without_ipython(name: str, *given: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "IPython":
            raise ImportError(name)
        return imported(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", without_ipython)
    server = Run(folder).explore()
    assert capsys.readouterr().out.strip() == server.link
    server.stop()


def test_explore_shows_a_frame_in_a_notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame is shown in the cell, and pages of this machine, as a notebook's is, may hold it."""
    from stormproof import Run

    displayed: list[Any] = []
    display = types.ModuleType("IPython.display")
    display.IFrame = lambda src, width, height: types.SimpleNamespace(src=src, width=width)  # type: ignore[attr-defined]
    display.display = displayed.append  # type: ignore[attr-defined]
    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: object()  # type: ignore[attr-defined]
    shell.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    server = Run(folder).explore()
    (frame,) = displayed
    assert frame.src == server.link
    assert frame.width == "100%"
    page, policy = fetch(frame.src)
    assert "The storm map" in page
    assert "frame-ancestors http://localhost:* http://127.0.0.1:*" in policy
    server.stop()
