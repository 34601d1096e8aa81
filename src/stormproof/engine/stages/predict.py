"""Predict: from a batch of cells to predictions, whatever the model does: raise, hang, or return nonsense."""

from __future__ import annotations

import faulthandler
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from time import perf_counter
from types import FrameType
from typing import TypeVar, cast

import numpy as np

from stormproof.core.errors import InvalidPrediction
from stormproof.core.prediction_batch import JoinedBoxes
from stormproof.core.processes import same_folder
from stormproof.core.sample import Image, as_rgb
from stormproof.engine.failures import Failure, describe, trace_of
from stormproof.engine.liveness import is_worker, write_note
from stormproof.engine.pair import Pair, forget_pair, pair_for
from stormproof.engine.stages import Answer, AnsweredBatch, PreparedCell
from stormproof.engine.work import Attempt, Times
from stormproof.models.model import Model

_Result = TypeVar("_Result")
GRACE = 2.0  # seconds between interrupting a call and ending the process that cannot be interrupted
PATIENCE = 3  # model calls that may hang on one image before its other conditions are skipped


class Predictor:
    """Calls the model in batches. When it fails on a batch, it is called again image by image, so that a bad
    cell costs only itself; `again` makes a cell once more, because the model may have written into it."""

    def __init__(
        self, pair: Pair, attempt: Attempt, times: Times,
        again: Callable[[PreparedCell], PreparedCell | Failure],
    ) -> None:  # fmt: skip
        self._pair, self._attempt, self._times, self._again = pair, attempt, times, again
        self._timeout = attempt.work.config.timeout
        self._hung: Counter[int] = Counter()

    @property
    def takes_tensors(self) -> bool:
        """Whether images may stay on the device that they were corrupted on."""
        return bool(getattr(self._pair.model, "takes_tensors", False))

    def __call__(self, cells: Sequence[PreparedCell]) -> Iterable[Answer | Failure]:
        """What the model returns for each cell, in order: an `AnsweredBatch` if it answered all."""
        if len(cells) == 1 and self._hung[cells[0].index] >= PATIENCE:
            return iter([cells[0].failed("timeout", f"not tried: {PATIENCE} calls on this image hung")])
        if is_worker():
            in_progress = [(cell.index, str(cell.condition)) for cell in cells]
            write_note(self._attempt, in_progress)
        start, model = perf_counter(), cast(Model, self._pair.model)
        try:
            returned = call_model(model, [cell.image for cell in cells], self._timeout)
        except Exception as error:
            return self._after_error(cells, error)
        finally:
            spent = perf_counter() - start
            self._times.model += spent
        for text, count in Counter([str(cell.condition) for cell in cells]).items():
            self._times.model_by_condition[text] += spent * count / len(cells)  # type: ignore[assignment]
        is_first, self._pair.called = not self._pair.called, True
        return AnsweredBatch(cells, returned, None if is_first else spent)

    def _after_error(self, cells: Sequence[PreparedCell], error: Exception) -> Iterator[Answer | Failure]:
        hung = isinstance(error, ModelTimeout)
        if hung:  # a call that was interrupted may have left the model in any state
            forget_pair()
            self._pair = pair_for(self._attempt.work)
        if len(cells) > 1:
            made = map(self._again, cells)
            return chain.from_iterable([cell] if isinstance(cell, Failure) else self([cell]) for cell in made)
        self._hung[cells[0].index] += hung
        return iter([cells[0].failed("timeout" if hung else "model", describe(error), trace_of(error))])


def call_model(model: Model, images: Sequence[Image], timeout: float | None) -> Sequence[object]:
    """What the model returns, one item per image, or an error that says what it returned instead.

    The model may empty the list it is given, and reshape its images.
    """
    # Views: assigning a shape changes the array itself. Tensors on a device are views already.
    given = [as_rgb(image)[...] if isinstance(image, np.ndarray) else image for image in images]
    try:
        with same_folder():
            returned = in_time(timeout, lambda: model(given))
    except (Exception, KeyboardInterrupt):
        raise  # Ctrl-C is the user's
    except SystemExit as error:
        raise InvalidPrediction(f"the model called sys.exit({error.code!r})") from error
    except BaseException as error:  # such as asyncio.CancelledError, which would end the run
        raise InvalidPrediction(f"the model raised {describe(error)}") from error
    if not isinstance(returned, list | tuple | JoinedBoxes):
        raise InvalidPrediction(f"the model returned a {type(returned).__name__}, not a list of Prediction")
    if len(returned) != len(images):
        raise InvalidPrediction(f"the model returned {len(returned)} predictions for {len(images)} images")
    return returned if isinstance(returned, JoinedBoxes) else list(returned)


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
    if seconds is not None and not possible:
        warnings.warn(
            "--timeout has no effect here: it needs the main thread, and not Windows.", stacklevel=2
        )
    if seconds is None or not possible:
        return call()
    running = True

    def overdue(signum: int, frame: FrameType | None) -> None:
        if running:
            raise _Overdue

    before = signal.signal(signal.SIGALRM, overdue)
    try:
        try:
            if is_worker():
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
        if is_worker():
            faulthandler.cancel_dump_traceback_later()
