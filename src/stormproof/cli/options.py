"""Options that several verbs share, and the names that a shell completes for them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.core.errors import InvalidOption

if TYPE_CHECKING:
    from stormproof.core.condition import Condition


class Images(StrEnum):
    png = "png"
    jpg = "jpg"


def complete_conditions(incomplete: str) -> list[str]:
    """The last of a list: suites and corruptions, then severities."""
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
    from stormproof.models import ADAPTERS

    return _starting(incomplete, (f"{kind}:" for kind in ADAPTERS))


def complete_measures(incomplete: str) -> list[str]:
    from stormproof.metrics.metric import measures

    return _starting(incomplete, measures())


def complete_tables(incomplete: str) -> list[str]:
    from stormproof.results.paper_tables import TABLES

    return _starting(incomplete, TABLES)


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--conditions",
        "-c",
        help="Such as 'fog@3', 'fog@1-3', 'snow', 'imagenet-c', 'haze\\[beta=0.04]' or several, separated by "
        "commas; repeatable.",
        autocompletion=complete_conditions,
    ),
]
# Another spelling: a suite is named as any other condition is.
Suite = Annotated[list[str] | None, typer.Option("--suite", hidden=True, autocompletion=complete_conditions)]


# Of what 'stormproof run' made.
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that 'stormproof run' made.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders that 'stormproof run' made.")]
Subjects = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN…",
        help="Run folders, submissions (.json), or published:PAPER such as "
        "published:michaelis/coco/detection.",
    ),
]
Data = Annotated[str | None, typer.Option(help="The dataset, if it has moved since the run.")]
Measure = Annotated[
    str | None, typer.Option(help="What to compare by. Default: the headline that most runs have.")
]
Reference = Annotated[str | None, typer.Option(help="The run that CD, rCD and gains refer to.")]
Requirements = Annotated[Path, typer.Option(help="A requirements.yaml.")]
Against = Annotated[Path | None, typer.Option(help="A baseline run, for at_most_drop.")]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="A Python file with corruptions or metrics of your own; repeatable."),
]
Replicates = Annotated[int, typer.Option(help="Bootstrap replicates.", min=2)]

# Of datasets, and of what is made of them.
Opened = Annotated[
    str,
    typer.Argument(help="What to open, as kind:path[,option=value…].", autocompletion=complete_datasets),
]
Original = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset, e.g. coco:FILE,images=DIR.")]
Derived = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder, or an unfinished one to continue.")
]
Styles = Annotated[str, typer.Option(help="A folder of paintings; without it our own styles.")]
Layout = Annotated[str | None, typer.Option("--format", help="Layout: coco, yolo, voc, cityscapes …")]
ImageFormat = Annotated[Images, typer.Option(help="png keeps every pixel; jpg is smaller.")]

Limit = Annotated[int | None, typer.Option(help="Only the first N images.")]
Seed = Annotated[int, typer.Option(help="Another seed gives other noise.")]
Workers = Annotated[int, typer.Option("--workers", "-j", help="Worker processes; 0 means one per core.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def chosen_conditions(conditions: list[str] | None, suite: list[str] | None) -> tuple[Condition, ...]:
    """What the two options name; at least one condition."""
    from stormproof.corruptions.grammar import read_conditions

    named = [*(suite or []), *(conditions or [])]
    if not named:
        fix = "fog@3, snow, imagenet-c@3, or several separated by commas"
        raise InvalidOption(f"Say under which conditions, with --conditions: {fix}.")
    return read_conditions(named)


def is_dataset(text: str) -> bool:
    """Whether a source is a dataset as kind:path, rather than an image or a folder of them."""
    return ":" in text and not Path(text).exists()
