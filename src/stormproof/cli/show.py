"""`stormproof show`: a run in the terminal, a bar per corruption."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from stormproof.cli import app, console
from stormproof.cli.options import Data, Plugins

if TYPE_CHECKING:
    from stormproof.results.scores import Scores

_WIDTH = 12  # of a bar
_SHADES = ("red", "dark_orange", "yellow3", "green3", "green")


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, a submission or published:….")],
    measure: Annotated[str | None, typer.Option(help="What to show. Default: the run's headline.")] = None,
    data: Data = None,
    plugin: Plugins = None,
) -> None:
    """Show a run: what hurts most first, with a bar for what is left of the clean score.

    Examples:

        stormproof show runs/yolox

        stormproof show runs/yolox --measure AP50
    """
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.report.sources import scores_of
    from stormproof.report.view import make_view

    load_plugins(plugin or ())
    for scores in scores_of(run, data):
        view = make_view([scores], measure=measure)
        console.say(view.sentences[0])
        for notice in view.notices:
            console.out.print(notice, style="yellow", soft_wrap=True)
        console.out.print(_table(scores, measure or scores.headline))


def _table(scores: Scores, measure: str) -> Table:
    from stormproof.report.sections import all_levels, scaled, unit

    clean = scores.score(measure)
    levels = {name: {c.severity: str(c) for c in row} for name, row in all_levels(scores.corrupted).items()}
    means = scores.by_corruption(measure)
    table = Table(title=Text(f"{unit(measure)} by severity, and its mean"), title_justify="left")
    table.add_column("corruption", overflow="fold")
    severities = sorted({s for row in levels.values() for s in row if s is not None})
    for severity in severities:
        table.add_column(f"{severity:g}", justify="right")
    table.add_column("mean", justify="right")
    table.add_column("left of clean")
    names = dict.fromkeys((*levels, *means))
    for name in sorted(names, key=lambda n: means.get(n, math.inf)):
        held = levels.get(name, {})
        values = [scores.score(measure, held[s]) if s in held else math.nan for s in severities]
        cells = [_cell(scaled(measure, value), value, clean) for value in values]
        mean = means.get(name, scores.score(measure, held[None]) if None in held else math.nan)
        table.add_row(Text(name), *cells, _cell(scaled(measure, mean), mean, clean), bar(mean, clean))
    return table


def _cell(shown: float, value: float, clean: float) -> Text:
    return Text("–") if math.isnan(value) else Text(f"{shown:.1f}", style=_shade(value, clean))


def bar(value: float, clean: float) -> Text:
    """What is left of the clean score, as a bar and in per cent."""
    if math.isnan(value):
        return Text("incomplete")
    if not clean > 0:
        return Text("–")
    part = value / clean
    return Text(
        f"{'█' * round(_WIDTH * min(part, 1)):<{_WIDTH}} {100 * part:.0f} %", style=_shade(value, clean)
    )


def _shade(value: float, clean: float) -> str:
    part = value / clean if clean > 0 else 0.0
    return _SHADES[min(len(_SHADES) - 1, max(0, int(part * len(_SHADES))))]
