"""Datasets made from other datasets: versions of every image, written in several processes, resumable.

Every finished image is a line in `journal.jsonl`, so that a stopped run continues after the last one. At the
end, the format's index files and `manifest.json` are written, and the journal is removed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

from stormproof.core import extensions
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, OutputError, StormproofError
from stormproof.core.files import make_folder, read_text, sha256, sweep_below, write_text
from stormproof.core.processes import spread
from stormproof.core.registry import Registry
from stormproof.core.sample import Context, Sample
from stormproof.corruptions import apply
from stormproof.datasets import WRITERS, find_writer, read_dataset
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.datasets.image_files import image_path
from stormproof.datasets.writing import Destination, Record
from stormproof.tools.manifest import write_manifest

_USUAL_FORMATS = ("coco", "cityscapes")  # for objects, for label maps
JOURNAL = "journal.jsonl"
VERSIONS: Registry[Callable[[str], Version]] = Registry(extensions.VERSIONS)  # by corruption


@dataclass(frozen=True, slots=True)
class Version:
    """An image under a condition, as a run would see it.

    A corruption whose copies need more offers its own kind of version as an entry point.
    """

    condition: str = "clean"

    @property
    def quality(self) -> int | None:
        """The JPEG quality that the version requires, if any."""
        return None

    def check(self, image_ids: Sequence[str], seed: int) -> None:
        """Refuse a version whose own files cannot be read, before anything is written."""

    def make(self, sample: Sample, dataset: Dataset, seed: int) -> Sample:
        """The sample in this version, with its truth."""
        known = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
        return apply(sample, self.condition, seed=seed, **known)

    def style(self, image_id: str, seed: int) -> str | None:
        """The name of the style that the image gets, if the version has styles."""
        return None

    def write_styles(self, out: Path, styles: Mapping[str, tuple[str, ...]], seed: int) -> None:
        """Record the styles of all images, so that they can be used again."""


def version_of(condition: Condition) -> Version:
    """The version for a condition."""
    return VERSIONS.get(condition.corruption or "", Version)(str(condition))


@dataclass(frozen=True, slots=True)
class Part:
    """A dataset to be written: its folder, and the versions of each image that it contains."""

    folder: str  # below the destination; "" is the destination itself
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that decides what is written."""

    data: str
    parts: tuple[Part, ...]
    format: str
    split: str
    suffix: str
    seed: int
    quality: int = 95

    @property
    def versions(self) -> tuple[Version, ...]:
        return tuple(dict.fromkeys(version for part in self.parts for version in part.versions))


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome for one image: a record for each file, or an error."""

    index: int
    id: str
    files: tuple[Record, ...] = ()
    error: str = ""


def choose_format(dataset: Dataset, wanted: str | None, kind: str) -> str:
    """The format asked for; by default the dataset's own if it has a writer, else the first that fits."""
    destination = _destination(dataset, Path())
    if wanted is not None:
        lacking = find_writer(wanted).lacks(destination)
        if lacking:
            raise InvalidOption(f"{dataset.name} cannot be written as {wanted}: {lacking}.")
        return wanted
    usable = [name for name in WRITERS if not find_writer(name).lacks(destination)]
    return next(name for name in (kind, *_USUAL_FORMATS, *usable) if name in usable)


def _destination(
    dataset: Dataset, root: Path, split: str = "", suffix: str = "", quality: int = 95
) -> Destination:
    own = abilities(dataset)
    return Destination(
        root, split, suffix, quality, dataset.classes, dataset.semantic_classes, own.category_ids, own.things
    )


def destination_of(order: Order, part: Part, out: Path) -> Destination:
    """Where and how a part of an order is written."""
    quality = next((version.quality for version in part.versions if version.quality), order.quality)
    return _destination(_open(order.data), out / part.folder, order.split, order.suffix, quality)


@lru_cache(maxsize=2)
def _open(data: str) -> Dataset:
    return read_dataset(data)


def make_image(order: Order, out: Path, index: int) -> Done:
    """Write every version of one image. Errors of the image are returned, not raised."""
    dataset, writer = _open(order.data), find_writer(order.format)
    name = str(dataset.ids[index])
    try:
        sample = dataset[index]
        files = []
        for part in order.parts:
            destination = destination_of(order, part, out)
            for version, stem in zip(part.versions, _file_names(order, part)[index], strict=True):
                # Context is dropped: the right-hand image of a stereo pair would not be corrupted.
                made = replace(version.make(sample, dataset, order.seed), context=Context())
                path, record = writer.write(destination, stem, made)
                files.append({
                    "path": path.relative_to(out).as_posix(),
                    "folder": part.folder,
                    "source": name,
                    "condition": version.condition,
                    "style": version.style(name, order.seed),
                    "sha256": sha256(path),
                    "pixels_sha256": hashlib.sha256(made.image.tobytes()).hexdigest(),
                    "record": record,
                })  # fmt: skip
        return Done(index, name, tuple(files))
    except OutputError:
        raise  # a full disk is not the image's fault
    except StormproofError as error:
        return Done(index, name, error=str(error))


