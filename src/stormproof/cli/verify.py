"""`stormproof verify`: check that a run, or a folder of copies, is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Against, Data
from stormproof.core.errors import InvalidOption, counted


@app.command()
def verify(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What 'stormproof run' or 'stormproof corrupt' wrote.")
    ],
    data: Data = None,
    no_data: Annotated[
        bool,
        typer.Option(
            "--no-data", help="Check a run without its dataset: image names and pixels are not checked."
        ),
    ] = False,
    evidence: Annotated[
        Path | None, typer.Option(help="Check this file of 'stormproof evidence' against the run as well.")
    ] = None,
    against: Against = None,
    require: Annotated[
        Path | None, typer.Option(help="The requirements that the evidence names.", exists=True)
    ] = None,
) -> None:
    """Check every part of a run, or every file of a manifest.

    For a run: its record, the seal and the cells of every part, the range of every value, the scores kept
    with it, and the names and contents of the images. For copies: the SHA-256 of every file. For evidence:
    that it names the run's predictions, baseline and number of replicates, and that every verdict can be
    computed from them again.

    Examples:

        stormproof verify runs/yolox

        stormproof verify runs/zoo --no-data

        stormproof verify val2017-c

        stormproof verify runs/yolox --evidence evidence.json --require requirements.yaml
    """
    from stormproof.datasets.copies import MANIFEST
    from stormproof.results.run import runs_in

    if evidence is None and (against is not None or require is not None):
        raise InvalidOption("--against and --require are about evidence; name its file with --evidence.")
    if (folder / MANIFEST).exists():
        _verify_copies(folder)
        return
    if evidence is not None and no_data:
        raise InvalidOption(
            "--no-data: checking evidence computes its verdicts again, which needs the dataset."
        )
    bad = [name for name, run in runs_in([folder]).items() if not _verify_run(run, data, no_data)]
    if bad:
        raise typer.Exit(1)
    if evidence is not None:
        _verify_evidence(folder, evidence, against, require, data)


def _verify_evidence(
    folder: Path, evidence: Path, against: Path | None, require: Path | None, data: str | None
) -> None:
    from stormproof.results.domain_records import check_domain_evidence, is_about_a_domain
    from stormproof.results.evidence import check_evidence, read_evidence
    from stormproof.results.run import Run

    stated, beside = read_evidence(evidence), None if against is None else Run(against, data=data)
    if is_about_a_domain(stated):
        if require is None:
            raise InvalidOption(f"{evidence} is about a domain; name its file with --require odd.yaml.")
        problems = check_domain_evidence(stated, Run(folder, data=data), require)
    else:
        problems = check_evidence(stated, Run(folder, data=data), against=beside, requirements=require)
    for problem in problems:
        console.fail(f"{evidence}: {problem}")
    if problems:
        raise typer.Exit(1)
    console.say(f"{evidence}: everything it states follows from {folder}.")


def _verify_run(run: Path, data: str | None, no_data: bool) -> bool:
    from stormproof.results.run import Run
    from stormproof.results.store.integrity import changed_images, problems
    from stormproof.results.stored import stored_problems

    opened = Run(run, data=data)
    if not no_data:
        opened.dataset  # noqa: B018  a missing dataset is an error here
    said = [*map(str, problems(opened, deep=True)), *stored_problems(opened)]
    if not said and not no_data:
        said = [f"{name} changed since the run" for name in changed_images(opened)]
    for problem in said:
        console.fail(problem)
    parts = len(opened.parts)
    if said:
        console.fail(f"{run}: {counted(len(said), 'problem')} in {counted(parts, 'part')}.")
        return False
    lacking = len(opened.missing)
    more = f"; {counted(lacking, 'condition')} without some images" if lacking else ""
    console.say(f"{run}: {counted(parts, 'part')} checked, all as they were written{more}.")
    return True


def _verify_copies(folder: Path) -> None:
    from stormproof.tools.manifest import check, read_manifest

    listed = read_manifest(folder)
    with console.progress("verifying", len(listed), "files") as progress:
        checked = [check(folder, copy) for copy in progress.track(listed)]
    problems = [problem for problem in checked if problem]
    for problem in problems:
        console.fail(problem)
    if problems:
        console.fail(f"{len(problems)} of {len(listed)} files are not what the manifest says.")
        raise typer.Exit(1)
    console.say(f"{folder}: {counted(len(listed), 'file')} checked, all as the manifest says.")
