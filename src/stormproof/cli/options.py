"""Options that several verbs share, and the names that a shell completes."""

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
    """Complete the last item of a list: suites and corruptions, then severities."""
    from stormproof.core.condition import SEVERITIES
    from stormproof.corruptions import CORRUPTIONS, SUITES

    before, comma, last = incomplete.rpartition(",")
    name, at, _ = last.partition("@")
    words = [f"{name}@{level}" for level in SEVERITIES] if at else ["clean", *SUITES, *CORRUPTIONS]
    return [f"{before}{comma}{word}" for word in words if word.startswith(last)]


def complete_benchmarks(incomplete: str) -> list[str]:
    from stormproof.corruptions.presets import PRESETS

    return starting(PRESETS, incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    from stormproof.datasets import READERS

    return starting((f"{kind}:" for kind in READERS), incomplete)


def complete_models(incomplete: str) -> list[str]:
    from stormproof.models import ADAPTERS

    return starting((f"{kind}:" for kind in ADAPTERS), incomplete)


def complete_engines(incomplete: str) -> list[str]:
    from stormproof.engine.executors import ENGINES

    return starting(ENGINES, incomplete)


def complete_measures(incomplete: str) -> list[str]:
    from stormproof.metrics.metric import measures

    return starting(measures(), incomplete)


def complete_tables(incomplete: str) -> list[str]:
    from stormproof.report.paper_tables import TABLES

    return starting(TABLES, incomplete)


def starting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _load_plugins(files: list[str] | None) -> list[str] | None:
    if files:
        from stormproof.corruptions.plugins import load_plugins

        load_plugins(files)
    return files


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
Plugins = Annotated[  # loaded before the verb begins
    list[str] | None,
    typer.Option(
        "--plugin",
        help="A Python file that adds corruptions, metrics, datasets …; repeatable.",
        callback=_load_plugins,
    ),
]
Replicates = Annotated[
    int,
    typer.Option(help="Random halves of the images that intervals are computed from, 50 or more.", min=50),
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
