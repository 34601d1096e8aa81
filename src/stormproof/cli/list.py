"""`stormproof list`: what is available."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from textwrap import fill
from typing import Annotated, Any

import typer
from rich.table import Column, Table
from rich.text import Text

from stormproof.cli import app, console
from stormproof.cli.options import AsJson


class What(StrEnum):
    corruptions = "corruptions"
    suites = "suites"
    benchmarks = "benchmarks"
    datasets = "datasets"
    models = "models"
    adapters = "adapters"
    decoders = "decoders"


@app.command("list")
def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    as_json: AsJson = False,
) -> None:
    """List corruptions, suites, benchmarks, built-in models, or the kinds of datasets, models and decoders.

    Examples:

        stormproof list corruptions

        stormproof list suites --json

        stormproof list benchmarks

        stormproof list models
    """
    rows, table = {
        What.corruptions: (_corruptions, _corruption_table),
        What.suites: (_suites, _suite_table),
        What.benchmarks: (_benchmarks, _benchmark_table),
        What.datasets: (_datasets, _kind_table),
        What.models: (_models, _model_table),
        What.adapters: (_adapters, _kind_table),
        What.decoders: (_decoders, _decoder_table),
    }[what]
    found = rows()
    if as_json:
        console.print_json(found)
    else:
        console.out.print(table(found))


def _corruptions() -> list[dict[str, Any]]:
    from stormproof.corruptions import CORRUPTIONS

    return [
        {
            "name": c.name,
            "family": c.family,
            "description": c.doc,
            "random": c.is_random,
            "severities": list(c.severities),
            "needs": list(c.needs),
            "moves_labels": c.moves is not None,
            "parameters": {key: list(rungs.values) for key, rungs in c.ladders.items()},
            "units": {key: rungs.unit for key, rungs in c.ladders.items()},
            "instead": [{"parameter": key, "given": list(names)} for key, _, names in c.alternatives()],
            "cite": c.cite,
            "version": c.version,
        }
        for c in CORRUPTIONS.values()
    ]


def _suites() -> list[dict[str, Any]]:
    from stormproof.corruptions import SUITES

    return [
        {
            "name": suite.name,
            "description": suite.doc,
            "conditions": [str(condition) for condition in suite],
            "corruptions": list(suite.corruptions),
            "cite": suite.cite,
        }
        for suite in SUITES.values()
    ]


def _corruption_table(rows: list[dict[str, Any]]) -> Table:
    name = Column("corruption", no_wrap=True)
    table = Table(name, "family", "what happens", "severities 1, 2, 3 …", box=None, pad_edge=False)
    for row in rows:
        # A parameter without values is one that every condition must give.
        ladders = "\n".join(
            f"{key} {' '.join(map(str, _fold(values))) or '…'} {row['units'][key]}".rstrip()
            for key, values in row["parameters"].items()
        )
        needs = f" Needs {', '.join(row['needs'])}." if row["needs"] else ""
        table.add_row(Text(row["name"], "bold"), row["family"], f"{row['description']}{needs}", ladders)
    return table


def _fold(values: list[object]) -> list[object]:
    return values[:1] if len(set(values)) == 1 else values


def _suite_table(rows: list[dict[str, Any]]) -> Table:
    # Names are never cut, so that they can be copied; the other columns shrink.
    first, last = Column("suite", no_wrap=True), Column("corruptions", no_wrap=True)
    words = Column("what it is", overflow="fold", min_width=10)
    table = Table(first, "size", words, last, box=None, pad_edge=False)
    wide = max(22, console.out.width * 2 // 5)
    for row in rows:
        names = fill(", ".join(row["corruptions"]), wide, break_long_words=False)
        table.add_row(Text(row["name"], "bold"), str(len(row["conditions"])), row["description"], names)
    return table


def _benchmarks() -> list[dict[str, Any]]:
    from stormproof.corruptions.presets import PRESETS

    return [
        {
            "name": preset.name,
            "data": preset.doc,
            "metric": preset.metric,
            "suites": list(preset.suites),
            "corruptions": list(preset.corruptions),
            "needs": preset.needs,
            "cite": preset.cite,
        }
        for preset in PRESETS.values()
    ]


def _benchmark_table(rows: list[dict[str, Any]]) -> Table:
    name = Column("benchmark", no_wrap=True)
    table = Table(name, "data", "conditions", "metric", "paper", box=None, pad_edge=False)
    for row in rows:
        conditions = row["needs"] and f"needs {row['needs']}"
        conditions = conditions or ", ".join(row["suites"]) or f"{len(row['corruptions'])} corruptions"
        table.add_row(Text(row["name"], "bold"), row["data"], conditions, row["metric"], row["cite"])
    return table


def _datasets() -> list[dict[str, Any]]:
    from stormproof.datasets import READERS

    return _kinds(READERS)


def _adapters() -> list[dict[str, Any]]:
    from stormproof.models import ADAPTERS

    return _kinds(ADAPTERS)


def _kinds(known: Mapping[str, Callable[..., Any]]) -> list[dict[str, Any]]:
    """Kinds of specs with their options; a kind whose package cannot be loaded shows the reason."""
    from stormproof.core.errors import StormproofError
    from stormproof.core.spec import keyword_options

    rows: list[dict[str, Any]] = []
    for kind in sorted(known):
        try:
            opener = known[kind]
        except StormproofError as error:
            rows.append({"name": kind, "description": str(error), "options": []})
            continue
        doc = (inspect.getdoc(opener) or "").partition("\n\n")[0].replace("\n", " ")
        rows.append({"name": kind, "description": doc, "options": list(keyword_options(opener))})
    return rows


def _kind_table(rows: list[dict[str, Any]]) -> Table:
    columns = ("kind", Column("what it opens", overflow="fold"), Column("options", overflow="fold"))
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(Text(f"{row['name']}:", "bold"), Text(row["description"]), ", ".join(row["options"]))
    return table


def _decoders() -> list[dict[str, Any]]:
    from stormproof.core.spec import keyword_options
    from stormproof.models.decoders import DECODERS

    return [
        {
            "name": name,
            "task": decoder.task,
            "outputs": list(decoder.outputs),
            "options": {name: option.default for name, option in keyword_options(decoder.function).items()},
            "description": (inspect.getdoc(decoder.function) or "").partition("\n")[0],
        }
        for name, decoder in DECODERS.items()
    ]


def _decoder_table(rows: list[dict[str, Any]]) -> Table:
    name = Column("decoder", no_wrap=True)
    table = Table(name, "task", "outputs", "options", "what it reads", box=None, pad_edge=False)
    for row in rows:
        lists = (", ".join(row[key]) for key in ("outputs", "options"))
        table.add_row(Text(row["name"], "bold"), row["task"], *lists, Text(row["description"]))
    return table


def _models() -> list[dict[str, Any]]:
    from stormproof.models.builtin import builtins

    return [
        {
            "name": f"builtin:{network.name}",
            "task": network.task,
            "parameters": network.parameters,
            "bytes": network.bytes,
            "training": network.training,
            "world": network.world,
            "clean": network.clean,
            "images": network.images,
        }
        for network in builtins().values()
    ]


def _model_table(rows: list[dict[str, Any]]) -> Table:
    # The scores wrap; everything else is short and stays on one line.
    fixed = [Column(words, no_wrap=True) for words in ("model", "task", "size", "training", "world")]
    table = Table(*fixed, "clean score, %", box=None, pad_edge=False)
    for row in rows:
        scores = ", ".join(f"{measure} {100 * value:.1f}" for measure, value in row["clean"].items())
        cells = (f"{row['bytes'] / 1e6:.1f} MB", row["training"], str(row["world"]), scores)
        table.add_row(Text(row["name"], "bold"), row["task"], *cells)
    return table