@lru_cache(maxsize=8)
def _file_names(order: Order, part: Part) -> list[list[str]]:
    """The file name, without extension, of every version of every image: no two are the same."""
    dataset = _open(order.data)
    paths = [image_path(dataset, index) for index in range(len(dataset))]
    shared = Counter(path.stem for path in paths if path is not None)
    names = []
    for image_id, path in zip(map(str, dataset.ids), paths, strict=True):
        own = path is not None and shared[path.stem] == 1
        stem = path.stem if path is not None and own else image_id.replace("/", "_")
        names += [f"{stem}{_ending(version, image_id, order.seed, part)}" for version in part.versions]
    several = len(part.versions)
    names = distinct(names)
    return [names[first : first + several] for first in range(0, len(names), several)]


def _ending(version: Version, image_id: str, seed: int, part: Part) -> str:
    """The ending of a file name, if a part contains the image more than once."""
    condition = Condition.parse(version.condition)
    if len(part.versions) == 1 or condition.is_clean:
        return ""
    style = version.style(image_id, seed)
    return f"-{condition.corruption}" if style is None else f"-stylized-{PurePosixPath(style).stem}"


def distinct(names: Sequence[str]) -> list[str]:
    """Number the names that a file system or a format would confuse.

    >>> distinct(["a", "a_b", "A-b"])
    ['a', 'a_b-1', 'A-b-2']
    """
    folded = [name.casefold().replace("_", "-") for name in names]  # Cityscapes writes dashes
    taken = Counter(folded)
    if len(taken) == len(names):
        return list(names)
    return distinct([name if taken[key] == 1 else f"{name}-{k}"
                     for k, (name, key) in enumerate(zip(names, folded, strict=True))])  # fmt: skip


def make_dataset(
    order: Order, out: Path, *, workers: int = 1, advance: Callable[[], None] = lambda: None
) -> tuple[int, list[Done]]:
    """Write the whole dataset; returns the number of files, and the images that failed."""
    ids = _open(order.data).ids
    for version in order.versions:
        version.check(ids, order.seed)
    done = {row.index: row for row in _begin(order, out) if not row.error}
    for _ in done:
        advance()
    missing = [k for k in range(len(ids)) if k not in done]
    failed = []
    with (out / JOURNAL).open("a", encoding="utf-8") as journal:
        for row in spread(partial(make_image, order, out), missing, workers=workers):
            journal.write(json.dumps(asdict(row)) + "\n")
            journal.flush()
            if row.error:
                failed.append(row)
            else:
                done[row.index] = row
            advance()
    rows = [done[k] for k in sorted(done)]
    files = [file for row in rows for file in row.files]
    for part in order.parts:
        records = [file["record"] for file in files if file["folder"] == part.folder]
        find_writer(order.format).finish(destination_of(order, part, out), records)
    listed = [{key: value for key, value in file.items() if key != "record"} for file in files]
    write_manifest(out, {"order": asdict(order)}, listed, [(row.id, row.error) for row in failed])
    _write_styles(order, out, files)
    if not failed:
        (out / JOURNAL).unlink()
    return len(files), failed


def _write_styles(order: Order, out: Path, files: Sequence[Record]) -> None:
    """Have each version record the styles of all images, if there are any."""
    chosen: dict[str, dict[str, None]] = {}
    for file in files:
        if file["style"] is not None:
            chosen.setdefault(file["source"], {})[file["style"]] = None
    if chosen:
        for version in order.versions:
            version.write_styles(out, {name: tuple(styles) for name, styles in chosen.items()}, order.seed)


def _begin(order: Order, out: Path) -> Iterator[Done]:
    """Create the folder, or yield what an earlier run of the same order has finished."""
    journal, settings = out / JOURNAL, json.loads(json.dumps(asdict(order)))
    sweep_below(out)
    if not journal.is_file():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise OutputError(
                f"{out} is not empty and holds no unfinished run of this command; give another folder."
            )
        write_text(make_folder(out) / JOURNAL, json.dumps(settings) + "\n")
        return
    first, *lines = read_text(journal, error=OutputError).splitlines()
    if json.loads(first) != settings:
        raise OutputError(
            f"{out} holds an unfinished run with other options; use the same options, or give another folder."
        )
    for line in lines:
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError:  # the last line of a run that was killed
            continue
        if all((out / file["path"]).is_file() for file in row["files"]):
            yield Done(row["index"], row["id"], tuple(row["files"]), row["error"])
