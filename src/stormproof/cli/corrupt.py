"""`stormproof corrupt`: corrupted copies on disk."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Conditions, Suite, chosen_conditions
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
    conditions: Conditions = None,
    suite: Suite = None,
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

        stormproof corrupt street.jpg foggy.png --conditions fog@3

        stormproof corrupt val2017 val2017-fog --conditions fog@1-3,snow

        stormproof corrupt val2017 val2017-c --conditions imagenet-c --workers 8
    """
    chosen = chosen_conditions(conditions, suite)
    if workers < 0:
        raise InvalidOption(f"--workers {workers}: give 0 for one per core, or a number of processes.")
    if source.is_file() and destination.suffix and len(chosen) == 1:
        _one_file(source, destination, chosen[0], seed=seed, overwrite=overwrite)
        return
    _tree(source, destination, chosen, seed, worker_count(workers), f".{file_format}", overwrite)


def _one_file(source: Path, destination: Path, condition: Condition, *, seed: int, overwrite: bool) -> None:
    from stormproof.corruptions import corrupt_image
    from stormproof.imagefile import read_image, write_image

    if destination.exists() and not overwrite:
        raise OutputError(f"{destination} exists; give another name, or --overwrite.")
    console.announce_compiling()
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
