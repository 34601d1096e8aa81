"""`stormproof submit`: a run as an entry; `leaderboard`: build the site, check entries, write the papers'."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Run
from stormproof.core.errors import InvalidOption, OutputError, first_few
from stormproof.core.table import Table, file_name, styled


@app.command()
def submit(
    run: Run,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file. Default: RUN's name with .submission.json.")
    ] = None,
    measure: Annotated[str | None, typer.Option(help="What to submit. Default: the run's headline.")] = None,
    note: Annotated[str, typer.Option(help="A line for readers.")] = "",
    data: Data = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a run's grid as one JSON file for a leaderboard: numbers, provenance, a hash of the predictions.

    The file does not name any folder or machine. A run that lacks images becomes an entry marked incomplete.

    Example:

        stormproof submit runs/yolox --out entries/yolox.json
    """
    from stormproof.core.files import make_folder, write_text
    from stormproof.report.leaderboard.submission import as_json, submission_of
    from stormproof.results.run import Run as OpenRun

    path = out or Path(f"{run.resolve().name}.submission.json")
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists; give another --out, or --overwrite.")
    submission = submission_of(OpenRun(run, data=data), measure=measure, note=note)
    make_folder(path.parent)
    write_text(path, as_json(submission))
    if submission.missing:
        console.note(f"Incomplete, so without a mean: {first_few(submission.missing)}")
    console.say(f"{path}")


board = typer.Typer(no_args_is_help=True, help="Build a leaderboard from submissions, and check them.")
app.add_typer(board, name="leaderboard")


@board.command()
def build(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder of submissions (.json), any depth.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The site's folder.")] = Path("site"),
    published: Annotated[
        bool, typer.Option("--published/--alone", help="Include the papers' entries, or leave them out.")
    ] = True,
    trust_verification: Annotated[
        bool,
        typer.Option(
            "--trust-verification",
            help="Show the badge 're-run' of entries that carry it; you ran 'leaderboard verify' on them.",
        ),
    ] = False,
) -> None:
    """Build a static site from submissions: ranked by mPC, a page per model. Same files, same site.

    A malformed or changed file stops the build and is named; an incomplete grid is shown as incomplete. The
    badge 're-run' is taken from an entry only with --trust-verification: anyone can write it into a file.

    Example:

        stormproof leaderboard build entries --out site
    """
    from stormproof.report.leaderboard.published import published_submissions
    from stormproof.report.leaderboard.site import build_site, drop_verification, read_folder

    given = read_folder(folder)
    claimed = [entry.model.name for entry in given if entry.verification is not None]
    if claimed and not trust_verification:
        given = [drop_verification(entry) for entry in given]
        console.note(
            f"{first_few(claimed)}: the badge 're-run' is left out, since anyone can write it into a file; "
            "--trust-verification shows it."
        )
    entries = [*given, *(published_submissions() if published else ())]
    written = build_site(entries, out)
    console.say(f"{len(entries)} entries: {written[0]}")


@board.command()
def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path("published"),
) -> None:
    """Write the papers' tables as submissions, one file per network, cited and marked as published.

    Example:

        stormproof leaderboard export --out entries/published
    """
    from stormproof.core.files import make_folder, write_text
    from stormproof.report.leaderboard.published import published_submissions
    from stormproof.report.leaderboard.submission import as_json

    make_folder(out)
    count = 0
    for entry in published_submissions():
        name = file_name(str(entry.provenance["paper"]), entry.dataset.name, entry.task, entry.model.name)
        write_text(out / f"{name}.json", as_json(entry))
        count += 1
    console.say(f"{count} entries in {out}")


@board.command()
def verify(
    submission: Annotated[Path, typer.Argument(metavar="SUBMISSION", help="The file to check.")],
    model: Annotated[str, typer.Option(help="The model, as 'stormproof run' takes it.")],
    data: Annotated[str, typer.Option(help="The dataset, as 'stormproof run' takes it.")],
    cells: Annotated[int, typer.Option(help="How many random conditions to run again, beside clean.")] = 3,
    seed: Annotated[int, typer.Option(help="Another seed chooses other conditions.")] = 0,
    enhance: Annotated[list[str] | None, typer.Option(help="Enhancements of the submitted run.")] = None,
    tolerance: Annotated[
        float, typer.Option(help="The largest difference between scores that still counts as equal.")
    ] = 0.001,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the entry with the badge 're-run' here.")
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep the run in this folder.")] = None,
) -> None:
    """Run a few random cells of a submission again and compare. Exit code 1 if they do not agree.

    Example:

        stormproof leaderboard verify entry.json --model onnx:net.onnx --data coco:val.json --cells 5
    """
    from stormproof.core.files import make_folder, write_text
    from stormproof.engine.progress import RunProgress
    from stormproof.report.leaderboard.submission import as_json, read_submission
    from stormproof.report.leaderboard.verify import verify as run_again

    if cells < 1:
        raise InvalidOption(f"--cells {cells}: give at least 1.")
    if out is not None and out.exists():
        raise OutputError(f"{out} exists; give another --out.")
    entry = read_submission(submission)
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        outcome = run_again(
            entry, Path(str(folder)) / "run", model=model, data=data, count=cells, seed=seed,
            enhance=enhance or (), tolerance=tolerance, watches=[RunProgress(console.err)],
        )  # fmt: skip
    rows = [
        styled(
            (each.condition, *(100 * v for v in (each.submitted, each.again, each.difference))),
            "" if each.difference <= tolerance else "red", digits=3,
        )
        for each in outcome.scores
    ]  # fmt: skip
    columns = ("condition", "submitted", "again", "difference")
    console.print_table(Table("cells", f"{entry.model.name}: {entry.measure} (%)", columns, rows))
    for surprise in outcome.surprises:
        console.note(surprise)
    if not outcome.agrees:
        console.fail(f"{submission} does not agree with the new run.")
        raise typer.Exit(1)
    console.out.print("It agrees.")
    if out is not None:
        make_folder(out.parent)
        write_text(out, as_json(entry.model_copy(update={"verification": outcome.verification()})))
