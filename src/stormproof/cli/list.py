"""`stormproof list`: what is available."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import itemgetter
from typing import Annotated, Any

import typer

from stormproof.cli import app, console
from stormproof.cli.options import AsJson
from stormproof.core.errors import counted
from stormproof.core.table import Styled, Table

Record = dict[str, Any]


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
    rows, columns = _LISTS[what]
    records = rows()
    if as_json:
        console.print_json(records)
        return
    cells = [[str(cell(record)) for cell in columns.values()] for record in records]
    lines = [[Styled(name, "bold"), *others] for name, *others in cells]
    console.print_table(Table(what, "", tuple(columns), lines), framed=False)


def _corruptions() -> list[Record]:
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


def _suites() -> list[Record]:
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


def _benchmarks() -> list[Record]:
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


def _datasets() -> list[Record]:
    from stormproof.datasets import READERS

    return _kinds(READERS)


def _adapters() -> list[Record]:
    from stormproof.models import ADAPTERS

    return _kinds(ADAPTERS)


def _kinds(known: Mapping[str, Callable[..., Any]]) -> list[Record]:
    """Kinds of specs with their options; a kind whose package cannot be loaded shows the reason."""
    from stormproof.core.errors import StormproofError
    from stormproof.core.spec import keyword_options

    rows: list[Record] = []
    for kind in sorted(known):
        try:
            opener = known[kind]
        except StormproofError as error:
            rows.append({"name": kind, "description": str(error), "options": []})
            continue
        doc = (inspect.getdoc(opener) or "").partition("\n\n")[0].replace("\n", " ")
        rows.append({"name": kind, "description": doc, "options": list(keyword_options(opener))})
    return rows


def _decoders() -> list[Record]:
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


def _models() -> list[Record]:
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


def _ladders(record: Record) -> str:
    """A line for each parameter; one without values must be given by every condition."""
    ladders = record["parameters"].items()
    shown = {key: values[:1] if len({*values}) == 1 else values for key, values in ladders}
    lines = (
        f"{key} {' '.join(map(str, values)) or '…'} {record['units'][key]}" for key, values in shown.items()
    )
    return "\n".join(line.rstrip() for line in lines)


def _what_happens(record: Record) -> str:
    needs = f" Needs {', '.join(record['needs'])}." if record["needs"] else ""
    return f"{record['description']}{needs}"


def _benchmark_conditions(record: Record) -> str:
    if record["needs"]:
        return f"needs {record['needs']}"
    return ", ".join(record["suites"]) or counted(len(record["corruptions"]), "corruption")


def _clean_scores(record: Record) -> str:
    return ", ".join(f"{measure} {100 * value:.1f}" for measure, value in record["clean"].items())


def _listed(key: str) -> Callable[[Record], str]:
    return lambda record: ", ".join(record[key])


_name, _description = itemgetter("name"), itemgetter("description")
_KINDS: dict[str, Callable[[Record], object]] = {
    "kind": lambda record: f"{record['name']}:",
    "what it opens": _description,
    "options": _listed("options"),
}
# What makes the records, and the columns of their table
_LISTS: dict[What, tuple[Callable[[], list[Record]], dict[str, Callable[[Record], object]]]] = {
    What.corruptions: (_corruptions, {
        "corruption": _name, "family": itemgetter("family"), "what happens": _what_happens,
        "severities 1, 2, 3 …": _ladders,
    }),
    What.suites: (_suites, {
        "suite": _name, "size": lambda record: len(record["conditions"]), "what it is": _description,
        "corruptions": _listed("corruptions"),
    }),
    What.benchmarks: (_benchmarks, {
        "benchmark": _name, "data": itemgetter("data"), "conditions": _benchmark_conditions,
        "metric": itemgetter("metric"), "paper": itemgetter("cite"),
    }),
    What.datasets: (_datasets, _KINDS),
    What.adapters: (_adapters, _KINDS),
    What.decoders: (_decoders, {
        "decoder": _name, "task": itemgetter("task"), "outputs": _listed("outputs"),
        "options": _listed("options"), "what it reads": _description,
    }),
    What.models: (_models, {
        "model": _name, "task": itemgetter("task"), "size": lambda record: f"{record['bytes'] / 1e6:.1f} MB",
        "training": itemgetter("training"), "world": itemgetter("world"), "clean score, %": _clean_scores,
    }),
}  # fmt: skip
