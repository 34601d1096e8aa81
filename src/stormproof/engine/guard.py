"""Calling a model that may raise, hang, or answer nonsense."""

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

from stormproof.core.errors import InvalidPrediction
from stormproof.core.sample import Image, Prediction
from stormproof.models.model import Model

_Answer = TypeVar("_Answer")
GRACE = 2.0  # seconds between interrupting a call and ending the process that will not be interrupted
_in_worker = False  # whether this process may be ended: only workers, which someone watches


def may_be_ended() -> None:
    """Say that this process is a worker: a call that cannot be interrupted may end it."""
    global _in_worker
    _in_worker = True


def is_watched() -> bool:
    """Whether this process is a worker, whose death someone will ask about."""
    return _in_worker


class _Overdue(BaseException):
    """Raised inside a call that takes too long; not an Exception, so that models do not swallow it."""


class ModelTimeout(Exception):
    """The model did not answer in time."""


def in_time(seconds: float | None, call: Callable[[], _Answer]) -> _Answer:
    """What `call` gives, or `ModelTimeout` after `seconds`.

    A signal interrupts Python and most system calls. Code that never returns to Python cannot be
    interrupted; in a worker the process then ends itself, and whoever watches it knows the cell in hand.
    The signal may come at any moment: it raises only until the call has ended, and always inside the guarded
    block, which is why this is no context manager, whose own code would stand outside.
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


def ask(model: Model, images: Sequence[Image], timeout: float | None) -> list[Prediction]:
    """The model's predictions, one per image, or an error that says what it did instead."""
    try:
        said = in_time(timeout, lambda: model(images))
    except SystemExit as error:  # not an Exception: it would end the run without a word
        raise InvalidPrediction(f"the model ended the program, sys.exit({error.code!r})") from error
    if not isinstance(said, list | tuple):
        raise InvalidPrediction(f"the model returned a {type(said).__name__}, not a list of Prediction")
    if len(said) != len(images):
        raise InvalidPrediction(f"the model returned {len(said)} predictions for {len(images)} images")
    return list(said)


def check_prediction(said: object, size: tuple[int, int], classes: int, semantic_classes: int) -> Prediction:
    """Refuse what cannot be scored: other types, labels without a class, masks and maps of another size."""
    if not isinstance(said, Prediction):
        raise InvalidPrediction(f"the model returned a {type(said).__name__}, not a Prediction")
    if classes and len(said) and not 0 <= said.labels.min() <= said.labels.max() < classes:
        bad = said.labels[(said.labels < 0) | (said.labels >= classes)][0]
        raise InvalidPrediction(f"label {bad}, but there are {classes} classes (0 to {classes - 1})")
    for mask in said.masks or ():
        if mask.size != size:
            raise InvalidPrediction(f"a mask has size {mask.size}, the image {size} (height, width)")
    if said.semantic is not None:
        if said.semantic.dtype not in (np.uint8, np.uint16) or said.semantic.shape != size:
            raise InvalidPrediction(
                f"the label map is {said.semantic.dtype} {said.semantic.shape}, not uint8 or uint16 {size}"
            )
        top = int(said.semantic.max())
        if semantic_classes and top >= semantic_classes:
            raise InvalidPrediction(f"the label map holds {top}, but there are {semantic_classes} classes")
    return said


def describe(error: BaseException) -> str:
    """An exception in one line: its type, its words, and the line of code it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""  # noqa: PTH119
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}{place}" if words else f"{type(error).__name__}{place}"


def trace_of(error: BaseException) -> str:
    """The traceback, without what is long in it: the innermost calls say most."""
    return "".join(traceback.format_exception(error, limit=-12))[-6000:]
