"""Options that several verbs share, the settings of a run as flags, and the names that a shell completes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from enum import Enum, StrEnum
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union, get_args, get_origin

import typer
from rich.markup import escape

from stormproof.core.errors import InvalidOption
from stormproof.engine.config import RunConfig, settings_of, shown_default

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stormproof.core.condition import Condition


class Images(StrEnum):
    png = "png"
    jpg = "jpg"


def complete_conditions(incomplete: str) -> list[str]:
    """Complete the last item of a list: suites and corruptions, then severities."""
    from stormproof.core.condition import SEVERITIES
    from stormproof.corruptions import SUITES, registered

    before, comma, last = incomplete.rpartition(",")
    name, at, _ = last.partition("@")
    words = [f"{name}@{level}" for level in SEVERITIES] if at else ["clean", *SUITES, *registered()]
    return [f"{before}{comma}{word}" for word in words if word.startswith(last)]


def complete_benchmarks(incomplete: str) -> list[str]:
    from stormproof.corruptions.presets import PRESETS

    return _starting(incomplete, PRESETS)


def complete_datasets(incomplete: str) -> list[str]:
    from stormproof.datasets import kinds

    return _starting(incomplete, (f"{kind}:" for kind in kinds()))


def complete_models(incomplete: str) -> list[str]:
    from stormproof.core.spec import with_plugins
    from stormproof.models import ADAPTERS

    return _starting(incomplete, (f"{kind}:" for kind in with_plugins(ADAPTERS, "stormproof.models")))


def complete_measures(incomplete: str) -> list[str]:
    from stormproof.metrics.metric import measures

    return _starting(incomplete, measures())


def complete_tables(incomplete: str) -> list[str]:
    from stormproof.results.paper_tables import TABLES

    return _starting(incomplete, TABLES)


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


_COMPLETE: dict[str, Callable[[str], list[str]]] = {
    "models": complete_models,
    "datasets": complete_datasets,
    "conditions": complete_conditions,
    "benchmarks": complete_benchmarks,
    "measures": complete_measures,
}


def with_settings(config: type[BaseModel]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb one flag for each setting of a configuration.

    The verb takes them as a dictionary, its first parameter; settings not given on the command line are None.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        flags = {name: _flag(name, config) for name in settings_of(config)}
        _, *own = inspect.signature(verb, eval_str=True).parameters.values()

        def command(**given: Any) -> None:
            settings = {name: given.pop(name) for name in flags}
            for name, (field, setting) in settings_of(config).items():
                if get_origin(field.annotation) is dict:
                    settings[name] = _pairs((setting.flags or (f"--{name}",))[0], settings[name])
            verb(settings, **given)

        command.__name__, command.__doc__ = verb.__name__, verb.__doc__
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*flags.values(), *own)]
        )
        return command

    return decorate


def _flag(name: str, config: type[BaseModel]) -> inspect.Parameter:
    """The flag of a setting; its value is None where it is not given."""
    kind = _kind(settings_of(config)[name][0].annotation)
    if get_origin(kind) in (tuple, dict):
        kind = list[str]
    elif _is_choice(kind):
        kind = str  # the configuration rejects other values, as it does for a file
    annotation: Any = Annotated[Optional[kind], _option(name, config)]  # noqa: UP045  a value, not a type
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _option(name: str, config: type[BaseModel] = RunConfig) -> Any:
    """A setting as an option: its spellings, its help and its default in words."""
    field, setting = settings_of(config)[name]
    kind, complete, text = _kind(field.annotation), _COMPLETE.get(setting.completes), setting.help
    if get_origin(kind) in (tuple, dict):
        text = f"{text.removesuffix('.')}; repeatable."
    if _is_choice(kind):
        choices = [str(choice.value) for choice in kind]
        text = f"{text.removesuffix('.')}: {', '.join(choices)}."
        complete = lambda incomplete: _starting(incomplete, choices)  # noqa: E731
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


def _is_choice(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _pairs(flag: str, texts: list[str] | None) -> dict[str, str] | None:
    if texts is None:
        return None
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not key or not equals:
            raise InvalidOption(f"{flag} {text}: write key=value.")
    return {key.strip(): value.strip() for key, _, value in pairs}


# For verbs about what 'stormproof run' made.
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that 'stormproof run' made.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders that 'stormproof run' made.")]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN…",
        help="Run folders, submissions (.json), or published:PAPER such as "
        "published:michaelis/coco/detection.",
    ),
]
Data = Annotated[str | None, typer.Option(help="The dataset, if it has moved since the run.")]
Measure = Annotated[
    str | None, typer.Option(help="What to compare by. Default: the headline measure of most runs.")
]
Reference = Annotated[str | None, typer.Option(help="The run that CD, rCD and gains refer to.")]
Requirements = Annotated[Path, typer.Option(help="A requirements.yaml.")]
Against = Annotated[Path | None, typer.Option(help="A baseline run, for at_most_drop.")]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="A Python file with corruptions or metrics of your own; repeatable."),
]
Replicates = Annotated[
    int, typer.Option(help="Random halves of the images that intervals are computed from.", min=2)
]

# For verbs about datasets, and about copies made from them.
Opened = Annotated[
    str,
    typer.Argument(help="The dataset, as kind:path[,option=value…].", autocompletion=complete_datasets),
]
Original = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset, e.g. coco:FILE,images=DIR.")]
Derived = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder, or an unfinished one to continue.")
]
Styles = Annotated[str, typer.Option(help="A folder of paintings, or built-in.")]
Layout = Annotated[
    str | None,
    typer.Option(help="Format of the dataset that is written: coco, yolo, voc … Default: the source's."),
]
ImageFormat = Annotated[
    Images, typer.Option("--format", help="Format of the image files: png keeps every pixel; jpg is smaller.")
]

# Settings of a run that other verbs also take.
Conditions = Annotated[list[str] | None, _option("conditions")]
Limit = Annotated[int | None, _option("limit")]
Seed = Annotated[int, _option("seed")]
Workers = Annotated[int, typer.Option("--workers", "-j", help="Worker processes; 0 means one per core.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def chosen_conditions(conditions: list[str] | None) -> tuple[Condition, ...]:
    """The conditions that --conditions names; at least one is required."""
    from stormproof.corruptions.grammar import read_conditions

    if not conditions:
        fix = "fog@3, snow, imagenet-c@3, or several separated by commas"
        raise InvalidOption(f"No conditions given; name them with --conditions: {fix}.")
    return read_conditions(conditions)


def is_dataset(text: str) -> bool:
    """Whether a source is a dataset as kind:path, rather than an image or a folder of images."""
    return ":" in text and not Path(text).exists()
