"""What protects a run from its model, which may raise, hang, return nonsense or kill its worker.

A call has a time limit, and its predictions are checked. While it works, a worker writes files that explain
its death or silence: a note names the cells in progress; a heartbeat, kept only by runs with a time limit,
tells a worker that is busy from one that was stopped or hangs in a driver. Both lie in the run folder, so
they also arrive from other machines. A beat is compared with the one before it, never with a clock.
"""

from __future__ import annotations

import faulthandler
import json
import os
import platform
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, StormproofError, message_of
from stormproof.core.files import read_json, read_text
from stormproof.core.private import without_secrets
from stormproof.core.processes import same_folder
from stormproof.core.sample import SEGMENTS, Image, Prediction
from stormproof.engine.work import Attempt
from stormproof.models.model import Model
from stormproof.results.store.schema import Cell

_Result = TypeVar("_Result")
GRACE = 2.0  # seconds between interrupting a call and ending the process that cannot be interrupted
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


class _Overdue(BaseException):
    """Raised inside a call that takes too long; not an Exception, so that models do not swallow it."""


class ModelTimeout(Exception):
    """The model did not return in time."""


def in_time(seconds: float | None, call: Callable[[], _Result]) -> _Result:
    """The result of `call`, or `ModelTimeout` after `seconds`.

    A signal interrupts Python and most system calls. Code that never returns to Python cannot be
    interrupted; a worker then ends itself, and the planning process knows which cells were in progress.
    The signal may come at any moment: it raises only until the call has ended, and always inside the guarded
    block. This is why it is not a context manager, whose own code would be outside the block.
    """
    possible = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
    if seconds is None or not possible:
        return call()
    running = True

    def overdue(signum: int, frame: FrameType | None) -> None:
        if running:
            raise _Overdue

    before = signal.signal(signal.SIGALRM, overdue)
    try:
        try:
            if _in_worker:
                faulthandler.dump_traceback_later(seconds + GRACE, exit=True)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return call()
        finally:
            running = False
    except _Overdue:
        raise ModelTimeout(f"no answer within {seconds:g} s") from None
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if _in_worker:
            faulthandler.cancel_dump_traceback_later()


def predict(model: Model, images: Sequence[Image], timeout: float | None) -> list[Prediction]:
    """The model's predictions, one per image, or an error that says what it returned instead.

    The model may empty the list it is given, and reshape its images.
    """
    given = [image[...] for image in images]  # views: assigning a shape changes the array itself
    try:
        with same_folder():
            found = in_time(timeout, lambda: model(given))
    except (Exception, KeyboardInterrupt):
        raise  # Ctrl-C is the user's
    except SystemExit as error:
        raise InvalidPrediction(f"the model called sys.exit({error.code!r})") from error
    except BaseException as error:  # such as asyncio.CancelledError, which would end the run
        raise InvalidPrediction(f"the model raised {describe(error)}") from error
    if not isinstance(found, list | tuple):
        raise InvalidPrediction(f"the model returned a {type(found).__name__}, not a list of Prediction")
    if len(found) != len(images):
        raise InvalidPrediction(f"the model returned {len(found)} predictions for {len(images)} images")
    return list(found)


def check_prediction(found: object, size: tuple[int, int], classes: int, semantic_classes: int) -> Prediction:
    """Refuse what cannot be scored: other types, labels without a class, masks and maps of another size."""
    if not isinstance(found, Prediction):
        raise InvalidPrediction(f"the model returned a {type(found).__name__}, not a Prediction")
    found = replace(found)  # checked again: the model may have changed it since it was made
    if classes and len(found) and not 0 <= found.labels.min() <= found.labels.max() < classes:
        bad = found.labels[(found.labels < 0) | (found.labels >= classes)][0]
        raise InvalidPrediction(f"label {bad}, but there are {classes} classes (0 to {classes - 1})")
    for mask in found.masks or ():
        if mask.size != size:
            raise InvalidPrediction(f"a mask has size {mask.size}, the image {size} (height, width)")
    if found.semantic is not None:
        if found.semantic.dtype not in (np.uint8, np.uint16) or found.semantic.shape != size:
            raise InvalidPrediction(
                f"the label map is {found.semantic.dtype} {found.semantic.shape}, not uint8 or uint16 {size}"
            )
        top = int(found.semantic.max())
        if semantic_classes and top >= semantic_classes:
            raise InvalidPrediction(f"the label map holds {top}, but there are {semantic_classes} classes")
    if found.panoptic is not None:
        _check_panoptic(found.panoptic, size, semantic_classes)
    return found


