"""Spec strings, which name a dataset or a model: `kind:main[,key=value…]`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Self

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.files import is_file
from stormproof.core.private import without_secrets


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec string.

    >>> Spec.parse("coco:instances_val2017.json,images=val2017").options
    {'images': 'val2017'}
    """

    kind: str
    main: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        r"""Read a spec; a comma that belongs to a path is written `\,`; in a list [a,b] it is not.

        >>> Spec.parse(r"images:a\,b").main
        'a,b'
        >>> Spec.parse("onnx:a.onnx,classes=[background,person],score=0.1").options
        {'classes': '[background,person]', 'score': '0.1'}
        """
        kind, colon, rest = text.strip().partition(":")
        is_address = kind in ("http", "https")
        # What follows a comma in an address may be the rest of a key.
        shown = without_secrets(text.partition(",")[0]) + ",…" * ("," in text) if is_address else text
        if not colon or not kind:
            example = "coco:annotations.json,images=folder"
            if kind.endswith(".py"):
                example = f"{kind}:function"
            raise InvalidOption(f"Cannot read {shown!r}; write kind:main, for example {example}.")
        main, *pairs = (part.replace("\\,", ",") for part in _split(rest))
        if not main.strip():
            raise InvalidOption(f"Nothing follows {kind + ':'!r} in {shown!r}; name a file or folder there.")
        options: dict[str, str] = {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                fix = r"options are key=value after a comma; a comma in a path is written \,"
                raise InvalidOption(f"Cannot read {'…' if is_address else pair!r} in {shown!r}; {fix}.")
            if key.strip() in options:
                raise InvalidOption(f"{key.strip()!r} is given twice in {shown!r}.")
            options[key.strip()] = value.strip()
        return cls(kind.replace("\\,", ","), main.strip(), options)

    @classmethod
    def of_options(cls, text: str) -> Self:
        """Read a spec that has no main part.

        >>> Spec.of_options("ray,gpus=1").options
        {'gpus': '1'}
        """
        kind, comma, pairs = text.strip().partition(",")
        return cls(kind, "", cls.parse(f"{kind or '?'}:-{comma}{pairs}").options)

    def __str__(self) -> str:
        values = (f"{key}={_escape(value)}" for key, value in self.options.items())
        main = self.main.replace(",", "\\,")
        return self.kind.replace(",", "\\,") + ":" + ",".join((main, *values))

    def arguments(self, *functions: Callable[..., Any]) -> list[dict[str, Any]]:
        """The options as keyword arguments of some functions, converted to the types that these declare.

        A function declares its options as keyword-only parameters, each annotated with str, int, float, bool
        or another type that can be made from a string, such as Path. An option goes to the first function
        that takes it; a function with a parameter `**options` takes any, as strings. `name.key=value` goes to
        a parameter `name` that is declared as a dict.
        """
        known = [keyword_options(function) for function in functions]
        any_ones = [i for i, function in enumerate(functions) if takes_any_option(function)]
        by_function: list[dict[str, Any]] = [{} for _ in known]
        for key, text in self.options.items():
            owner = next((i for i, options in enumerate(known) if key in options), None)
            group, dot, entry = key.partition(".")
            grouped = next(
                (i for i, options in enumerate(known) if dot and _is_dict(options.get(group))), None
            )
            if owner is None and grouped is not None:
                by_function[grouped].setdefault(group, {})[entry] = text
                continue
            if owner is None and any_ones:
                by_function[any_ones[0]][key] = text
                continue
            if owner is None:
                names = dict.fromkeys(name for options in known for name in options)
                hint = f"It takes: {', '.join(names) or 'none'}."
                raise UnknownName(f"{self.kind} option", key, names, hint)
            try:
                by_function[owner][key] = _convert(text, known[owner][key].annotation)
            except ValueError as error:
                raise InvalidOption(f"{key}={text} in {self}: {error}.") from None
        for options, given in zip(known, by_function, strict=True):
            missing = [name for name, p in options.items() if p.default is p.empty and name not in given]
            if missing:
                raise InvalidOption(f"{self} lacks {', '.join(missing)}; add ,{missing[0]}=…")
        return by_function


# An option whose value is a list: everything up to the first bracket that closes it.
_LIST = re.compile(r"(?<==)\s*\[[^\[\]=]*\]\s*(?=,|$)")


def _split(rest: str) -> list[str]:
    """The parts between commas that are neither escaped nor inside the list of an option."""
    kept = _LIST.sub(lambda match: re.sub(r"(?<!\\),", r"\\,", match[0]), rest)
    return re.split(r"(?<!\\),", kept)


def with_option(text: str, key: str, value: str) -> str:
    r"""A spec with one option more.

    >>> with_option("coco:val.json", "only", "a,b.txt")
    'coco:val.json,only=a\\,b.txt'
    """
    return f"{text},{key}={_escape(value)}"


def _escape(value: str) -> str:
    return value if _LIST.fullmatch(f"={value}", 1) else value.replace(",", "\\,")


def spec_file(text: str) -> Path | None:
    """The file that a spec names: its main part, or the script before the colon; None if no such file exists.

    >>> spec_file("world:val") is None
    True
    """
    try:
        spec = Spec.parse(text)
    except InvalidOption:  # a kind alone
        return None
    named = (Path(spec.kind), Path(spec.main)) if spec.kind.endswith(".py") else (Path(spec.main),)
    return next((path for path in named if is_file(path)), None)


def keyword_options(opener: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The options of an opener are its keyword-only parameters."""
    parameters = inspect.signature(opener, eval_str=True).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _is_dict(parameter: inspect.Parameter | None) -> bool:
    kinds = getattr(parameter and parameter.annotation, "__args__", None) or (
        parameter and parameter.annotation,
    )
    return any(kind is dict or getattr(kind, "__origin__", None) is dict for kind in kinds)


def takes_any_option(opener: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `**options`."""
    parameters = inspect.signature(opener).parameters.values()
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _convert(text: str, annotation: Any) -> Any:
    """The value that a text stands for; the ValueError says what was expected."""
    types = [t for t in getattr(annotation, "__args__", (annotation,)) if t is not type(None)]
    target = types[0] if types else str
    if target is bool:
        if text.lower() in ("true", "yes", "1"):
            return True
        if text.lower() in ("false", "no", "0"):
            return False
        raise ValueError("write true or false")
    try:
        value = target(text)
    except (ValueError, TypeError):
        raise ValueError(f"expected {getattr(target, '__name__', target)}") from None
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("expected a finite number")
    return value


def default_main(opener: Callable[..., Any]) -> str:
    """The main part of a spec that has none: the default of the opener's first parameter, if it has one."""
    first, *_ = inspect.signature(opener).parameters.values()
    return "" if first.default is first.empty else str(first.default)


OBJECT = "object"  # the kind of datasets and models made in Python
_OBJECTS: dict[str, Any] = {}


@contextmanager
def named_object(name: str, thing: Any) -> Iterator[str]:
    """A spec, `object:NAME`, that opens `thing` inside the block.

    Runs refer to their model and dataset by name, because workers open them again. An object made in a
    notebook has a name in this process only, so no other process can open it.
    """
    plain = re.sub(r"[^\w.-]+", "_", name).strip("_") or "it"
    key, count = plain, 1
    while key in _OBJECTS:
        count += 1
        key = f"{plain}-{count}"
    _OBJECTS[key] = thing
    try:
        yield f"{OBJECT}:{key}"
    finally:
        del _OBJECTS[key]


def local_object(name: str) -> Any:
    """The object registered under that name in this process; None if there is none."""
    return _OBJECTS.get(name)
