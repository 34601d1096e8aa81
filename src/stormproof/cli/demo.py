"""`stormproof demo`: three trained networks in the storm, on a machine without data, weights or GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from stormproof.cli import app, console
from stormproof.cli.options import Workers
from stormproof.core.errors import RunError, counted

if TYPE_CHECKING:
    from stormproof.core.condition import Condition
    from stormproof.engine.config import RunConfig
    from stormproof.engine.plan import Survey
    from stormproof.engine.run import Summary, Watch
    from stormproof.engine.work import ChunkResult
    from stormproof.results.scores import Scores
    from stormproof.results.store.record import RunRecord

NETWORKS = {"street-grid": "boxes", "street-masks": "masks", "street-context": "segments"}
SUITES = {"imagenet-c": "common", "camera": "camera", "contextual": "haze, defocus"}  # and their columns
SCENES, SHORT = 200, 16  # scenes of the full demo and of the short one
SEVERITY = 3  # that the short one takes of every corruption
EVERY = slice(1, None, 4)  # and which conditions of a suite without severities
HARDEST = 3  # conditions named per network


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the runs go; the same folder continues.")] = Path("demo"),
    full: Annotated[bool, typer.Option("--full", help="Every severity, on 200 scenes; takes hours.")] = False,
    scenes: Annotated[
        int | None, typer.Option(min=1, help="How many scenes of world:test. Default 16, full 200.")
    ] = None,
    workers: Workers = 0,
) -> None:
    """Run three built-in networks under corruption, and say how much of their scores is left.

    A detector, an instance segmenter and a semantic segmenter, all trained on the built-in street, meet the
    common corruptions, the faults of a camera, haze and defocus. It takes minutes and needs nothing but this
    package. Stop it at any time: the same command continues.

    Examples:

        stormproof demo

        stormproof demo --full --out runs/demo --workers 16
    """
    from stormproof.report.make import Options, make_report
    from stormproof.results.run import Run

    started = monotonic()
    configs = plan_demo(out, full=full, scenes=scenes, workers=workers)
    found: dict[str, Scores] = {}
    try:
        with _display(configs) as watches:
            for name, config in configs.items():
                _run(config, watches[name])
        for name in configs:
            found[name] = Run(out / name).score()
    except KeyboardInterrupt:
        console.fail("Stopped; what was finished is kept. The same command continues.")
        raise typer.Exit(130) from None
    console.out.print(answer(found))
    for line in findings(found):
        console.say(line)
    page, _ = make_report([str(out / name) for name in found], out / "report.html", Options(images=1))
    console.say(f"\nThe report: {page}")
    _close(out, found, monotonic() - started)


def plan_demo(out: Path, *, full: bool, scenes: int | None, workers: int) -> dict[str, RunConfig]:
    """One run per network, under the same conditions on the same scenes."""
    from stormproof.engine.config import make_config

    conditions = [str(c) for name in SUITES for c in conditions_of(name, full=full)]
    return {
        name: make_config({
            "model": f"builtin:{name}", "data": "world:test", "out": str(out / name), "workers": workers,
            "limit": scenes or (SCENES if full else SHORT), "conditions": conditions,
        })
        for name in NETWORKS
    }  # fmt: skip


def conditions_of(suite: str, *, full: bool) -> tuple[Condition, ...]:
    """What the demo takes of a suite: all of it, or one severity of every corruption."""
    from stormproof.corruptions.suites import find_suite

    every = find_suite(suite).conditions
    if full:
        return every
    return tuple(c for c in every if c.severity == SEVERITY) or every[EVERY]


class _Bar:
    """One network's line in the display that all of them share."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def started(self, record: RunRecord, survey: Survey) -> None:
        done = survey.cells - survey.cells_left
        self._progress.update(self._task, total=survey.cells, completed=done)
        self._progress.start_task(self._task)

    def advanced(self, result: ChunkResult) -> None:
        self._progress.advance(self._task, sum(result.done.values()))

    def ended(self, summary: Summary) -> None:
        """The display closes when the last network is done."""


@contextmanager
def _display(names: Iterable[str]) -> Iterator[dict[str, Watch]]:
    """Bars for all networks together on a terminal; plain lines in a log."""
    from stormproof.engine.progress import watch_on

    if not console.err.is_terminal:
        yield {name: watch_on(console.err) for name in names}
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console.err) as progress:
        yield {name: _Bar(progress, progress.add_task(name, start=False, total=None)) for name in names}


def _run(config: RunConfig, watch: Watch) -> None:
    from stormproof.engine.run import run
    from stormproof.engine.work import alike

    failures = run(config, [watch]).failures
    if failures:
        cells = counted(len(failures), "cell")
        raise RunError(f"{cells} failed; the same command tries again. First: {alike(failures)[0]}")


def answer(found: Mapping[str, Scores]) -> Table:
    """Clean score, mean score under each suite, and how much of the clean score is kept over all of them."""
    images = next(iter(found.values())).images
    title = f"\nThree networks in the storm: {images} scenes of the built-in street, scores in %"
    name = Column("network", no_wrap=True)
    table = Table(name, "finds", "measure", title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for words in ("clean", *SUITES.values(), "kept"):
        table.add_column(words, justify="right")
    for network, scores in found.items():
        clean, means = _means(scores)
        numbers = [f"{100 * value:.1f}" for value in (clean, *means.values())]
        table.add_row(network, NETWORKS[network], scores.headline, *numbers, f"{_kept(scores):.0%}")
    return table


def findings(found: Mapping[str, Scores]) -> list[str]:
    """A sentence for each network: what it keeps, and under what it fails most."""
    lines = []
    for name, scores in found.items():
        values = scores.cells[scores.headline]
        hardest = sorted((value, text) for text, value in values.items() if text != "clean")[:HARDEST]
        worst = ", ".join(f"{text} ({100 * value:.1f})" for value, text in hardest)
        lines.append(f"{name} keeps {_kept(scores):.0%} of its clean {scores.headline}; hardest: {worst}.")
    return lines


def _means(scores: Scores) -> tuple[float, dict[str, float]]:
    """The clean score, and the mean over the conditions of every suite."""
    from stormproof.corruptions.suites import find_suite

    values = scores.cells[scores.headline]
    of = {name: [values[str(c)] for c in find_suite(name).conditions if str(c) in values] for name in SUITES}
    return values["clean"], {name: fmean(members) for name, members in of.items()}


def _kept(scores: Scores) -> float:
    """The mean score under all conditions, as a share of the clean one."""
    values = scores.cells[scores.headline]
    mean = fmean(value for text, value in values.items() if text != "clean")
    return mean / values["clean"] if values["clean"] else 0.0


def _close(out: Path, found: Mapping[str, Scores], seconds: float) -> None:
    from stormproof.engine.progress import spoken

    console.say(
        f"\nDone in {spoken(seconds)}. The runs are in {out}; look closer with, for example:\n"
        f"  stormproof score {out / next(iter(found))}\n"
        "The same with your own ONNX file, and with your own COCO file:\n"
        "  stormproof run --model onnx:MODEL.onnx --data world:test --suite imagenet-c --out runs/mine\n"
        "  stormproof run --model onnx:MODEL.onnx --data coco:instances.json,images=FOLDER "
        "--suite imagenet-c --out runs/mine-coco"
    )
