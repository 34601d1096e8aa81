"""`stormproof inspect`: what a dataset contains, and what is wrong with it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from stormproof.cli import app, console
from stormproof.cli.options import AsJson, complete_datasets, complete_models
from stormproof.core.errors import DatasetError, InvalidOption, counted
from stormproof.core.table import Styled, Table

if TYPE_CHECKING:
    from stormproof.datasets.dataset import Dataset
    from stormproof.datasets.survey import Inspection, Problem

_GLANCE = 200  # images inspected without --check
_ROWS = 30  # classes shown on the terminal; --json lists them all


def complete_sources(incomplete: str) -> list[str]:
    return [*complete_datasets(incomplete), *complete_models(incomplete)]


# About a model.
Predicted = Annotated[
    str | None, typer.Option(help="For a model: predict and draw the first three images of this dataset.")
]
Fix = Annotated[
    Path | None,
    typer.Option(
        "--fix",
        metavar="FILE",
        help="For a network file: write a card to FILE with every hint applied. With labelled images "
        "(--data), they decide classes and input where the network does not show them.",
    ),
]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune",
        help="For a network file: try the usual inputs on 64 labelled images of --data; with --fix "
        "FILE, the best is written to the card.",
    ),
]


@app.command()
def inspect(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATASET or MODEL",
            help="A dataset or a model file, as kind:path[,option=value…].",
            autocompletion=complete_sources,
        ),
    ],
    check_all: Annotated[
        bool, typer.Option("--check", help="For a dataset: open every file and list every problem.")
    ] = False,
    as_json: AsJson = False,
    data: Predicted = None,
    fix: Fix = None,
    tune: Tune = False,
) -> None:
    """Describe a dataset (images, classes, labels, objects, problems), or how a model file will be run.

    For a model, it shows the inputs and outputs on a real image (of the built-in street, unless --data names
    another dataset), and what was guessed and why.

    Without --check, images are not decoded and at most 200 are inspected. Exit code 1 means problems.

    Examples:

        stormproof inspect coco:annotations/instances_val2017.json,images=val2017

        stormproof inspect voc:VOCdevkit/VOC2012,split=val --check

        stormproof inspect onnx:detector.onnx --data coco:val.json,images=val2017

        stormproof inspect onnx:detector.onnx --data coco:val.json,images=val2017 --fix detector.yaml
    """
    from stormproof import models
    from stormproof.datasets import READERS
    from stormproof.results.store.record import RECORD

    given, source = source, _with_kind(source)
    console.note_kind(given, source)
    kind = source.partition(":")[0]
    if kind not in READERS and (kind in models.ADAPTERS or kind.endswith(".py")):
        from stormproof.cli.inspect_model import inspect_model

        if check_all or as_json:
            raise InvalidOption(f"--check and --json are about a dataset, but {source} is a model.")
        inspect_model(source, data, fix=fix, tune=tune)
        return
    if (Path(source) / RECORD).is_file():
        raise InvalidOption(f"{source} is a run folder; see it with: stormproof show {shlex.quote(source)}")
    if fix is not None or tune or data is not None:
        raise InvalidOption(f"--data, --fix and --tune are about a model, but {source} is a dataset.")
    if _inspect_dataset(source, check_all=check_all, as_json=as_json):
        raise typer.Exit(1)


def _inspect_dataset(source: str, *, check_all: bool, as_json: bool) -> bool:
    """Print what a dataset contains and what is wrong with it; returns whether anything is."""
    from stormproof.datasets import read_dataset
    from stormproof.datasets.survey import problems_of

    try:
        opened = read_dataset(source)
    except DatasetError as error:
        if not check_all:
            raise
        problems = problems_of(error)
        if as_json:
            console.print_json({"problems": [{"where": one.where, "what": one.what} for one in problems]})
        else:
            _print_problems(problems)
        return True
    seen = _look(opened, check_all)
    if as_json:
        fingerprint = {"fingerprint": opened.fingerprint} if not seen.problems else {}
        console.print_json(seen.summary() | fingerprint)
    else:
        _print_tables(seen)
        _print_problems(seen.problems)
        for finding in seen.findings:
            console.out.print(Text.assemble((f"{finding.level} ", "yellow"), finding.what), soft_wrap=True)
    return bool(seen.problems)


def _with_kind(source: str) -> str:
    """The source with the kind of a bare file: a model's or, for what a dataset may be, a dataset's."""
    from stormproof import datasets, models
    from stormproof.models.files import refuse_other_formats

    path = Path(source.partition(",")[0])
    if path.suffix.lower() not in datasets.SUFFIXES or path.is_dir():
        return models.full_spec(source)
    if path.name == "model.json":
        refuse_other_formats(str(path))
    return datasets.full_spec(source)


def _look(dataset: Dataset, check_all: bool) -> Inspection:
    from stormproof.datasets.survey import check, evenly_spread, survey

    indices = range(len(dataset)) if check_all else evenly_spread(len(dataset), _GLANCE)
    with console.progress("checking" if check_all else "inspecting", len(indices)) as progress:
        if check_all:
            return check(dataset, step=progress.advance)
        return survey(dataset, indices, step=progress.advance)


def _print_tables(seen: Inspection) -> None:
    facts = [(Styled(name, "bold"), value) for name, value in _facts(seen).items()]
    console.print_table(Table("dataset", seen.name, ("", ""), facts))
    if seen.objects:
        console.print_table(_counts("objects", {name: seen.objects[name] for name in seen.classes}))
    if seen.pixels:
        console.print_table(_counts("pixels", {name: seen.pixels[name] for name in seen.semantic_classes}))


def _facts(seen: Inspection) -> dict[str, str]:
    glance = "" if seen.looked_at == seen.images else f" (inspected {seen.looked_at})"
    facts = {"images": f"{seen.images}{glance}"}
    if seen.missing_files:
        facts["image files"] = f"{seen.missing_files} of {seen.images} are missing; --check names them"
    if seen.classes:
        facts["classes"] = str(len(seen.classes))
    if seen.semantic_classes:
        facts["semantic classes"] = str(len(seen.semantic_classes))
    facts["labels"] = _listing(seen.labels) or "none"
    if any(seen.context.values()):
        facts["context"] = _listing(seen.context)
    if seen.depth_remark:
        facts["depth"] = seen.depth_remark
    if seen.sizes:
        facts["sizes"] = _sizes(seen)
    if seen.classes:
        facts["objects"] = f"{seen.objects.total()}, and {seen.excused} crowds or ignored regions"
    facts["problems"] = str(len(seen.problems))
    return facts


def _listing(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({counted(count, 'image')})" for name, count in counts.items() if count)


def _sizes(seen: Inspection) -> str:
    small, large = min(seen.sizes, key=lambda s: s[0] * s[1]), max(seen.sizes, key=lambda s: s[0] * s[1])
    if len(seen.sizes) == 1:
        return f"{small[1]}×{small[0]} (width × height)"
    return f"{len(seen.sizes)} different, {small[1]}×{small[0]} to {large[1]}×{large[0]} (width × height)"


def _counts(noun: str, counts: dict[str, int]) -> Table:
    """Classes with their counts, most frequent first."""
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    rows = [(name, f"{count:,}", f"{count / total:.1%}") for name, count in ranked[:_ROWS]]
    if len(ranked) > _ROWS:
        rows.append((f"… {len(ranked) - _ROWS} more", f"{sum(c for _, c in ranked[_ROWS:]):,}", ""))
    return Table("classes", "", ("class", noun, "share"), rows)


def _print_problems(problems: list[Problem]) -> None:
    """One line per problem, not wrapped, so that it can be copied and searched."""
    for problem in problems:
        line = f"{problem.where}: {problem.what}" if problem.where else problem.what
        console.out.print(Text.assemble(("problem ", "red"), line), soft_wrap=True)
