"""Calling a model that may raise, hang, or return nonsense."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction
from stormproof.core.sample import SEGMENTS, Image, Prediction
from stormproof.models.model import Model

_Result = TypeVar("_Result")
GRACE = 2.0  # seconds between interrupting a call and ending the process that cannot be interrupted
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
    """The model's predictions, one per image, or an error that says what it returned instead."""
    try:
        found = in_time(timeout, lambda: model(images))
    except SystemExit as error:  # not an Exception: it would end the run silently
        raise InvalidPrediction(f"the model called sys.exit({error.code!r})") from error
    if not isinstance(found, list | tuple):
        raise InvalidPrediction(f"the model returned a {type(found).__name__}, not a list of Prediction")
    if len(found) != len(images):
        raise InvalidPrediction(f"the model returned {len(found)} predictions for {len(images)} images")
    return list(found)


def check_prediction(found: object, size: tuple[int, int], classes: int, semantic_classes: int) -> Prediction:
    """Refuse what cannot be scored: other types, labels without a class, masks and maps of another size."""
    if not isinstance(found, Prediction):
        raise InvalidPrediction(f"the model returned a {type(found).__name__}, not a Prediction")
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
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}{place}" if words else f"{type(error).__name__}{place}"


def trace_of(error: BaseException) -> str:
    """The innermost calls of the traceback, at most 6,000 characters."""
    return "".join(traceback.format_exception(error, limit=-12))[-6000:]
