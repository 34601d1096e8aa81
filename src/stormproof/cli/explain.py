"""`stormproof explain`: what a column, measure or aggregate means."""

from __future__ import annotations

from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Plugins, complete_measures


@app.command()
def explain(
    name: Annotated[
        str | None,
        typer.Argument(help="A column, measure or aggregate.", autocompletion=complete_measures),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Explain a column, measure or aggregate of the tables; without a name, list all of them.

    Examples:

        stormproof explain rPC

        stormproof explain 'safe recall'
    """
    from stormproof.core.errors import UnknownName, nearest
    from stormproof.core.table import Table
    from stormproof.results.explained import explanation, explanations

    if name is None:
        rows = [[each, words] for each, words in explanations().items()]
        console.print_table(Table("names", "", ("name", "meaning"), rows))
        return
    words = explanation(name)
    if words is None:
        known = list(explanations())
        near = ", ".join(nearest(name, known, 3))
        hint = f"Near it: {near}; " if near else ""
        raise UnknownName("name", name, known, f"{hint}'stormproof explain' lists all.")
    console.say(f"{name}: {words}")
