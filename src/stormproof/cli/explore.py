"""`stormproof explore`: a page, served on this machine, to look at a model in the storm."""

from __future__ import annotations

from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Plugins
from stormproof.cli.settings import Seed
from stormproof.core.errors import InvalidOption
from stormproof.core.loading import framework


@app.command()
def explore(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN…]", help="Folders that 'stormproof run' made.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model to ask; beside runs, their model named again. Repeatable."),
    ] = None,
    data: Data = None,
    seed: Seed = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 0,
    token: Annotated[
        str | None, typer.Option(help="The secret in the link, 16 letters or more. Default: a new one.")
    ] = None,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    plugin: Plugins = None,
) -> None:
    """Look at a model in the storm: every cell of a run, any severity between, any image.

    A page opens in the browser: the heat map of the runs, the images behind each cell, and a microscope that
    makes the same pixels again and asks the model as the severity moves. Run folders are only read. The page
    is served to this machine alone, at a link with a secret; stop it with Ctrl-C.

    Examples:

        stormproof explore runs/yolox

        stormproof explore runs/yolox runs/ssd --no-open --port 8765

        stormproof explore --model onnx:yolox.onnx --data coco:val.json,images=val2017
    """

    for needed in ("starlette", "uvicorn"):
        framework(needed, extra="explore")
    serve = framework("stormproof.explore.serve", extra="explore")
    if runs and seed:
        raise InvalidOption("--seed: a run has its own.")
    exploration = serve.open_subjects(runs or (), model or (), data, seed=seed)
    server = serve.Server(exploration, host=host, port=port, token=token or "")
    server.prepare()
    console.say(f"Explore at {server.link}")
    console.say("The link is for you alone. Stop with Ctrl-C.")
    if browser:
        serve.open_browser(server.link)
    server.run()
