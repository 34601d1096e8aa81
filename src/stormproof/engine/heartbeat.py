"""Heartbeats: a worker that is stopped, or hangs with its driver, falls silent and is given up.

Only runs with a time limit listen. The beat is a file beside the notes of cells in hand, so that it comes
from other machines, too; it is compared with what it was, never with a clock.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from stormproof.engine.in_hand import IN_HAND
from stormproof.engine.work import Attempt

INTERVAL = 1.0  # seconds between beats, and between two looks for them
SILENCE = 30.0  # seconds without a beat, beyond the time limit, that a busy machine may need
_UNHEARD = 120.0  # more for a worker that has not begun: it imports frameworks


@contextmanager
def beating(attempt: Attempt) -> Iterator[None]:
    """Beat while a chunk is in hand."""
    if attempt.work.timeout is None:
        yield
        return
    done = threading.Event()
    threading.Thread(target=_beat, args=(_path(attempt), done), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _beat(path: Path, done: threading.Event) -> None:
    count = 0
    while not done.is_set():
        with suppress(OSError):
            path.write_text(f"{platform.node()} {os.getpid()} {count}", encoding="utf-8")
        count += 1
        done.wait(INTERVAL)
    with suppress(OSError):
        path.unlink(missing_ok=True)


class Listener:
    """Remembers the last beat of every chunk in hand."""

    def __init__(self) -> None:
        self._heard: dict[Path, tuple[str, float]] = {}

    def silent(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The attempts that have not been heard of for too long."""
        now, listed = monotonic(), [a for a in attempts if a.work.timeout is not None]
        found = []
        heard: dict[Path, tuple[str, float]] = {}
        for attempt in listed:
            path = _path(attempt)
            beat = _read(path)
            last, since = self._heard.get(path, (None, now))
            heard[path] = (beat, since if beat == last else now)
            assert attempt.work.timeout is not None
            patience = attempt.work.timeout + SILENCE + (0 if beat else _UNHEARD)
            if now - heard[path][1] > patience:
                found.append(attempt)
        self._heard = heard
        return found


def end_worker(attempt: Attempt) -> None:
    """End the silent worker, if it is on this machine."""
    host, _, rest = _read(_path(attempt)).partition(" ")
    number = rest.partition(" ")[0]
    if host == platform.node() and number.isdecimal() and int(number) not in (0, 1, os.getpid()):
        with suppress(OSError):
            os.kill(int(number), signal.SIGKILL)
    with suppress(OSError):
        _path(attempt).unlink(missing_ok=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _path(attempt: Attempt) -> Path:
    return attempt.work.out / IN_HAND / f"{attempt.chunk:06d}.beat"
