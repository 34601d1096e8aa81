"""`stormproof corrupt` and `stormproof verify`: corrupted copies on disk, and proof of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.errors import InvalidOption, OutputError
from stormproof.processes import worker_count

if TYPE_CHECKING:
    from stormproof.condition import Condition


class Format(StrEnum):
    png = "png"
    jpg = "jpg"
    bmp = "bmp"


@app.command()
def corrupt(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="An image, or a folder tree of images.")],
    destination: Annotated[
        Path, typer.Argument(metavar="DST", help="A new folder; for one image, also a file.")
    ],
    corruption: Annotated[str | None, typer.Option("--corruption", "-c", help="A corruption's name.")] = None,
    severity: Annotated[
        int | None, typer.Option("--severity", "-s", help="1 to 5; every one there is when not given.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Every condition of a suite.")] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(help="A condition such as 'fog@3' or 'gaussian_noise[sigma=0.1]'; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives other noise.")] = 0,
    workers: Annotated[int, typer.Option("--workers", "-j", help="Processes; 0 is one per core.")] = 0,
    file_format: Annotated[Format, typer.Option("--format", help="File format of the copies.")] = Format.png,
    overwrite: Annotated[bool, typer.Option(help="Write into a folder that is not empty.")] = False,
) -> None:
    """Write corrupted copies of an image or a folder of images.

    The pixels depend on the seed, each image's path below SRC, the corruption and its severity: not
    on the number of workers, the order, or the machine. DST/manifest.json lists a SHA-256 for each
    file; 'stormproof verify DST' checks them.

    Examples:

        stormproof corrupt street.jpg foggy.png --corruption fog --severity 3

        stormproof corrupt val2017 val2017-fog --corruption fog --severity 3

        stormproof corrupt val2017 val2017-c --suite imagenet-c --workers 8
    """
    conditions = _conditions(corruption, severity, suite, condition or [])
    if workers < 0:
        raise InvalidOption(f"--workers {workers}: give 0 for one per core, or a number of processes.")
    if source.is_file() and destination.suffix and len(conditions) == 1:
        _one_file(source, destination, conditions[0], seed=seed, overwrite=overwrite)
        return
    _tree(source, destination, conditions, seed, worker_count(workers), f".{file_format}", overwrite)


def _conditions(
    corruption: str | None, severity: int | None, suite: str | None, texts: list[str]
) -> tuple[Condition, ...]:
    from stormproof.condition import Condition
    from stormproof.corruptions import find, find_suite
    from stormproof.corruptions.registry import every_severity

    if sum((corruption is not None, suite is not None, bool(texts))) != 1:
        raise InvalidOption("Say what to do with exactly one of --corruption, --suite or --condition.")
    if severity is not None and corruption is None:
        raise InvalidOption("--severity goes with --corruption; a suite has its own.")
    if suite is not None:
        return find_suite(suite).conditions
    if corruption is not None:
        chosen = find(corruption).name
        return every_severity(chosen) if severity is None else (Condition.of(chosen, severity),)
    return tuple(dict.fromkeys(map(Condition.parse, texts)))


def _one_file(source: Path, destination: Path, condition: Condition, *, seed: int, overwrite: bool) -> None:
    from stormproof.corruptions import corrupt_image
    from stormproof.imagefile import read_image, write_image

    if destination.exists() and not overwrite:
        raise OutputError(f"{destination} exists; give another name, or --overwrite.")
    image = read_image(source)
    write_image(destination, corrupt_image(image, condition, seed=seed, image_id=source.name))
    console.say(f"{destination}: {source.name} under {condition}")


def _tree(
    source: Path,
    destination: Path,
    conditions: tuple[Condition, ...],
    seed: int,
    workers: int,
    suffix: str,
    overwrite: bool,
) -> None:
    from stormproof import corrupted_copies as copies

    jobs = copies.plan(source, destination, conditions, suffix=suffix, seed=seed)
    copies.claim(destination, overwrite=overwrite)
    made: list[copies.Copy] = []
    failed: list[copies.Failure] = []
    with console.progress("images") as bar:
        task = bar.add_task("corrupting", total=len(jobs))
        for result in copies.make_all(jobs, workers=min(workers, len(jobs))):
            if isinstance(result, copies.Failure):
                failed.append(result)
                bar.console.print(f"skipped: {result.reason}", markup=False, soft_wrap=True)
            else:
                made += result
            bar.advance(task)
    copies.write_manifest(destination, seed, made, failed)
    console.say(
        f"{destination}: {len(made)} files of {len(jobs) - len(failed)} images under {len(conditions)} "
        f"conditions; check them with: stormproof verify {destination}"
    )
    if failed:
        some = ", ".join(failure.source for failure in failed[:5]) + (" …" if len(failed) > 5 else "")
        console.fail(f"{len(failed)} of {len(jobs)} images could not be read: {some}")
        raise typer.Exit(1)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DST", help="A folder that 'stormproof corrupt' wrote.")],
) -> None:
    """Check every file of a manifest against its SHA-256.

    Examples:

        stormproof verify val2017-c
    """
    from stormproof import corrupted_copies as copies

    listed = copies.read_manifest(folder)
    problems = []
    with console.progress("files") as bar:
        for copy in bar.track(listed, description="verifying"):
            problem = copies.check(folder, copy)
            if problem:
                problems.append(problem)
    for problem in problems:
        console.fail(problem)
    if problems:
        console.fail(f"{len(problems)} of {len(listed)} files are not what the manifest says.")
        raise typer.Exit(1)
    console.say(f"{folder}: all {len(listed)} files are as the manifest says.")
