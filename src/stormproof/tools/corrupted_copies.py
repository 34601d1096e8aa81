"""Corrupted copies of image files: a tree of images in, a tree of images and a manifest out.

Stormproof itself corrupts on the fly; the copies are for other tools.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption, OutputError
from stormproof.core.files import make_folder, sha256, sweep_below
from stormproof.core.imagefile import IMAGE_SUFFIXES, read_image, write_image
from stormproof.core.processes import spread
from stormproof.core.sample import Image
from stormproof.corruptions import corrupt_image
from stormproof.corruptions.chain import check_alone
from stormproof.datasets.annotations import list_images
from stormproof.datasets.copies import condition_folder
from stormproof.tools.manifest import Copy

BATCH = 64  # images on a device at a time


@dataclass(frozen=True, slots=True)
class Job:
    """One source image and the files to be made from it."""

    source: Path
    image_id: str
    outputs: tuple[tuple[str, str], ...]  # (condition, path below the destination)
    destination: Path
    seed: int


@dataclass(frozen=True, slots=True)
class CopyFailure:
    """A source that could not be read."""

    source: str
    reason: str


def find_images(source: Path) -> list[Path]:
    """The image files below a folder in a stable order; or the one file given."""
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise InvalidOption(f"{source} does not exist; give an image or a folder of images.")
    paths = sorted(list_images(source))
    if not paths:
        raise InvalidOption(f"{source} contains no images ({', '.join(sorted(IMAGE_SUFFIXES))}).")
    return paths


def plan(
    source: Path, destination: Path, conditions: Sequence[Condition], *, suffix: str, seed: int
) -> list[Job]:
    """The files to be made from each image. Several conditions get a folder each; one mirrors the tree."""
    for condition in conditions:
        check_alone(condition)  # errors must not wait for a worker
    root = source.parent if source.is_file() else source
    places = [image.relative_to(root) for image in find_images(source)]
    alike = Counter(place.with_suffix("") for place in places)
    folders = [(str(c), f"{condition_folder(c)}/" if len(conditions) > 1 else "") for c in conditions]
    jobs, taken = [], dict[Path, Path]()
    for place in places:
        unique = alike[place.with_suffix("")] == 1
        # a.jpg and a.png would both become a.png; such names keep their extension
        target = place.with_suffix(suffix) if unique else place.with_name(place.name + suffix)
        if taken.setdefault(target, place) != place:
            both = f"{taken[target]} and {place}"
            raise InvalidOption(f"{source}: {both} would both become {target}; rename one of them.")
        outputs = tuple((c, f"{folder}{target.as_posix()}") for c, folder in folders)
        jobs.append(Job(root / place, place.as_posix(), outputs, destination, seed))
    return jobs


def claim(destination: Path, *, overwrite: bool) -> None:
    """Create the destination folder; a folder that is not empty is refused."""
    try:
        if destination.exists() and not destination.is_dir():
            raise OutputError(f"{destination} is a file; give a folder.")
        if destination.is_dir() and any(destination.iterdir()) and not overwrite:
            raise OutputError(f"{destination} is not empty; give another folder, or --overwrite.")
        make_folder(destination)
        sweep_below(destination)
        if not os.access(destination, os.W_OK):
            raise OutputError(f"{destination} is not writable; check its permissions.")
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"Cannot create {destination}: {error.strerror}.") from error


def make(job: Job) -> list[Copy] | CopyFailure:
    """Read one image and write all its copies."""
    image = _read(job)
    if isinstance(image, CopyFailure):
        return image
    identity: dict[str, Any] = {"seed": job.seed, "image_id": job.image_id}
    return [_write(job, corrupt_image(image, c, **identity), c, path) for c, path in job.outputs]


def _write(job: Job, corrupted: Image, condition: str, path: str) -> Copy:
    target = job.destination / path
    make_folder(target.parent)
    write_image(target, corrupted)
    pixels = hashlib.sha256(corrupted.tobytes()).hexdigest()
    return Copy(path, job.image_id, condition, sha256(target), pixels)


def make_all(jobs: Sequence[Job], *, workers: int) -> Iterator[list[Copy] | CopyFailure]:
    """The result of every job as it finishes; the pixels do not depend on `workers`."""
    return spread(make, jobs, workers=workers)


def make_all_on_device(
    jobs: Sequence[Job], *, workers: int, device: str
) -> Iterator[list[Copy] | CopyFailure]:
    """The same files, corrupted in batches on a device; threads read and write them."""
    from stormproof.corruptions.on_device import corrupt_images  # loads torch

    queue = iter(jobs)
    with ThreadPoolExecutor(workers) as threads:
        while batch := list(islice(queue, BATCH)):
            read = list(threads.map(_read, batch))
            yield from (outcome for outcome in read if isinstance(outcome, CopyFailure))
            good = [job for job, image in zip(batch, read, strict=True) if not isinstance(image, CopyFailure)]
            images = [image for image in read if not isinstance(image, CopyFailure)]
            ids, seed = [job.image_id for job in good], batch[0].seed
            made: list[list[Copy]] = [[] for _ in good]
            for place, (condition, _) in enumerate(batch[0].outputs):
                corrupted = corrupt_images(images, condition, ids=ids, seed=seed, device=device)
                paths = [job.outputs[place][1] for job in good]
                written = threads.map(_write, good, corrupted, repeat(condition), paths)
                for copies, copy in zip(made, written, strict=True):
                    copies.append(copy)
            yield from made


def _read(job: Job) -> Image | CopyFailure:
    try:
        return read_image(job.source)
    except InvalidImage as error:
        return CopyFailure(job.image_id, str(error))
