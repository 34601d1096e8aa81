"""`stormproof map`: a score over two parameters, and the line along which a requirement breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stormproof.cli import app, console
from stormproof.cli.options import AsJson, Replicates, Workers
from stormproof.cli.outcome import runner, say_scored_on
from stormproof.cli.settings import Limit
from stormproof.core.errors import InvalidOption


@app.command("map")
def draw(
    target: Annotated[str, typer.Argument(help="A run folder, whose model and data are used, or a model.")],
    x: Annotated[str, typer.Option("--x", help="A corruption with a range: 'haze\\[visibility=50..1000]'.")],
    y: Annotated[str, typer.Option("--y", help="Another one, or an attribute of objects: 'distance=5..80'.")],
    require: Annotated[str, typer.Option(help="A measure and a threshold, e.g. 'AP50>=0.4', 'found>=0.5'.")],
    data: Annotated[str | None, typer.Option(help="The dataset, if TARGET is a model.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder. Default: that of the run, with -map.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Inferences at most. Default: 30 conditions, 8 with objects.", min=1)
    ] = None,
    classes: Annotated[str | None, typer.Option(help="Only objects of these classes: person,car.")] = None,
    limit: Limit = None,
    seed: Annotated[
        int | None,
        typer.Option(help="A different seed gives different noise. Default: that of the run; 0 for a model."),
    ] = None,
    workers: Workers = 0,
    replicates: Replicates = 200,
    as_json: AsJson = False,
) -> None:
    """Map a score over two parameters: where a requirement is met, where it breaks, and what is not decided.

    Conditions are run where the score is uncertain and close to the requirement, until the budget is spent.
    A Gaussian process estimates the score in between; the band around the breaking line contains the true
    line with a chance of 95 %. The page is map.html in the folder.

    Examples:

        stormproof map runs/yolox --x 'haze\\[visibility=50..1000]' --y 'night\\[lux=1..1000]'
        --require 'AP50>=0.4'

        stormproof map builtin:street-grid --data world:test,count=200 --x 'rain\\[rate=2..200]'
        --y distance=5..60 --classes person --require 'found>=0.25' --out runs/rain
    """
    from stormproof.core.files import write_json, write_text
    from stormproof.datasets import read_dataset
    from stormproof.report.planes import map_page
    from stormproof.results.breaking import parse_requirement
    from stormproof.results.map_file import MAP
    from stormproof.results.maps import Plane, draw_map, parse_map_axis
    from stormproof.results.run import Run
    from stormproof.results.truths import class_names

    measure, threshold = parse_requirement(require)
    axes = parse_map_axis(x, "--x"), parse_map_axis(y, "--y")
    plane = Plane(*axes, measure, threshold, None if classes is None else class_names(classes))
    settings, folder = _settings(target, data, out)
    own = {"workers": workers, "limit": limit, "seed": seed}
    settings |= {name: value for name, value in own.items() if value is not None}
    images = min(len(read_dataset(settings["data"])), settings.get("limit") or 1 << 31)
    run = runner({**settings, "out": str(folder)})
    made = draw_map(plane, out=folder, run=run, images=images, budget=budget, replicates=replicates)
    write_json(folder / MAP, content := made.as_dict())
    opened = Run(folder)
    write_text(folder / "map.html", map_page(made, opened.name))
    say_scored_on(opened)
    if as_json:
        console.print_json(content)
        return
    console.say(made.words)
    console.say(f"{made.inferences:,} inferences. The map: {folder / 'map.html'}")


def _settings(target: str, data: str | None, out: Path | None) -> tuple[dict[str, Any], Path]:
    """The settings of runs and their folder: as those of a run, or for a model."""
    from stormproof.engine.config import read_settings
    from stormproof.results.store.parts import SETTINGS
    from stormproof.results.store.record import RECORD

    run = Path(target)
    if (run / RECORD).exists():
        if data is not None:
            raise InvalidOption(f"{target} is a run, which has its own data; leave --data out.")
        kept = read_settings(run / SETTINGS)
        settings = {
            name: kept[name] for name in ("model", "data", "seed", "limit", "enhance") if kept.get(name)
        }
        if "data" not in settings:
            raise InvalidOption(f"{target} is a run of a benchmark; name its model and --data instead.")
        return settings, out or run.with_name(f"{run.name}-map")
    if data is None or out is None:
        raise InvalidOption(f"{target!r} is no run folder; for a model, give --data and --out too.")
    return {"model": target, "data": data}, out
