"""Cells without a prediction, and errors in words."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from stormproof.core.errors import message_of
from stormproof.core.private import without_secrets
from stormproof.results.store.schema import Cell


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell without a prediction, and what went wrong."""

    index: int
    image: str
    condition: str
    kind: str  # image, corruption, model, timeout, death
    error: str
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException, index: int, image: str, condition: object, kind: str) -> Failure:
        return cls(index, image, str(condition), kind, describe(error), trace_of(error))

    @property
    def cell(self) -> Cell:
        return self.index, self.condition

    def __str__(self) -> str:
        return f"{self.image} under {self.condition}: {self.error}"


def group_failures(failures: Sequence[Failure]) -> list[str]:
    """One line for each cause of failures.

    >>> one, two = (Failure(i, f"im{i}", "fog@3", "model", "KeyError") for i in (4, 5))
    >>> group_failures([one, two])
    ['im4 under fog@3: KeyError (and 1 more like it)']
    """
    causes: dict[str, list[Failure]] = {}
    for failure in failures:
        causes.setdefault(failure.error, []).append(failure)
    return [
        f"{same[0]}" + (f" (and {len(same) - 1} more like it)" if len(same) > 1 else "")
        for same in causes.values()
    ]


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
