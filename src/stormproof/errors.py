"""The exception tree. Every error says what is wrong, the value given, and the nearest fix."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class StormproofError(Exception):
    """Root of everything Stormproof raises on purpose."""


class InvalidImage(StormproofError, ValueError):
    """An array or file is not an 8-bit grey or RGB picture."""


class InvalidTruth(StormproofError, ValueError):
    """Labels, predictions or context contradict themselves or their image."""


class InvalidCondition(StormproofError, ValueError):
    """A condition's text, severity or parameters make no sense."""


class InvalidOption(StormproofError, ValueError):
    """An option of a command or function is outside what it can be."""


class UnknownName(StormproofError, LookupError):
    """Nothing of that kind is registered under that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        near = get_close_matches(name, list(known), n=1, cutoff=0.6)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"Unknown {kind} {name!r}.{guess}{' ' + hint if hint else ''}")


class MissingContext(StormproofError):
    """A corruption needs something about the scene (depth, masks) that the sample does not carry."""


class OutputError(StormproofError, OSError):
    """A destination exists already, is not writable, or is full."""
