"""The settings of a run as flags: all of them for `run`, a few for other verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, Optional, Union, get_args, get_origin

import typer
from rich.markup import escape

from stormproof.cli.options import (
    complete_benchmarks,
    complete_conditions,
    complete_datasets,
    complete_engines,
    complete_measures,
    complete_models,
)
from stormproof.core.errors import InvalidOption
from stormproof.engine.config import SETTINGS, shown_default

_COMPLETE: dict[str, Callable[[str], list[str]]] = {
    "models": complete_models,
    "datasets": complete_datasets,
    "conditions": complete_conditions,
    "benchmarks": complete_benchmarks,
    "measures": complete_measures,
    "engines": complete_engines,
}


def with_settings(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb one flag for each setting of a run.

    The verb takes them as a dictionary, its first parameter; settings not given on the command line are None.
    """
    _, *own = inspect.signature(verb, eval_str=True).parameters.values()
    flags = [_flag(name) for name in SETTINGS]

    def command(**given: Any) -> None:
        settings = {name: given.pop(name) for name in SETTINGS}
        for name, (field, setting) in SETTINGS.items():
            if get_origin(field.annotation) is dict and settings[name] is not None:
                settings[name] = _pairs((setting.flags or (f"--{name}",))[0], settings[name])
        verb(settings, **given)

    command.__name__, command.__doc__ = verb.__name__, verb.__doc__
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*flags, *(parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own)]
    )
    return command


def _flag(name: str) -> Parameter:
    """The flag of a setting; its value is None where it is not given."""
    kind = _kind(SETTINGS[name][0].annotation)
    if get_origin(kind) in (tuple, dict):
        kind = list[str]
    annotation: Any = Annotated[Optional[kind], _option(name)]  # noqa: UP045  a value, not a type
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _option(name: str) -> Any:
    """A setting as an option: its spellings, its help and its default in words."""
    field, setting = SETTINGS[name]
    text = setting.help
    if get_origin(field.annotation) in (tuple, dict):
        text = f"{text.removesuffix('.')}; repeatable."
    if default := shown_default(field, setting):
        text = f"{text} Default: {default}."
    return typer.Option(
        *(setting.flags or (f"--{name.replace('_', '-')}",)),
        help=escape(text),
        show_default=False,
        autocompletion=_COMPLETE.get(setting.completes),
    )


def _kind(annotation: Any) -> Any:
    """The type of a setting that may be absent."""
    if get_origin(annotation) in (Union, UnionType):
        return next(one for one in get_args(annotation) if one is not type(None))
    return annotation


def _pairs(flag: str, texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not key or not equals:
            raise InvalidOption(f"{flag} {text}: write key=value.")
    return {key.strip(): value.strip() for key, _, value in pairs}


# Settings of a run that other verbs also take.
Conditions = Annotated[list[str] | None, _option("conditions")]
Limit = Annotated[int | None, _option("limit")]
Seed = Annotated[int, _option("seed")]
