"""`stormproof list`: what there is."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from stormproof.cli import app, console


class What(StrEnum):
    corruptions = "corruptions"
    suites = "suites"


@app.command("list")
def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the corruptions or the suites.

    Examples:

        stormproof list corruptions

        stormproof list suites --json
    """
    rows = _corruptions() if what is What.corruptions else _suites()
    if as_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        console.out.print(_corruption_table(rows) if what is What.corruptions else _suite_table(rows))


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
    table = Table("suite", "conditions", "what it is", "corruptions", box=None, pad_edge=False)
    for row in rows:
        conditions, corruptions = row["conditions"], row["corruptions"]
        assert isinstance(conditions, list)
        assert isinstance(corruptions, list)
        table.add_row(
            f"[bold]{row['name']}[/]", str(len(conditions)), str(row["description"]), ", ".join(corruptions)
        )
    return table
