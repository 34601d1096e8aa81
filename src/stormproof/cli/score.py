"""`stormproof score`: the scores of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stormproof.cli import app, console
from stormproof.cli.options import AsJson, Data, Plugins, Replicates, Runs, complete_measures, complete_tables
from stormproof.core.errors import InvalidOption, StormproofError, UnknownName
from stormproof.core.processes import keep_memory

if TYPE_CHECKING:
    from stormproof.metrics.object_error import MatchingRule
    from stormproof.results.detection_rate import DetectionRates
    from stormproof.results.run import Run
    from stormproof.results.scores import Scores
    from stormproof.results.slices import Slices

# Of E and flaws: which boxes match an object.
MinScore = Annotated[float, typer.Option(help="E and flaws: ignore boxes scored below this.")]
Matching = Annotated[
    str, typer.Option(help="E and flaws: which boxes may match an object: own-first, any or own class.")
]
MinOverlap = Annotated[
    float, typer.Option(help="E and flaws: the least IoU at which a box of another class matches.")
]
OneToOne = Annotated[bool, typer.Option("--one-to-one", help="E and flaws: a box matches one object only.")]

# What is printed instead of the scores.
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV: a row per condition, class and measure.")]
PaperTable = Annotated[
    str | None,
    typer.Option(
        help="A paper's table of these runs instead: adr, roc, lost, contextual or depth (people), "
        "detectors or scenarios (camera faults), alpha (style).",
        autocompletion=complete_tables,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        help="Scores by an attribute of images: one of the dataset's (weather, city), brightness, "
        "contrast, sharpness, count, or FILE.csv:COLUMN. By distance, size or occlusion of objects: how "
        "many are found. With --table: the tag to group runs by."
    ),
]
SlicesOf = Annotated[
    str | None,
    typer.Option(help="With --by: the baseline of the slices, one of them (clear) or a run folder."),
]


@app.command()
def score(
    runs: Runs,
    data: Data = None,
    reference: Annotated[Path | None, typer.Option(help="A run to compare with: CD, rCD and gains.")] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            help="The measure to show by condition, e.g. 'mask AP'.", autocompletion=complete_measures
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="Classes to score, e.g. person,car, or all. Default: those that the model knows."),
    ] = None,
    every_measure: Annotated[
        bool, typer.Option("--all", help="Print every measure, not only the headline measure.")
    ] = False,
    interval: Annotated[
        bool, typer.Option("--interval", help="Add 95 % intervals for new images like these.")
    ] = False,
    replicates: Replicates = 200,
    partial: Annotated[
        bool, typer.Option("--partial", help="Score only complete conditions, without means.")
    ] = False,
    min_score: MinScore = 0.4,
    matching: Matching = "own-first",
    min_overlap: MinOverlap = 0.1,
    one_to_one: OneToOne = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    table: PaperTable = None,
    by: By = None,
    clean: SlicesOf = None,
    track: Annotated[list[str] | None, typer.Option(help="mlflow, wandb or tensorboard; repeatable.")] = None,
    plugin: Plugins = None,
) -> None:
    """Score a run with every measure that fits its task, and keep the scores in its folder.

    P is the clean score, mPC its mean under the corruptions of a benchmark or suite, rPC their ratio. The
    mean over any other conditions is not called mPC. Scores cover the classes that the model and the dataset
    share, unless --classes names others. An incomplete grid is refused, with a list of what is missing;
    --partial scores what is there. --interval says how sure each number is for new images like these. A run
    made with --precision gives an estimate, which is marked as one.

    Examples:

        stormproof score runs/yolox

        stormproof score runs/deeplab --reference runs/icnet --json

        stormproof score runs/yolox --interval --all

        stormproof score runs/maskrcnn --measure 'mask AP' --classes person,car

        stormproof score runs/zoo

        stormproof score runs/camera-clahe --reference runs/camera --min-score 0.3

        stormproof score runs/yolox --by weather

        stormproof score runs/street --by distance --classes person

        stormproof score runs/yolox runs/ssdlite --table adr
    """
    from stormproof.report.terminal import tell_scores, tell_several
    from stormproof.results.detection_rate import SCALES
    from stormproof.results.documents import write_several
    from stormproof.results.run import Run, runs_in

    if as_json and as_csv:
        raise InvalidOption("Give --json or --csv, not both.")
    if interval and partial:
        raise InvalidOption("--interval needs the whole grid; leave out --partial.")
    if table is not None and as_json:
        raise InvalidOption("--table prints tables or, with --csv, CSV; leave out --json.")
    if interval and as_csv and table is None and by is None:
        raise InvalidOption("CSV has no intervals; give --json, which has them, or leave out --interval.")
    if clean is not None and by is None and table is None:
        raise InvalidOption("--clean is the baseline of slices; give --by as well.")
    rule = _matching_rule(matching, one_to_one=one_to_one, min_score=min_score, min_overlap=min_overlap)
    keep_memory()
    folders = runs_in(runs)
    if table is not None:
        _print_tables(table, [Run(folder, data=data) for folder in folders.values()], by, as_csv=as_csv)
        return
    if by is not None:
        for run in [Run(folder, data=data) for folder in folders.values()]:
            sliced = (
                run.detection_rates(by, classes=classes, min_score=min_score, replicates=replicates)
                if by in SCALES
                else run.slices(by, measure=measure, classes=classes, clean=clean, replicates=replicates)
            )
            _print_slices(sliced, as_json=as_json, as_csv=as_csv)
        return

    def scores_of(run: Run) -> Scores | None:
        """The scores of a run; of one that was stopped at a precision, its estimate is printed instead."""
        if run.record.quota is not None and not partial:
            if as_csv:
                raise InvalidOption(f"{run.folder} holds an estimate, which has no CSV; give --json instead.")
            _print_estimate(run, replicates, as_json=as_json)
            return None
        scores = run.score(
            classes=classes, rule=rule, partial=partial, reference=reference,
            replicates=replicates if interval else None,
        )  # fmt: skip
        return scores if measure is None else scores.showing(measure)

    every, failed = _score_each(folders, data, scores_of, track or [])
    if every and (as_json or as_csv):
        typer.echo(write_several(every, wants_json=as_json), nl=False)
    elif every:
        wanted = every_measure or (reference is not None and len(folders) == 1)
        console.tell((tell_several if len(folders) > 1 else tell_scores)(every, every_measure=wanted))
    if failed:
        raise typer.Exit(1)


def _matching_rule(matching: str, **options: Any) -> MatchingRule:
    from stormproof.metrics.object_error import ClassMatching, MatchingRule

    if matching not in (kinds := [kind.value for kind in ClassMatching]):
        raise UnknownName("kind of matching", matching, kinds, f"--matching is one of {', '.join(kinds)}.")
    return MatchingRule(classes=ClassMatching(matching), **options)


def _score_each(
    folders: Mapping[str, Path],
    data: str | None,
    scores_of: Callable[[Run], Scores | None],
    track: Sequence[str],
) -> tuple[dict[str, Scores], bool]:
    """The scores of each run, and whether one could not be scored: it does not keep the others from it."""
    from stormproof.engine.trackers import open_tracker
    from stormproof.report.terminal import tell_notices
    from stormproof.results.documents import flat_numbers
    from stormproof.results.run import Run

    trackers = [open_tracker(name) for name in track]
    every: dict[str, Scores] = {}
    failed = False
    for name, folder in folders.items():
        try:
            run = Run(folder, data=data)
            scores = scores_of(run)
        except StormproofError as error:
            if len(folders) == 1:
                raise
            console.fail(f"{name}: {error}")
            failed = True
            continue
        if scores is not None:
            every[name] = scores
            for tracker in trackers:
                tracker.scored(run.record, flat_numbers(scores))
            console.tell(tell_notices(name, scores))
    return every, failed


def _print_tables(name: str, runs: list[Run], by: str | None, *, as_csv: bool) -> None:
    from stormproof.report.paper_tables import TABLES

    if name not in TABLES:
        raise UnknownName("table", name, TABLES, f"There are {', '.join(TABLES)}.")
    make, tag = TABLES[name]
    made = make(runs, by or tag)
    if as_csv:  # an empty line between tables
        typer.echo("\n".join(table.as_csv() for table in made), nl=False)
        return
    for table in made:
        console.print_table(table)


def _print_slices(slices: Slices | DetectionRates, *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        console.print_json(slices.as_dict())
    elif as_csv:
        typer.echo(slices.table().as_csv(), nl=False)
    else:
        console.print_table(slices.table())


def _print_estimate(run: Run, replicates: int, *, as_json: bool) -> None:
    from stormproof.report.tables import estimate_table
    from stormproof.results.estimate import estimate_run, read_estimate

    estimate = estimate_run(run, replicates=replicates)
    if as_json:
        console.print_json(read_estimate(run))
    else:
        console.print_table(estimate_table(run, estimate))
