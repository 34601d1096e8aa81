"""The settings of a run as flags: all of them for `run`, a few for other verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum, EnumType
from inspect import Parameter
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union, get_args, get_origin

import typer
from rich.markup import escape

from stormproof.cli.options import (
    complete_benchmarks,
    complete_conditions,
    complete_datasets,
    complete_engines,
    complete_measures,
    complete_models,
    starting,
)
from stormproof.core.errors import InvalidOption
from stormproof.engine.config import RunConfig, settings_of, shown_default

if TYPE_CHECKING:
    from pydantic import BaseModel

_COMPLETE: dict[str, Callable[[str], list[str]]] = {
    "models": complete_models,
    "datasets": complete_datasets,
    "conditions": complete_conditions,
    "benchmarks": complete_benchmarks,
    "measures": complete_measures,
    "engines": complete_engines,
}


def with_settings(verb: Callable[..., None], config: type[BaseModel] = RunConfig) -> Callable[..., None]:
    """Give a verb one flag for each setting of a configuration.

    The verb takes them as a dictionary, its first parameter; settings not given on the command line are None.
    """
    _, *own = inspect.signature(verb, eval_str=True).parameters.values()
    flags = [_flag(name, config) for name in settings_of(config)]

    def command(**given: Any) -> None:
        settings = {name: given.pop(name) for name in settings_of(config)}
        for name, (field, setting) in settings_of(config).items():
            if get_origin(field.annotation) is dict and settings[name] is not None:
                settings[name] = _pairs((setting.flags or (f"--{name}",))[0], settings[name])
        verb(settings, **given)

    command.__name__, command.__doc__ = verb.__name__, verb.__doc__
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*flags, *(parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own)]
    )
    return command


def _flag(name: str, config: type[BaseModel]) -> Parameter:
    """The flag of a setting; its value is None where it is not given."""
    kind = _kind(settings_of(config)[name][0].annotation)
    if get_origin(kind) in (tuple, dict):
        kind = list[str]
    elif isinstance(kind, EnumType):
        kind = str  # the configuration rejects other values, as it does for a file
    annotation: Any = Annotated[Optional[kind], _option(name, config)]  # noqa: UP045  a value, not a type
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _option(name: str, config: type[BaseModel] = RunConfig) -> Any:
    """A setting as an option: its spellings, its help and its default in words."""
    field, setting = settings_of(config)[name]
    kind, complete, text = _kind(field.annotation), _COMPLETE.get(setting.completes), setting.help
    if get_origin(kind) in (tuple, dict):
        text = f"{text.removesuffix('.')}; repeatable."
    elif isinstance(kind, EnumType):
        choices = [str(choice.value) for choice in list[Enum](kind)]
        text = f"{text.removesuffix('.')}: {', '.join(choices)}."
        complete = lambda incomplete: starting(choices, incomplete)  # noqa: E731
    if default := shown_default(field, setting):
        text = f"{text} Default: {default}."
    return typer.Option(
        *(setting.flags or (f"--{name.replace('_', '-')}",)),
        help=escape(text),
        show_default=False,
        autocompletion=complete,
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
OtherSeed = Annotated[int | None, _option("seed")]  # instead of the one that a run was made with
