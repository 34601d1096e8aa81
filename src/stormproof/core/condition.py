"""Conditions and suites: what is done to an image, as a value with one canonical string.

    clean                        nothing
    fog@3                        severity 3 of fog
    fog@2.5                      half way between its severities 2 and 3
    gaussian_noise[sigma=0.1]    free parameters
    frost@3[textures=my_frost]   a severity with some parameters replaced
    fog@2+jpeg_compression@3     composed: each part acts on the image that the part before it made

The string is the condition's identity: it names folders, store rows and report columns, and parses back to
an equal condition.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from stormproof.core.errors import InvalidCondition
from stormproof.core.identity import to_json

Value = int | float | str
SEVERITIES = (1, 2, 3, 4, 5)
PLUS = "+"  # between the parts of a composed condition
_SEVERITY_RULE = "it must be an integer from 1 to 5, or lie between two of them, as 2.5 does"

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_BARE = re.compile(r"[A-Za-z_./~][\w./~+-]*")  # strings that need no quotes
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|.', re.DOTALL)  # a quoted string, or one character
_FORM = re.compile(r"(?P<name>[a-z][a-z0-9_]*)(?:@(?P<severity>[^\[]*))?(?:\[(?P<params>.*)\])?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """What is done to an image: a corruption with a severity or parameters, several in a row, or nothing.

    A composed condition has its parts in `chain`, in the order in which they act. Its `corruption` joins
    their names, so that it is never taken for one of them, and it has neither a severity nor parameters.

    >>> str(Condition.parse("gaussian_noise[sigma=0.10]"))
    'gaussian_noise[sigma=0.1]'
    >>> [str(part) for part in Condition.parse("night[lux=5]+jpeg_compression@2").parts]
    ['night[lux=5]', 'jpeg_compression@2']
    """

    corruption: str | None = None
    severity: int | float | None = None
    params: tuple[tuple[str, Value], ...] = ()
    chain: tuple[Condition, ...] = ()
    _text: str = field(init=False, repr=False, compare=False)  # every row asks for it

    def __post_init__(self) -> None:
        if self.chain:
            self._check_chain()
        else:
            self._check_single()
        object.__setattr__(self, "_text", self._write())

    def _check_single(self) -> None:
        if self.corruption is None:
            if self.severity is not None or self.params:
                raise InvalidCondition("'clean' takes neither a severity nor parameters.")
            return
        if not _NAME.fullmatch(self.corruption) or self.corruption == "clean":
            raise InvalidCondition(
                f"{self.corruption!r} is not a corruption's name: lower case, digits, underscores."
            )
        if self.severity is not None and not _is_severity(self.severity):
            raise InvalidCondition(f"Severity {self.severity!r} of {self.corruption}: {_SEVERITY_RULE}.")
        params = tuple((key, _canonical(self.corruption, key, value)) for key, value in self.params)
        if len({key for key, _ in params}) != len(params):
            raise InvalidCondition(f"{self.corruption}: a parameter occurs twice: {params!r:.200}.")
        params = tuple(sorted(params))
        if self.severity is None and not params:
            raise InvalidCondition(
                f"{self.corruption!r} needs a severity ({self.corruption}@3) or parameters "
                f"({self.corruption}[name=value])."
            )
        object.__setattr__(self, "params", params)

    def _check_chain(self) -> None:
        if len(self.chain) < 2 or any(part.is_clean or part.chain for part in self.chain):
            raise InvalidCondition(
                f"{self._write()!r:.200}: the parts of a composed condition are two or more corruptions, as "
                "in fog@2+jpeg_compression@3; leave 'clean' out."
            )
        if self.severity is not None or self.params:
            raise InvalidCondition(
                f"{self._write()}: every part of a composed condition has its own severity."
            )
        object.__setattr__(self, "corruption", PLUS.join(str(part.corruption) for part in self.chain))

    @property
    def parts(self) -> tuple[Condition, ...]:
        """What is done to the image, one corruption after the other: nothing for clean."""
        return self.chain or (() if self.corruption is None else (self,))

    @property
    def is_composed(self) -> bool:
        return bool(self.chain)

    @property
    def whole_severity(self) -> int | None:
        """The severity if it is an integer, as in papers and tables; None if it lies between two."""
        return self.severity if isinstance(self.severity, int) else None

    @property
    def series(self) -> str:
        """The corruption, or the variant of it that the parameters define: what the severities grade.

        A composed condition is a series of its own.

        >>> [Condition.parse(text).series for text in ("fog@3", "fog@3[on=person]", "haze[beta=0.04]")]
        ['fog', 'fog[on=person]', 'haze']
        """
        if self.chain:
            return str(self)
        variant = self.severity is not None and self.params
        return str(Condition(self.corruption, None, self.params)) if variant else str(self.corruption)

    @classmethod
    def of(
        cls, corruption: str, severity: float | None = None, params: Mapping[str, Value] | None = None
    ) -> Self:
        return cls(corruption, severity, tuple((params or {}).items()))

    @classmethod
    def composed(cls, parts: Iterable[Condition]) -> Self:
        """One condition after the other; those that are composed themselves contribute their parts.

        >>> str(Condition.composed([Condition.of("fog", 3), Condition.of("pixelate", 1)]))
        'fog@3+pixelate@1'
        """
        return cls(chain=tuple(single for part in parts for single in part.parts or (CLEAN,)))

    @classmethod
    @lru_cache(maxsize=4096)  # a score asks for the same few hundred thousands of times
    def parse(cls, text: str) -> Self:
        """Read a condition from its string; numbers need not be written canonically."""
        text = text.strip()
        if text == "clean":
            return cls()
        written = split_parts(text)
        if len(written) > 1:
            return cls.composed(map(cls.parse, written))
        match = _FORM.fullmatch(text)
        if match is None:
            raise InvalidCondition(
                f"Cannot read the condition {text!r:.200}; write clean, fog@3, gaussian_noise[sigma=0.1] "
                "or parts joined by +, as in fog@2+jpeg_compression@3."
            )
        severity = match["severity"]
        if severity is not None and not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", severity):
            raise InvalidCondition(f"Severity {severity!r:.80} in {text!r:.200}: {_SEVERITY_RULE}.")
        params = () if match["params"] is None else tuple(_parse_params(match["params"], text))
        level = None if severity is None else float(severity) if "." in severity else int(severity)
        return cls(match["name"], level, params)

    @property
    def is_clean(self) -> bool:
        return self.corruption is None

    def __str__(self) -> str:
        return self._text

    def _write(self) -> str:
        if self.corruption is None and not self.chain:
            return "clean"
        if self.chain:
            return PLUS.join(map(str, self.chain))
        severity = "" if self.severity is None else f"@{self.severity}"
        params = ",".join(f"{key}={_write(value)}" for key, value in self.params)
        return f"{self.corruption}{severity}{f'[{params}]' if params else ''}"


CLEAN = Condition()


def corruption_of(text: str) -> str:
    """The corruption that a condition's string names, or those that it joins; `clean` for clean.

    >>> [corruption_of(text) for text in ("fog@3[on=car+person]", "haze[beta=0.04]", "clean", "fog@3+snow@1")]
    ['fog', 'haze', 'clean', 'fog+snow']
    """
    return PLUS.join(part.partition("@")[0].partition("[")[0] for part in split_parts(text))


def split_parts(text: str) -> list[str]:
    """The parts of a composed condition's string; a + within brackets belongs to a value.

    >>> split_parts("fog@3[on=car+person]+snow@1")
    ['fog@3[on=car+person]', 'snow@1']
    """
    parts, inside = [""], False
    for token in _TOKEN.findall(text) if PLUS in text else [text]:
        if token == PLUS and not inside:
            parts.append("")
            continue
        inside = token == "[" or (inside and token != "]")
        parts[-1] += token
    return parts


@dataclass(frozen=True, slots=True)
class Suite:
    """A named list of conditions that are run and reported together; `clean` is implied, never listed.

    `noise_severities` are the severities of noise that its means cover; every severity is run.
    """

    name: str
    doc: str
    conditions: tuple[Condition, ...]
    cite: str = ""
    noise_severities: tuple[int, ...] = SEVERITIES

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)

    def __len__(self) -> int:
        return len(self.conditions)

    @property
    def corruptions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(part.corruption) for c in self.conditions for part in c.parts))


def grid(corruptions: Iterable[str], severities: Iterable[int] = SEVERITIES) -> tuple[Condition, ...]:
    """Every corruption at every severity, in order."""
    levels = tuple(severities)
    return tuple(Condition.of(name, level) for name in corruptions for level in levels)


def _is_severity(value: object) -> bool:
    if type(value) is float:
        return SEVERITIES[0] < value < SEVERITIES[-1] and not value.is_integer()
    return type(value) is int and value in SEVERITIES


def _canonical(corruption: str, key: str, value: object) -> Value:
    """Numbers in one type: 1.0 becomes 1, so that equal conditions have one string."""
    if not _NAME.fullmatch(key):
        raise InvalidCondition(f"{corruption}: {key!r} is not a parameter's name.")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidCondition(f"{corruption}[{key}={value!r}]: a parameter is a number or a string.")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise InvalidCondition(f"{corruption}[{key}=…]: a whole number must lie within ±2⁶³.")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidCondition(f"{corruption}[{key}={value}]: a parameter must be finite.")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value


def _write(value: Value) -> str:
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and not _is_number(value) else to_json(value)
    return repr(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_params(text: str, whole: str) -> Iterator[tuple[str, Value]]:
    decoder = json.JSONDecoder()
    while True:
        key, equals, rest = text.partition("=")
        if not equals:
            raise InvalidCondition(f"Cannot read {text!r} in the condition {whole!r}; write name=value.")
        if rest.startswith('"'):
            try:
                value, end = decoder.raw_decode(rest)
            except json.JSONDecodeError:
                raise InvalidCondition(f"The quotes in {whole!r} do not close.") from None
        else:
            end = rest.find(",") if "," in rest else len(rest)
            value = _parse_value(rest[:end].strip(), key, whole)
        yield key.strip(), value
        if end == len(rest):
            return
        if rest[end] != ",":
            raise InvalidCondition(f"Expected a comma after {rest[:end]!r} in {whole!r}.")
        text = rest[end + 1 :]


def _parse_value(text: str, key: str, whole: str) -> Value:
    if re.fullmatch(r"[+-]?[0-9]{1,30}", text):
        return int(text)
    if _is_number(text):
        return float(text)
    if _BARE.fullmatch(text):
        return text
    raise InvalidCondition(
        f"Cannot read {key}={text!r} in {whole!r}; give a number, a word, or a string in double quotes."
    )
