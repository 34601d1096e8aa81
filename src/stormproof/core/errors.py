"""The exception tree. Every error says what is wrong, the value given, and the nearest fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import Any


def first_few(names: Sequence[str], shown: int = 5) -> str:
    """The first few of many names, and the number of those left out.

    >>> first_few(["fog", "snow", "frost"], 2)
    'fog, snow and 1 more'
    """
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "image"), counted(2, "image"), counted(2, "class")
    ('1 image', '2 images', '2 classes')
    """
    ending = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{'' if count == 1 else ending}"


def message_of(error: BaseException, *, longest: int = 2000) -> str:
    """An exception's message on one line; an exception from outside may not even have one.

    >>> message_of(ValueError("two\\nlines"))
    'two lines'
    """
    try:
        words = " ".join(str(error).split())
    except Exception as failure:  # of its own __str__
        words = f"its message cannot be shown: __str__ raised {type(failure).__name__}"
    words = words.encode("utf-8", "replace").decode()  # half of a surrogate pair cannot be written
    return words if len(words) <= longest else f"{words[:longest]} …"


def first_line(error: BaseException) -> str:
    """The first line of an error, which may be pages long, without its full stop.

    >>> first_line(ValueError("No such file.\\nTraceback …")), first_line(ValueError())
    ('No such file', 'ValueError')
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


class StormproofError(Exception):
    """Root of everything Stormproof raises on purpose."""


class InvalidImage(StormproofError, ValueError):
    """An array or file is not an 8-bit grey or RGB image."""


class InvalidTruth(StormproofError, ValueError):
    """Labels or context contradict themselves or their image."""


class InvalidCondition(StormproofError, ValueError):
    """A condition's string, severity or parameters make no sense."""


class InvalidOption(StormproofError, ValueError):
    """An option of a command or function has a value it cannot take."""


class UnknownName(StormproofError, LookupError):
    """Nothing of that kind is registered under that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        near = next(iter(nearest(name, list(known), 1)), None)
        guess = f" Did you mean {near!r}?" if near else ""
        super().__init__(f"Unknown {kind} {name!r}.{guess}{' ' + hint if hint else ''}")


def nearest(name: str, known: Sequence[str], most: int) -> list[str]:
    """The known names closest to a misspelt one, ignoring case; letters may be swapped.

    >>> nearest("mpc", ["mCE", "mPC", "rPC"], 1), nearest("AP5O", ["AP50", "mIoU", "AP75"], 2)
    (['mPC'], ['AP50', 'AP75'])
    """
    asked, lower = name.lower(), {one.lower(): one for one in reversed(known)}

    def likeness(one: str) -> tuple[float, int, int]:
        shared = (Counter(asked) & Counter(one)).total()
        placed = sum(a == b for a, b in zip(asked, one, strict=False))
        return SequenceMatcher(None, one, asked).ratio(), shared, placed

    near = get_close_matches(asked, lower, n=5, cutoff=0.6)
    return [lower[one] for one in sorted(near, key=likeness, reverse=True)[:most]]


class MissingContext(StormproofError):
    """A corruption needs information about the scene (depth, masks) that the sample lacks."""


class OutputError(StormproofError, OSError):
    """A destination exists already, is not writable, or is full."""


class InvalidPrediction(StormproofError, ValueError):
    """Predictions contradict themselves, or do not fit the images or classes they belong to."""


class IncompleteGrid(StormproofError, LookupError):
    """A score grid lacks conditions that an aggregate needs; `missing` names them."""

    def __init__(self, missing: Iterable[str], of: int) -> None:
        self.missing = tuple(missing)
        super().__init__(
            f"{len(self.missing)} of {of} conditions have no score: {', '.join(self.missing)}. "
            "Run these conditions, or build the grid from the conditions that were run."
        )


class DatasetError(StormproofError, ValueError):
    """A dataset's files are missing, broken or contradict themselves.

    `file` and `record` say where; `others` holds further problems that were found at the same time.
    """

    def __init__(
        self, file: object, problem: str, record: str = "", others: tuple[DatasetError, ...] = ()
    ) -> None:
        self.file, self.problem, self.record, self.others = str(file), problem, record, others
        more = f" (and {len(others)} more; 'stormproof inspect … --check' lists them)" if others else ""
        super().__init__(f"{self.where}: {problem}{more}")

    @property
    def where(self) -> str:
        return f"{self.file}, {self.record}" if self.record else self.file

    def __reduce__(self) -> tuple[type[DatasetError], tuple[object, ...]]:
        return type(self), (self.file, self.problem, self.record, self.others)


class MissingExtra(StormproofError, ImportError):
    """A framework that is needed is not installed; the message names the command that installs it."""

    def __init__(self, package: str, install: str) -> None:
        self.package, self.install = package, install
        super().__init__(f"{package} is not installed; install it with: {install}")

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return type(self), (self.package, self.install)


class ModelError(StormproofError, ValueError):
    """A model's files, card or answers are broken, or are refused because reading them is unsafe."""


class CardChange(ModelError):
    """A model's card is wrong in a way that shows: `change` is the part of a card that mends it."""

    def __init__(self, message: str, change: Mapping[str, Any]) -> None:
        self.change = dict(change)
        super().__init__(message)

    def __reduce__(self) -> tuple[type[CardChange], tuple[str, dict[str, Any]]]:
        return type(self), (str(self), self.change)


class StoreError(StormproofError, ValueError):
    """A run folder is broken, of another version, or belongs to another model, dataset or seed."""


class RunError(StormproofError, RuntimeError):
    """A run cannot continue: workers die, a cluster is unreachable, or every image fails."""
