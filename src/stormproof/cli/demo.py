"""`stormproof demo`: three trained networks under corruption, without any data, weights or GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Workers
from stormproof.cli.outcome import stoppable
from stormproof.core.errors import RunError, counted

if TYPE_CHECKING:
    from stormproof.core.condition import Condition
    from stormproof.engine.config import RunConfig
    from stormproof.results.scores import Scores

SCENES, SHORT = 200, 12  # scenes of the full demo and of the short one
SEVERITY = 3  # of every corruption in the short demo
EVERY = slice(1, None, 4)  # conditions of a suite without severities in the short demo


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder for the runs; naming it again continues them.")
    ] = Path("demo"),
    full: Annotated[bool, typer.Option("--full", help="Every severity, on 200 scenes; takes hours.")] = False,
    scenes: Annotated[
        int | None, typer.Option(min=1, help="How many scenes of world:test. Default: 12, with --full 200.")
    ] = None,
    workers: Workers = 0,
) -> None:
    """Run three built-in networks under corruption, and report how much of their scores is left.

    A detector, an instance segmenter and a semantic segmenter, all trained on the built-in street, are run
    under common corruptions, camera faults, haze and defocus. It takes minutes and needs nothing but this
    package. You can stop it at any time: the same command continues it.

    Examples:

        stormproof demo

        stormproof demo --full --out runs/demo --workers 16
    """
    from stormproof.report.demo import answer, findings
    from stormproof.report.make import Options, make_report
    from stormproof.results.run import Run

    started = monotonic()
    configs = plan_demo(out, full=full, scenes=scenes, workers=workers)
    scored: dict[str, Scores] = {}
    first, *others = configs.values()
    with stoppable(out):
        _run([first])
        if not (out / "report.html").exists():
            page, _ = make_report([str(first.out)], out / "report.html", Options(images=1))
            console.note(f"A first page, of {first.name} alone: {page}")
        _run(others)
        for name in configs:
            scored[name] = Run(out / name).score()
    console.print_table(answer(scored), framed=False)
    for line in findings(scored):
        console.say(line)
    page, _ = make_report([str(out / name) for name in scored], out / "report.html", Options(images=1))
    console.say(f"\nThe report: {page}")
    _close(out, scored, monotonic() - started)


def plan_demo(out: Path, *, full: bool, scenes: int | None, workers: int) -> dict[str, RunConfig]:
    """One run per network, under the same conditions on the same scenes."""
    from stormproof.engine.config import make_config
    from stormproof.report.demo import NETWORKS, SUITES

    conditions = [str(c) for name in SUITES for c in conditions_of(name, full=full)]
    return {
        name: make_config({
            "model": f"builtin:{name}", "data": "world:test", "out": str(out / name), "name": name,
            "workers": workers,
            "limit": scenes or (SCENES if full else SHORT), "conditions": conditions,
        })
        for name in NETWORKS
    }  # fmt: skip


def conditions_of(suite: str, *, full: bool) -> tuple[Condition, ...]:
    """The conditions of a suite in the demo: all of them, or one severity of every corruption."""
    from stormproof.corruptions.suites import find_suite

    every = find_suite(suite).conditions
    if full:
        return every
    return tuple(c for c in every if c.severity == SEVERITY) or every[EVERY]


def _run(runs: list[RunConfig]) -> None:
    from stormproof.engine.executors import executor_for
    from stormproof.engine.failures import group_failures
    from stormproof.engine.many import run_all
    from stormproof.engine.plan import size_of
    from stormproof.engine.progress import RunProgress

    cells = sum(size_of(config).cells for config in runs)
    progress = RunProgress(console.err, runs=len(runs), cells=cells)
    for outcome in run_all(runs, executor_for(runs[0], cells), [progress]):
        if outcome.error is not None:
            raise outcome.error
        failures = outcome.summary.failures if outcome.summary else []
        if failures:
            first = group_failures(failures)[0]
            raise RunError(
                f"{counted(len(failures), 'cell')} of {outcome.config.name} failed. First: {first}"
            )


def _close(out: Path, scored: Mapping[str, Scores], seconds: float) -> None:
    from stormproof.core.progress import duration_text

    console.say(
        f"\nDone in {duration_text(seconds)}. The runs are in {out}; for a closer look, for example:\n"
        f"  stormproof score {out / next(iter(scored))}\n"
        "The same with your own ONNX file, and with your own COCO file:\n"
        "  stormproof run --model onnx:MODEL.onnx --data world:test --conditions imagenet-c --out runs/mine\n"
        "  stormproof run --model onnx:MODEL.onnx --data coco:instances.json,images=FOLDER "
        "--conditions imagenet-c --out runs/mine-coco"
    )
