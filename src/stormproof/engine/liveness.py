"""Signs of life of workers, which a model may kill or stop.

While it works, a worker writes files that explain its death or silence: a note names the cells in progress;
a heartbeat, kept only by runs with a time limit, tells a worker that is busy from one that was stopped or
hangs in a driver. Both lie in the run folder, so they also arrive from other machines. A beat is compared
with the one before it, never with a clock.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from stormproof.core.errors import StormproofError
from stormproof.core.files import read_json, read_text
from stormproof.engine.work import Attempt
from stormproof.results.store.schema import Cell

NOTES = "crash_notes"  # the folder of notes and beats in a run's
INTERVAL = 1.0  # seconds between beats, and between two checks for them
SILENCE = 30.0  # seconds without a beat, beyond the time limit, that a busy machine may need
_LARGEST = 1 << 24  # bytes of a note
_STARTING = 120.0  # extra seconds for a worker that is still starting: it imports frameworks
_in_worker = False  # only workers may end themselves: the planning process notices


def mark_as_worker() -> None:
    """Mark this process as a worker, which a call that cannot be interrupted may end."""
    global _in_worker
    _in_worker = True


def is_worker() -> bool:
    return _in_worker


def write_note(attempt: Attempt, cells: Sequence[Cell]) -> None:
    """Write the cells that the model is about to be called with. Failing to write is ignored."""
    with suppress(OSError):
        _path(attempt, "json").write_text(json.dumps(cells), encoding="utf-8")


def read_note(attempt: Attempt) -> list[Cell]:
    """The cells in progress; none if the worker had not started one."""
    try:
        noted = read_json(_path(attempt, "json"), at_most=_LARGEST)
        return [(int(index), str(text)) for index, text in noted]
    except (StormproofError, ValueError, TypeError, OverflowError):
        return []


def clear_note(attempt: Attempt) -> None:
    with suppress(OSError):
        _path(attempt, "json").unlink(missing_ok=True)


@contextmanager
def heartbeat(attempt: Attempt) -> Iterator[None]:
    """Write a beat every second while a chunk is in progress, if the run has a time limit."""
    if attempt.work.config.timeout is None:
        yield
        return
    done = threading.Event()
    threading.Thread(target=_keep_beating, args=(_path(attempt, "beat"), done), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _keep_beating(path: Path, done: threading.Event) -> None:
    count = 0
    while not done.is_set():
        with suppress(OSError):
            path.write_text(f"{platform.node()} {os.getpid()} {count}", encoding="utf-8")
        count += 1
        done.wait(INTERVAL)
    with suppress(OSError):
        path.unlink(missing_ok=True)


def forget_beats(run: Path, chunks: range) -> None:
    """Remove the beats of workers that were killed with their run: other processes may have their numbers
    by now."""
    for path in (run / NOTES).glob("*.beat"):
        if path.stem.isdecimal() and int(path.stem) in chunks:
            path.unlink(missing_ok=True)


class Listener:
    """Remembers the last beat of every chunk in progress."""

    def __init__(self) -> None:
        self._heard: dict[Path, tuple[str, float]] = {}

    def silent(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The attempts without a beat for too long."""
        now, silent = monotonic(), []
        heard: dict[Path, tuple[str, float]] = {}
        for attempt in attempts:
            timeout = attempt.work.config.timeout
            if timeout is None:
                continue
            path = _path(attempt, "beat")
            beat = _read_beat(path)
            last, since = self._heard.get(path, (None, now))
            heard[path] = (beat, since if beat == last else now)
            if now - heard[path][1] > timeout + SILENCE + (0 if beat else _STARTING):
                silent.append(attempt)
        self._heard = heard
        return silent


def end_worker(attempt: Attempt) -> None:
    """Kill the silent worker, if it is on this machine."""
    path = _path(attempt, "beat")
    host, _, rest = _read_beat(path).partition(" ")
    number = rest.partition(" ")[0]
    if host == platform.node() and number.isdecimal() and int(number) not in (0, 1, os.getpid()):
        with suppress(OSError):
            os.kill(int(number), signal.SIGKILL)
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _read_beat(path: Path) -> str:
    try:
        return read_text(path, at_most=_LARGEST)
    except StormproofError:
        return ""


def _path(attempt: Attempt, kind: str) -> Path:
    return attempt.work.out / NOTES / f"{attempt.chunk:06d}.{kind}"