def _check_panoptic(found: npt.NDArray[np.int32], size: tuple[int, int], classes: int) -> None:
    if found.dtype != np.int32 or found.shape != size:
        raise InvalidPrediction(f"the panoptic map is {found.dtype} {found.shape}, not int32 {size}")
    bad = (found != 0) & (found < SEGMENTS)
    if bad.any():
        raise InvalidPrediction(f"the panoptic map holds {found[bad][0]}; make it with panoptic_map")
    top = int(found.max()) // SEGMENTS - 1
    if classes and top >= classes:
        raise InvalidPrediction(f"the panoptic map holds class {top}, but there are {classes} classes")


def describe(error: BaseException) -> str:
    """An exception in one line: its type, its message, and the line of code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""  # noqa: PTH119
    words = without_secrets(message_of(error))
    return f"{type(error).__name__}: {words}{place}" if words else f"{type(error).__name__}{place}"


def trace_of(error: BaseException) -> str:
    """The innermost calls of the traceback, at most 6,000 characters."""
    text = without_secrets("".join(traceback.format_exception(error, limit=-12)))[-6000:]
    return text.encode("utf-8", "replace").decode()  # half of a surrogate pair cannot be written


def write_note(run: Path, chunk: int, cells: Sequence[Cell]) -> None:
    """Write the cells that the model is about to be called with. Failing to write is ignored."""
    with suppress(OSError):
        _note(run, chunk).write_text(json.dumps(cells), encoding="utf-8")


def read_note(run: Path, chunk: int) -> list[Cell]:
    """The cells in progress; none if the worker had not started one."""
    try:
        noted = read_json(_note(run, chunk), at_most=_LARGEST)
        return [(int(index), str(text)) for index, text in noted]
    except (StormproofError, ValueError, TypeError, OverflowError):
        return []


def clear_note(run: Path, chunk: int) -> None:
    with suppress(OSError):
        _note(run, chunk).unlink(missing_ok=True)


@contextmanager
def heartbeat(attempt: Attempt) -> Iterator[None]:
    """Write a beat every second while a chunk is in progress, if the run has a time limit."""
    if attempt.work.config.timeout is None:
        yield
        return
    done = threading.Event()
    threading.Thread(target=_keep_beating, args=(_beat_path(attempt), done), daemon=True).start()
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


class Listener:
    """Remembers the last beat of every chunk in progress."""

    def __init__(self) -> None:
        self._heard: dict[Path, tuple[str, float]] = {}

    def silent(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The attempts without a beat for too long."""
        now, found = monotonic(), []
        heard: dict[Path, tuple[str, float]] = {}
        for attempt in attempts:
            timeout = attempt.work.config.timeout
            if timeout is None:
                continue
            path = _beat_path(attempt)
            beat = _read_beat(path)
            last, since = self._heard.get(path, (None, now))
            heard[path] = (beat, since if beat == last else now)
            if now - heard[path][1] > timeout + SILENCE + (0 if beat else _STARTING):
                found.append(attempt)
        self._heard = heard
        return found


def end_worker(attempt: Attempt) -> None:
    """Kill the silent worker, if it is on this machine."""
    host, _, rest = _read_beat(_beat_path(attempt)).partition(" ")
    number = rest.partition(" ")[0]
    if host == platform.node() and number.isdecimal() and int(number) not in (0, 1, os.getpid()):
        with suppress(OSError):
            os.kill(int(number), signal.SIGKILL)
    with suppress(OSError):
        _beat_path(attempt).unlink(missing_ok=True)


def _read_beat(path: Path) -> str:
    try:
        return read_text(path, at_most=_LARGEST)
    except StormproofError:
        return ""


def _note(run: Path, chunk: int) -> Path:
    return run / NOTES / f"{chunk:06d}.json"


def _beat_path(attempt: Attempt) -> Path:
    return attempt.work.out / NOTES / f"{attempt.chunk:06d}.beat"
