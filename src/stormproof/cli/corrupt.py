"""`stormproof corrupt`: corrupted copies of images or datasets; `trainset`: training sets of such copies."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import (
    Derived,
    ImageFormat,
    Images,
    Layout,
    Original,
    Styles,
    Workers,
    chosen_conditions,
    complete_datasets,
    is_dataset,
)
from stormproof.cli.settings import Conditions, Seed
from stormproof.core.errors import InvalidOption, OutputError, counted, first_few
from stormproof.core.processes import worker_count

if TYPE_CHECKING:
    from stormproof.core.condition import Condition
    from stormproof.tools.derived import Order


class PixelFormat(StrEnum):
    png = "png"
    jpg = "jpg"
    bmp = "bmp"


class Mix(StrEnum):
    standard = "standard"
    stylized = "stylized"
    combined = "combined"
    corrupted = "corrupted"


@app.command()
def corrupt(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="An image, a folder tree of images, or a dataset such as coco:FILE,images=DIR.",
            autocompletion=complete_datasets,
        ),
    ],
    destination: Annotated[
        Path | None, typer.Argument(metavar="[DST]", help="A new folder; for one image, also a file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DST", help="The same, as in other verbs.")
    ] = None,
    conditions: Conditions = None,
    seed: Seed = 0,
    workers: Workers = 0,
    file_format: Annotated[
        PixelFormat | None,
        typer.Option("--format", help="Format of the image files in a folder. Default: png."),
    ] = None,
    layout: Layout = None,
    overwrite: Annotated[bool, typer.Option(help="Write into a folder that is not empty.")] = False,
    device: Annotated[
        str | None,
        typer.Option(help="Corrupt in batches on this device: cuda, cuda:1, cpu. The pixels are the same."),
    ] = None,
) -> None:
    """Write corrupted copies of an image, a folder of images, or a dataset with its annotations.

    The pixels depend on the seed, each image's path below SRC, the corruption and its severity, not on the
    number of workers, the order, the device or the machine. DST/manifest.json lists a SHA-256 for each file;
    'stormproof verify DST' checks them. Haze and defocus need depth: give a dataset that has it.

    For a dataset, the copies are what a run would see, and annotations move where a corruption moves
    objects. Each condition becomes a dataset, and how to open it is printed.

    Examples:

        stormproof corrupt street.jpg --conditions fog@3 --out foggy.png

        stormproof corrupt val2017 --conditions fog@1-3,snow --out val2017-fog

        stormproof corrupt val2017 val2017-c --conditions imagenet-c --workers 8

        stormproof corrupt val2017 val2017-c --conditions imagenet-c --device cuda

        stormproof corrupt images:left,depth=depth hazy --conditions haze@1-3

        stormproof corrupt val2017 storm --conditions fog@2+gaussian_noise@1+jpeg_compression@2

        stormproof corrupt coco:val.json,images=val2017 warped --conditions geometric_distortion@3
    """
    from stormproof.corruptions.chain import order_doubts

    destination = _destination(destination, out)
    chosen = chosen_conditions(conditions)
    if doubt := order_doubts(chosen):
        console.warn(doubt)
    suffix = f".{file_format or PixelFormat.png}"
    if is_dataset(source):
        if overwrite:
            raise InvalidOption(
                "--overwrite: a dataset is written to a new folder, or continued in an unfinished one."
            )
        if device is not None:
            raise InvalidOption(
                f"--device {device}: a dataset is copied on the CPU; give its images' folder."
            )
        _dataset(source, destination, chosen, seed, worker_count(workers), suffix, layout)
        return
    if layout is not None:
        raise InvalidOption(f"--layout {layout}: {source} has no annotations; give a dataset, as coco:FILE.")
    _check_images_alone(chosen, device)
    path = Path(source)
    if path.is_file() and destination.suffix and not destination.is_dir():
        _check_one_file(destination, chosen, file_format)
    if path.is_file() and destination.suffix and len(chosen) == 1:
        _one_file(path, destination, chosen[0], seed=seed, overwrite=overwrite, device=device)
        return
    _tree(path, destination, chosen, seed, worker_count(workers), suffix, overwrite, device)


def _destination(given: Path | None, out: Path | None) -> Path:
    if given is not None and out is not None:
        raise InvalidOption(f"{given} and --out {out}: name one destination.")
    if given is None and out is None:
        raise InvalidOption("No destination given; name a new folder, or for one image a file, with --out.")
    return given or out or Path()


def _check_one_file(destination: Path, conditions: tuple[Condition, ...], given: PixelFormat | None) -> None:
    """Refuse what contradicts the name of an image file: several conditions, or another format."""
    from stormproof.core.imagefile import IMAGE_SUFFIXES

    suffix = destination.suffix.lower()
    if suffix not in IMAGE_SUFFIXES:
        return
    if len(conditions) > 1:
        raise InvalidOption(
            f"{destination} is the name of one image, but {len(conditions)} conditions are given; name a "
            f"folder, such as {destination.with_suffix('')}."
        )
    if given is not None and f".{given}" != suffix.replace("jpeg", "jpg"):
        named = destination.with_suffix(f".{given}")
        raise InvalidOption(f"--format {given}: {destination} is named otherwise; name it {named}.")


def _check_images_alone(conditions: tuple[Condition, ...], device: str | None) -> None:
    """Refuse conditions that the device cannot make, and warn about those that move objects: images alone
    have no annotations to move with them."""
    from stormproof.corruptions.chain import moves_labels

    if device is not None:
        from stormproof.corruptions.on_device import check_device, check_on_device

        check_device(device)
        for condition in conditions:
            check_on_device(condition)
    moving = [str(condition) for condition in conditions if moves_labels(condition)]
    if moving:
        console.warn(
            f"{', '.join(moving)} moves objects: annotations of these images will not fit the copies. "
            "To move the annotations too, give the dataset, such as coco:FILE,images=DIR."
        )


def _dataset(
    spec: str,
    destination: Path,
    conditions: tuple[Condition, ...],
    seed: int,
    workers: int,
    suffix: str,
    layout: str | None,
) -> None:
    """Write each condition as a dataset: images, and the truth that a run would be scored against."""
    from stormproof.core.spec import Spec
    from stormproof.datasets import read_dataset
    from stormproof.datasets.copies import condition_folder
    from stormproof.engine.checks import require_possible
    from stormproof.tools.derived import Order, Part, choose_format, version_of

    opened = read_dataset(spec)
    require_possible(opened, conditions, images=len(opened), seed=seed)
    chosen = choose_format(opened, layout, Spec.parse(spec).kind)
    alone = len(conditions) == 1
    parts = [Part("" if alone else condition_folder(c), (version_of(c),)) for c in conditions]
    order = Order(spec, tuple(parts), chosen, "val", suffix, seed)
    write_dataset(order, destination, workers, "corrupting")


def _one_file(
    source: Path, destination: Path, condition: Condition, *, seed: int, overwrite: bool, device: str | None
) -> None:
    from stormproof.core.imagefile import read_image, write_image
    from stormproof.corruptions import corrupt_image

    if destination.exists() and not overwrite:
        raise OutputError(f"{destination} exists; give another name, or --overwrite.")
    image = read_image(source)
    if device is None:
        corrupted = corrupt_image(image, condition, seed=seed, image_id=source.name)
    else:
        from stormproof.corruptions.on_device import corrupt_images

        [corrupted] = corrupt_images([image], condition, ids=[source.name], seed=seed, device=device)
    write_image(destination, corrupted)
    console.say(f"{destination}: {source.name} under {condition}")


def _tree(
    source: Path,
    destination: Path,
    conditions: tuple[Condition, ...],
    seed: int,
    workers: int,
    suffix: str,
    overwrite: bool,
    device: str | None,
) -> None:
    from stormproof.tools import corrupted_copies as copies
    from stormproof.tools.manifest import Copy, write_manifest

    jobs = copies.plan(source, destination, conditions, suffix=suffix, seed=seed)
    copies.claim(destination, overwrite=overwrite)
    workers = min(workers, len(jobs))
    if device is None:
        results = copies.make_all(jobs, workers=workers)
    else:
        results = copies.make_all_on_device(jobs, workers=workers, device=device)
    made: list[Copy] = []
    failed: list[copies.CopyFailure] = []
    with console.progress("corrupting", len(jobs)) as progress:
        for result in progress.track(results):
            if isinstance(result, copies.CopyFailure):
                failed.append(result)
                progress.say(f"skipped: {result.reason}")
            else:
                made += result
    # sorted, so that equal runs give equal manifests
    files = [asdict(copy) for copy in sorted(made, key=lambda copy: copy.path)]
    write_manifest(destination, {"seed": seed}, files, sorted((one.source, one.reason) for one in failed))
    console.say(
        f"{destination}: {counted(len(made), 'file')} of {counted(len(jobs) - len(failed), 'image')} under "
        f"{counted(len(conditions), 'condition')}; check them with: stormproof verify {destination}"
    )
    if failed:
        names = first_few([failure.source for failure in failed])
        console.fail(f"{len(failed)} of {len(jobs)} images could not be read: {names}")
        raise typer.Exit(1)


@app.command()
def trainset(
    dataset: Original,
    out: Derived,
    mix: Annotated[Mix, typer.Option(help="What the training set consists of.")] = Mix.combined,
    corruption: Annotated[
        str | None, typer.Option("--condition", help="With --mix corrupted: the condition, e.g. fog@3.")
    ] = None,
    styles: Styles = "built-in",
    alpha: Annotated[float, typer.Option(help="Strength of stylization, 0 to 1.")] = 1.0,
    network: Annotated[str, typer.Option(help="The style network.")] = "built-in",
    layout: Layout = None,
    split: Annotated[str, typer.Option(help="The name of the split.")] = "train",
    image_format: ImageFormat = Images.png,
    seed: Annotated[int, typer.Option(help="A different seed gives different styles and noise.")] = 0,
    workers: Workers = 0,
) -> None:
    """Write a training set that a trainer can use directly.

    standard is the unchanged dataset; stylized has every image in the style of another; combined has both
    (michaelis 2019); corrupted has every image clean and under one condition (kamann 2020, section 6).

    Examples:

        stormproof trainset coco:instances_train2017.json,images=train2017 --mix combined --out train-combined

        stormproof trainset world:train,count=900 --mix corrupted --condition fog@3 --layout yolo --out foggy
    """
    from stormproof.core.spec import Spec
    from stormproof.datasets import read_dataset
    from stormproof.tools.derived import Order, Part, choose_format
    from stormproof.tools.mixes import versions_of

    versions = versions_of(mix.value, condition=corruption, styles=styles, alpha=alpha, network=network)
    chosen = choose_format(read_dataset(dataset), layout, Spec.parse(dataset).kind)
    order = Order(dataset, (Part("", versions),), chosen, split, f".{image_format.value}", seed)
    write_dataset(order, out, worker_count(workers), mix.value)


def write_dataset(order: Order, out: Path, workers: int, verb: str) -> None:
    """Make a derived dataset; list failed images at the end and exit with code 1."""
    from stormproof.datasets import find_writer, read_dataset
    from stormproof.tools.derived import destination_of, make_dataset

    count = len(read_dataset(order.data).ids)
    with console.progress(verb, count) as progress:
        files, failed = make_dataset(order, out, workers=min(workers, count), advance=progress.advance)
    console.say(
        f"{out}: {counted(files, 'file')} of {counted(count - len(failed), 'image')}, as {order.format}"
    )
    console.say(f"check it with: stormproof verify {out}")
    writer, destinations = find_writer(order.format), [destination_of(order, p, out) for p in order.parts]
    for destination in destinations:
        console.say(f"open it with: {writer.spec(destination)}")
    dropped = writer.drops(destinations[0])
    if dropped:
        console.warn(f"{order.format} has no place for {dropped}, so these were left out.")
    for row in failed[:5]:
        console.fail(f"{row.id}: {row.error}")
    if failed:
        console.fail(f"{len(failed)} of {count} images failed; the same command tries them again.")
        raise typer.Exit(1)
