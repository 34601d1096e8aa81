"""`stormproof list`: what there is."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from enum import StrEnum
from textwrap import fill
from typing import Annotated

import typer
from rich.table import Column, Table

from stormproof.cli import app, console


class What(StrEnum):
    corruptions = "corruptions"
    suites = "suites"
    benchmarks = "benchmarks"


@app.command("list")
def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the corruptions, the suites, or the papers' benchmarks for `stormproof run --benchmark`.

    Examples:

        stormproof list corruptions

        stormproof list suites --json

        stormproof list benchmarks
    """
    rows, table = {
        What.corruptions: (_corruptions, _corruption_table),
        What.suites: (_suites, _suite_table),
        What.benchmarks: (_benchmarks, _benchmark_table),
    }[what]
    found = rows()
    if as_json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        console.out.print(table(found))


def _corruptions() -> list[dict[str, object]]:
    from stormproof.corruptions import registered

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
            "instead": {key: _inputs(rule) for key, rule in c.derived.items()},
            "cite": c.cite,
            "version": c.version,
        }
        for c in registered().values()
    ]


def _suites() -> list[dict[str, object]]:
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


def _corruption_table(rows: list[dict[str, object]]) -> Table:
    table = Table("corruption", "family", "what happens", "severities 1, 2, 3 …", box=None, pad_edge=False)
    for row in rows:
        parameters = row["parameters"]
        assert isinstance(parameters, dict)
        # A parameter without values is one that every condition gives.
        ladders = "\n".join(
            f"{key} {' '.join(map(str, _folded(values))) or '…'}" for key, values in parameters.items()
        )
        needs = (
            f" Needs {', '.join(row['needs'])}." if isinstance(row["needs"], list) and row["needs"] else ""
        )
        table.add_row(f"[bold]{row['name']}[/]", str(row["family"]), f"{row['description']}{needs}", ladders)
    return table


def _inputs(rule: Callable[..., float]) -> list[str]:
    return list(inspect.signature(rule).parameters)


def _folded(values: list[object]) -> list[object]:
    return values[:1] if len(set(values)) == 1 else values


def _suite_table(rows: list[dict[str, object]]) -> Table:
    # Names are never cut, so that they can be copied; the other columns give way.
    name, names = Column("suite", no_wrap=True), Column("corruptions", no_wrap=True)
    table = Table(name, "conditions", "what it is", names, box=None, pad_edge=False)
    for row in rows:
        conditions, corruptions = row["conditions"], row["corruptions"]
        assert isinstance(conditions, list)
        assert isinstance(corruptions, list)
        table.add_row(
            f"[bold]{row['name']}[/]", str(len(conditions)), str(row["description"]),
            fill(", ".join(corruptions), max(28, console.out.width * 2 // 5), break_long_words=False),
        )  # fmt: skip
    return table


def _benchmarks() -> list[dict[str, object]]:
    from stormproof.engine.presets import PRESETS

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


def _benchmark_table(rows: list[dict[str, object]]) -> Table:
    table = Table("benchmark", "data", "conditions", "metric", "paper", box=None, pad_edge=False)
    for row in rows:
        suites, corruptions = row["suites"], row["corruptions"]
        assert isinstance(suites, list)
        assert isinstance(corruptions, list)
        conditions = row["needs"] and f"needs {row['needs']}"
        conditions = conditions or ", ".join(suites) or f"{len(corruptions)} corruptions"
        name, data, metric, cite = (str(row[key]) for key in ("name", "data", "metric", "cite"))
        table.add_row(f"[bold]{name}[/]", data, str(conditions), metric, cite)
    return table
