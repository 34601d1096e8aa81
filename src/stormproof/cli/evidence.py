"""`stormproof evidence`: what was tested, how, and with what result, as an in-toto statement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Against, Data, Plugins, Replicates, Requirements, Run
from stormproof.core.errors import counted


@app.command()
def evidence(
    run: Run,
    require: Requirements,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("evidence.json"),
    against: Against = None,
    data: Data = None,
    pixels: Annotated[
        int, typer.Option(help="Images, chosen by seed, whose corrupted pixels are hashed.", min=0)
    ] = 20,
    replicates: Replicates = 200,
    plugin: Plugins = None,
) -> None:
    """Write evidence of a test: an in-toto Statement v1 with a test-result predicate, unsigned.

    It states the model, dataset, conditions in physical units, seeds, pixels, requirements with estimate,
    interval and verdict, the environment, and what was not tested. It does not claim conformity with any
    standard.

    Examples:

        stormproof evidence runs/yolox --require requirements.yaml --out evidence.json

        cosign attest-blob --statement evidence.json --bundle evidence.sigstore.json model.onnx
    """
    from stormproof.core.files import write_json
    from stormproof.corruptions.plugins import load_plugins
    from stormproof.results.evidence import statement
    from stormproof.results.requirements import read_requirements
    from stormproof.results.run import Run as OpenRun
    from stormproof.results.verdicts import check_run

    load_plugins(plugin or ())
    asked, opened = read_requirements(require), OpenRun(run, data=data)
    beside = None if against is None else OpenRun(against, data=data)
    verdicts = check_run(opened, asked, against=beside, replicates=replicates)
    made = statement(opened, require, verdicts, against=beside, pixels=pixels, replicates=replicates)
    write_json(out, made)
    console.say(f"{out}: {made['predicate']['result']}, {counted(len(verdicts), 'requirement')}.")
