"""`stormproof check`: a gate that checks a run against requirements; `evidence`: the test as a statement."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Against, AsJson, Data, Plugins, Replicates, Requirements, Run
from stormproof.cli.outcome import VERDICTS, say_scored_on
from stormproof.core.errors import counted
from stormproof.core.table import Styled, Table

if TYPE_CHECKING:
    from stormproof.results.run import Run as OpenRun
    from stormproof.results.verdicts import Verdict


@app.command()
def check(
    run: Run,
    require: Requirements,
    against: Against = None,
    data: Data = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Append a Markdown table here. Default: $GITHUB_STEP_SUMMARY.")
    ] = None,
    replicates: Replicates = 200,
    as_json: AsJson = False,
    plugin: Plugins = None,
) -> None:
    """Check requirements against a run: pass, fail, or inconclusive if the interval contains the threshold.

    With several requirements, one fails only if that is unlikely to happen by chance among all of them.

    Exit code 0 when all pass, 1 when one fails, 3 when the worst is inconclusive, 2 for an error: a
    requirement that cannot be judged is never a pass.

    Examples:

        stormproof check runs/yolox --require requirements.yaml

        stormproof check runs/new --require requirements.yaml --against runs/old --junit verdicts.xml
    """
    from stormproof.core.files import append_text, write_text
    from stormproof.results.verdicts import UNITS, exit_code, how_sure, markdown
    from stormproof.results.verdicts import junit as as_junit

    opened, _, verdicts = _judge(run, require, against, data, replicates)
    name = opened.name
    if junit is not None:
        write_text(junit, as_junit(name, verdicts))
    page = summary or os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        append_text(Path(page), markdown(name, verdicts))
    images = say_scored_on(opened)
    if as_json:
        console.print_json([verdict.as_dict() for verdict in verdicts])
    else:
        columns = ("id", "requirement", "verdict", "estimate", "95 % interval", "margin")
        rows = []
        for v in verdicts:
            estimate, low, high, margin = v.printed
            numbers = (f"{estimate:.1f}", f"{low:.1f} … {high:.1f}", f"{margin:+.1f}")
            outcome = Styled(str(v.outcome), VERDICTS[v.outcome])
            rows.append((v.requirement.id, v.requirement.text, outcome, *numbers))
        console.print_table(Table("verdicts", f"{name}, {counted(images, 'image')} ({UNITS})", columns, rows))
        console.say(how_sure(verdicts))
    raise typer.Exit(exit_code(verdicts))


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
    from stormproof.results.evidence import statement

    opened, beside, verdicts = _judge(run, require, against, data, replicates)
    made = statement(opened, require, verdicts, against=beside, pixels=pixels, replicates=replicates)
    write_json(out, made)
    console.say(f"{out}: {made['predicate']['result']}, {counted(len(verdicts), 'requirement')}.")


def _judge(
    run: Path,
    require: Path,
    against: Path | None,
    data: str | None,
    replicates: int,
) -> tuple[OpenRun, OpenRun | None, list[Verdict]]:
    """The run and its baseline, opened, and the verdict on each requirement."""
    from stormproof.results.requirements import read_requirements
    from stormproof.results.run import Run as OpenRun
    from stormproof.results.verdicts import check_run

    asked, opened = read_requirements(require), OpenRun(run, data=data)
    beside = None if against is None else OpenRun(against, data=data)
    verdicts = check_run(opened, asked, against=beside, replicates=replicates, planned=asked.planned_images)
    return opened, beside, verdicts
