"""Progress: bars on a terminal, lines in a log, one line in a notebook."""

from __future__ import annotations

import sys
from io import StringIO
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from stormproof.core import progress as module
from stormproof.core.progress import progress_on


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "monotonic", made)
    return made


def log() -> Console:
    return Console(file=StringIO(), force_terminal=False, width=200)


def text(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_short_work_writes_no_line_to_a_log(clock: Clock) -> None:
    console = log()
    with progress_on(console, "corrupting", 3) as progress:
        assert list(progress.track("abc")) == ["a", "b", "c"]
    assert text(console) == ""


def test_a_log_has_a_line_every_ten_seconds(clock: Clock) -> None:
    console = log()
    with progress_on(console, "corrupting", 40) as progress:
        for _ in range(40):
            clock.now += 1
            progress.advance()
    assert text(console).splitlines() == [
        "corrupting: 10/40 images (25%), 1.0 images/s, 30 s left",
        "corrupting: 20/40 images (50%), 1.0 images/s, 20 s left",
        "corrupting: 30/40 images (75%), 1.0 images/s, 10 s left",
        "corrupting: 40/40 images (100%), 1.0 images/s",
        "corrupting: 40/40 images (100%), 1.0 images/s",
    ]


def test_work_of_an_earlier_run_does_not_count_as_speed(clock: Clock) -> None:
    console = log()
    progress = progress_on(console, "net", 100, "cells")
    progress.skip(90)
    with progress:
        clock.now = 10
        progress.note = "1 failed"
        progress.advance(5)
        progress.say("failed: [/]")
    assert text(console).splitlines() == [
        "net: 95/100 cells (95%), 1 failed, 0.5 cells/s, 10 s left",
        "failed: [/]",
        "net: 95/100 cells (95%), 1 failed, 0.5 cells/s, 10 s left",
    ]


def test_a_terminal_has_a_bar_and_one_for_each_part() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=120, height=20)
    progress = progress_on(console, "[/]", 4, "cells", parts={"fog": 2, "snow": 2})
    progress.skip(1, "fog")
    with progress:
        progress.advance(1, "fog")
        progress.begin("now this", "and that")
    assert all(words in text(console) for words in ("[/]", "now this", "fog", "snow", "2/4", "2/2"))
    assert "and that" not in text(console)


def test_a_notebook_has_one_line_that_changes(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(f"again {data['text/plain']}")

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(data["text/plain"])
        return Handle()

    page = ModuleType("IPython.display")
    page.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    with progress_on(Console(force_jupyter=True), "net", 2, "cells") as progress:
        progress.begin("net on street", "2 of 2 cells left")
        clock.now = 1
        progress.advance(2)
        progress.say("failed: one")
    assert shown[0] == "net on street: 2 of 2 cells left"
    assert shown[1:] == ["again net on street: 2/2 cells (100%), 2.0 cells/s"] * 2
    assert capsys.readouterr().out == "failed: one\n"


def test_the_first_piece_is_left_out_of_the_estimate(clock: Clock) -> None:
    console = log()
    with progress_on(console, "net", 1000, "cells") as progress:
        clock.now = 60  # kernels were compiled
        progress.advance(3)
        clock.now = 70
        progress.advance(97)
        clock.now = 170
        progress.advance(900)
    assert text(console).splitlines()[:2] == [
        "net: 3/1000 cells (0%), 0.1 cells/s",
        "net: 100/1000 cells (10%), 1.4 cells/s, 1 min 33 s left",
    ]
