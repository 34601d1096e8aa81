"""`stormproof breaking-point`: the strength of a corruption at which a requirement is no longer met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stormproof.cli import app, console
from stormproof.cli.options import AsJson, Replicates, Workers
from stormproof.cli.outcome import runner, say_scored_on
from stormproof.cli.settings import Limit, Seed
from stormproof.core.errors import InvalidOption
from stormproof.core.table import Entry, Table

if TYPE_CHECKING:
    from stormproof.results.breaking import StrengthAxis


@app.command("breaking-point")
def breaking_point(
    model: Annotated[str, typer.Option(help="The model, as 'stormproof run' takes it.")],
    data: Annotated[str, typer.Option(help="The dataset, e.g. coco:val.json,images=val2017.")],
    require: Annotated[str, typer.Option(help="A measure and a threshold, e.g. 'AP50>=0.4'.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The run folder; the same one continues a search.")
    ],
    corruption: Annotated[
        list[str],
        typer.Option(help="A corruption, e.g. haze or 'defocus\\[focus=5]', or all of a suite; repeatable."),
    ],
    over: Annotated[
        str | None, typer.Option(help="A parameter instead of severity, weak to strong: visibility=500..20.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 0,
    tolerance: Annotated[
        float, typer.Option(help="How precisely to find the point, in severities.", min=0.02)
    ] = 0.1,
    replicates: Replicates = 200,
    as_json: AsJson = False,
) -> None:
    """Find where a model breaks: the severity, and what that is in metres, pixels or decibels.

    Every strength is run on the same images. A monotone fit gives the crossing, random halves of the images
    its 95 % interval, and a run on either side confirms it. Other possible answers are "never in this range",
    "already below when clean" and "not monotone; first seen below at …".

    Examples:

        stormproof breaking-point --model onnx:yolox.onnx --data world:val,count=200 --corruption haze
        --require 'AP50>=0.4' --out runs/haze

        stormproof breaking-point --model mine.py:detect --data coco:val.json --corruption imagenet-c
        --require 'AP>=0.2' --out runs/limits
    """
    from stormproof.core.files import write_json
    from stormproof.results.breaking import find_breaking_point, parse_requirement
    from stormproof.results.run import Run

    measure, threshold = parse_requirement(require)
    settings = {"model": model, "data": data, "out": str(out), "seed": seed, "workers": workers}
    if limit is not None:
        settings["limit"] = limit
    run = runner(settings)
    rows = [
        find_breaking_point(
            axis, measure, threshold, out=out, run=lambda more: run(["clean", *more]), tolerance=tolerance,
            replicates=replicates,
        ).row
        for axis in _axes(corruption, over)
    ]  # fmt: skip
    write_json(out / "breaking-points.json", rows)
    say_scored_on(Run(out))
    if as_json:
        console.print_json(rows)
        return
    console.print_table(_table(rows, f"Where {measure} falls below {threshold:g}"))


def _axes(corruptions: Sequence[str], over: str | None) -> Iterator[StrengthAxis]:
    """The strengths to search, of each corruption or of all of a suite; of a suite, corruptions without a
    strength are left out by name."""
    from stormproof.corruptions import SUITES
    from stormproof.results.breaking import parse_axis

    names = {
        name: given in SUITES
        for given in corruptions
        for name in (SUITES[given].corruptions if given in SUITES else (given,))
    }
    for name, of_suite in names.items():
        try:
            yield parse_axis(name, over)
        except ValueError as error:
            if not of_suite or isinstance(error, InvalidOption):
                raise
            console.note(f"Left out: {error}")


def _table(rows: list[dict[str, Any]], title: str) -> Table:
    columns = ("corruption", "answer", "at", "95 % interval", "in the world", "confirmed")
    lines: list[list[Entry]] = []
    for row in rows:
        if row["strength"] is None:
            lines.append([row["corruption"], row["words"], *[""] * 4])
            continue
        at = row["strength"]
        ends = [("…" if at[k] is None else f"{at[k]:g}") for k in ("low", "high")]
        first = [row["physical"][k][0] if row["physical"][k] else "beyond" for k in ("low", "high")]
        world = "; ".join(row["physical"]["at"]) + f" ({first[0]} to {first[1]})"
        sure = "on both sides" if row["confirmed"] else "no"
        where = f"{row['over']} {at['at']:g}"
        lines.append([row["corruption"], row["words"], where, " – ".join(ends), world, sure])
    return Table("breaking-points", title, columns, lines)
