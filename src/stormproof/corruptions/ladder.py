"""Parameters of corruptions: their values by severity, and the values they may take freely."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from stormproof.core.condition import SEVERITIES, Value
from stormproof.core.errors import InvalidCondition

Between = Literal["linear", "log", "round", "switch"]


@dataclass(frozen=True, slots=True)
class Ladder:
    """A parameter's values, one per severity, and the values it may take freely.

    A single value holds at every severity; a parameter without any must always be given. `between` says how
    the value grows from one severity to the next: linearly, by equal factors (log), in whole numbers (round),
    or not at all, because it switches. `unit` is what its numbers count.
    """

    values: tuple[Value, ...]
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    between: Between = "linear"
    unit: str = ""

    @property
    def rises(self) -> bool:
        """Whether the parameter changes with severity, which is what gives a corruption severities."""
        return len(self.values) > 1

    @property
    def kind(self) -> type[int] | type[float] | type[str]:
        if self.choices or any(isinstance(v, str) for v in self.values):
            return str
        return int if self.values and all(isinstance(v, int) for v in self.values) else float

    def at(self, severity: float) -> Value:
        """The value at a severity; between two, as the declaration says.

        >>> ladder(1.0, 4.0).at(1.5), ladder(1.0, 4.0, between="log").at(1.5), ladder(10, 15).at(1.3)
        (2.5, 2.0, 12)
        """
        if not self.rises:
            return self.values[0]
        step = int(severity)
        if step == severity:
            return self.values[step - 1]
        low, high = self.values[step - 1], self.values[step]
        assert not isinstance(low, str) and not isinstance(high, str), "the registry refuses what switches"  # noqa: PT018
        share = severity - step
        if self.between == "log":
            return float(low * (high / low) ** share)
        value = low + (high - low) * share
        return round(value) if self.between == "round" else float(value)

    def check(self, name: str, value: Value, where: str) -> Value:
        """The value in the parameter's own type, or an error that says what it may be."""
        if (self.kind is str) != isinstance(value, str):
            raise InvalidCondition(
                f"{where}: {name} must be a {'string' if self.kind is str else 'number'}, not {value!r}."
            )
        if isinstance(value, str):
            if self.choices and value not in self.choices:
                raise InvalidCondition(
                    f"{where}: {name} must be one of {', '.join(self.choices)}, not {value!r}."
                )
            return value
        if self.kind is int and value != int(value):
            raise InvalidCondition(f"{where}: {name} must be a whole number, not {value!r}.")
        if not self.low <= value <= self.high:
            raise InvalidCondition(
                f"{where}: {name} must lie in {self.low:g} … {self.high:g}, not {value!r}."
            )
        return self.kind(value)


def ladder(
    *values: Value,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    between: Between | None = None,
    unit: str = "",
) -> Ladder:
    """A parameter's values at severities 1, 2, 3 …; five as a rule, fewer where a paper has fewer.

    Unless `between` says otherwise, strings switch, whole numbers are rounded and others grow linearly.
    """
    if not 2 <= len(values) <= len(SEVERITIES):
        raise ValueError(f"a ladder has 2 to {len(SEVERITIES)} rungs, not {len(values)}")
    plain = Ladder(tuple(values), low, high, choices, unit=unit)
    usual: dict[type, Between] = {str: "switch", int: "round", float: "linear"}
    return replace(plain, between=between or usual[plain.kind])


def constant(
    value: Value,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    unit: str = "",
) -> Ladder:
    """A parameter that severity does not change."""
    return Ladder((value,), low, high, choices, unit=unit)


def free(
    *, low: float = -math.inf, high: float = math.inf, choices: tuple[str, ...] = (), unit: str = ""
) -> Ladder:
    """A parameter every condition must give: a string if it has choices, else a number."""
    return Ladder((), low, high, choices, unit=unit)
