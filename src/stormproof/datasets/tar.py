"""Tar archives in WebDataset's layout: members whose names agree up to the first dot are one sample.

`key.jpg` (or .png …) is the image, `key.json` its objects in COCO's terms, `key.semantic.png` its label map.
Nothing is unpacked: members are read in place, and members that could do harm if unpacked are refused.
"""

from __future__ import annotations

import glob
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from stormproof.core.errors import DatasetError
from stormproof.core.files import expand, locate, open_regular, parse_json
from stormproof.core.identity import blake2b, to_json
from stormproof.core.imagefile import AS_STORED, IMAGE_SUFFIXES, PixelRules
from stormproof.core.sample import Instances, SemanticMap, Truth
from stormproof.datasets.annotations import IGNORE, identity_table, read_classes, read_label_map, semantic_map
from stormproof.datasets.coco import index_annotations
from stormproof.datasets.dataset import READERS, FileDataset, Labels, source_size

MAX_MEMBER_BYTES = 1 << 28  # 256 MiB, far more than any photograph
_SEMANTIC = ("semantic.png", "seg.png", "mask.png")


@dataclass(frozen=True)
class Member:
    """Where a file lies inside an archive."""

    archive: Path
    name: str
    offset: int
    size: int

    @property
    def path(self) -> None:
        return None

    def read(self) -> bytes:
        with open_regular(self.archive) as file:
            file.seek(self.offset)
            content = file.read(self.size)
        if len(content) != self.size:
            raise DatasetError(self.archive, "is truncated.", self.name)
        return content

    def __str__(self) -> str:
        return f"{self.archive}, {self.name}"


@READERS.declare("tar")
def open_tar(main: str, *, classes: str | None = None, semantic_classes: str | None = None) -> TarDataset:
    """Open one archive, a pattern (`val-*.tar`) or a range (`val-{0000..0009}.tar`).

    `classes` and `semantic_classes` are text files of one name per line. By default, the classes are
    the category names that occur, in alphabetical order.
    """
    archives = _archives(main)
    samples: dict[str, dict[str, Member]] = {}
    for archive in archives:
        for member in _members(archive):
            key, ending = _split(member)
            if ending in samples.setdefault(key, {}):
                raise DatasetError(archive, f"{key}.{ending} occurs twice.", member.name)
            samples[key][ending] = member
    images = {key: _image(key, parts) for key, parts in samples.items()}
    if not images:
        raise DatasetError(archives[0], "contains no members.")
    labels = {key: parts["json"] for key, parts in samples.items() if "json" in parts}
    maps = {key: parts[e] for key, parts in samples.items() for e in _SEMANTIC if e in parts}
    beside = archives[0].parent
    names = read_classes(locate(classes, beside)) if classes else _categories_seen(labels)
    areas = read_classes(locate(semantic_classes, beside)) if semantic_classes else ()
    if maps and not areas:
        problem = "contains label maps; name their classes with semantic_classes=FILE, one per line."
        raise DatasetError(archives[0], problem)
    members = tuple(images.values())
    objects, planes = (tuple(map(beside_image.get, samples)) for beside_image in (labels, maps))
    return TarDataset(
        name=archives[0].stem, root=beside, ids=tuple(samples), images=members, classes=names,
        semantic_classes=areas, labels=TarLabels(tuple(samples), members, objects, planes, names, areas),
    )  # fmt: skip


@dataclass(frozen=True)
class TarLabels(Labels):
    """What the members beside each image say."""

    ids: tuple[str, ...]
    images: tuple[Member, ...]
    objects: tuple[Member | None, ...]
    maps: tuple[Member | None, ...]
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...]
    rules: PixelRules = AS_STORED

    def truth(self, index: int) -> Truth:
        return Truth(self._instances(index), self._semantic(index))

    def _instances(self, index: int) -> Instances | None:
        if not self.classes:
            return None
        key, member = self.ids[index], self.objects[index]
        rows = [] if member is None else _annotations(member)
        number = {name: i for i, name in enumerate(self.classes)}
        records = [
            {"id": i, **row, "image_id": key, "category_id": number.get(_category(row), _category(row))}
            for i, row in enumerate(rows)
        ]
        height, width = source_size(self.images[index], self.rules)
        image = {"id": key, "height": height, "width": width}
        where = Path(str(member)) if member else Path(key)
        table = index_annotations(records, [image], range(len(self.classes)), where, masks=True)
        return table.truth(0).instances

    def _semantic(self, index: int) -> SemanticMap | None:
        member = self.maps[index]
        if member is None:
            return None
        numbers = read_label_map(member.read(), str(member))
        return semantic_map(numbers, identity_table(self.semantic_classes, IGNORE), member)


@dataclass(frozen=True, kw_only=True, eq=False)
class TarDataset(FileDataset):
    """Images and labels inside tar archives."""

    labels: TarLabels

    @cached_property
    def fingerprint(self) -> str:
        files = [[name, image.name] for name, image in zip(self.ids, self.images, strict=True)]
        identity: list[object] = [self.classes, self.semantic_classes, files]
        if self.rules != AS_STORED:
            identity.append(self.rules.identity())
        total = blake2b(to_json(identity).encode(), digest_size=16)
        for member in filter(None, (*self.labels.objects, *self.labels.maps)):
            total.update(member.name.encode() + b"\0" + blake2b(member.read()).digest())
        return total.hexdigest()


def _archives(main: str) -> list[Path]:
    """The archives that a path, a pattern or a numeric range names, in order."""
    span = re.search(r"\{(\d{1,9})\.\.(\d{1,9})\}", main)
    if span:
        width = len(span[1])
        numbers = range(int(span[1]), int(span[2]) + 1)
        return [locate(f"{main[: span.start()]}{n:0{width}d}{main[span.end() :]}") for n in numbers]
    if glob.has_magic(main):
        paths = sorted(Path(path) for path in glob.glob(str(expand(main))))  # noqa: PTH207
        if not paths:
            raise DatasetError(main, "matches no archive.")
        return paths
    return [locate(main)]


def _members(archive: Path) -> Iterator[Member]:
    """The files in an archive; members that point outside it, or at another member, are refused."""
    try:
        # Uncompressed only: members are read in place.
        with open_regular(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for entry in tar:
                if entry.isdir():
                    continue
                _refuse_harm(entry, archive)
                yield Member(archive, entry.name, entry.offset_data, entry.size)
    except DatasetError:
        raise
    except (tarfile.TarError, OSError, ValueError, OverflowError) as error:
        fix = "it must be an uncompressed tar; unpack .tar.gz with gunzip first"
        raise DatasetError(archive, f"cannot be read ({error}); {fix}.") from None


def _refuse_harm(entry: tarfile.TarInfo, archive: Path) -> None:
    path = PurePosixPath(entry.name)
    if path.is_absolute() or ".." in path.parts or "\\" in entry.name:
        raise DatasetError(
            archive, "has a name that leads out of the archive; such members are refused.", entry.name
        )
    if not entry.isreg() or entry.issparse():
        raise DatasetError(
            archive, "is a link, device or sparse file; only plain files are read.", entry.name
        )
    if entry.size > MAX_MEMBER_BYTES:
        problem = f"has {entry.size} bytes; the limit is {MAX_MEMBER_BYTES}."
        raise DatasetError(archive, problem, entry.name)


def _split(member: Member) -> tuple[str, str]:
    """The sample key and ending of a member: the parts before and after the first dot of its file name."""
    path = PurePosixPath(member.name)
    stem, dot, ending = path.name.partition(".")
    if not dot or not stem:
        raise DatasetError(
            member.archive, "has no key and ending; members are named key.jpg, key.json ….", member.name
        )
    return (path.parent / stem).as_posix(), ending.lower()


def _image(key: str, parts: Mapping[str, Member]) -> Member:
    images = [parts[ending] for ending in parts if f".{ending}" in IMAGE_SUFFIXES]
    if len(images) != 1:
        archive = next(iter(parts.values())).archive
        problem = f"has {len(images)} images ({', '.join(parts)}); every sample needs one."
        raise DatasetError(archive, problem, f"sample {key!r}")
    return images[0]


def _annotations(member: Member) -> list[Any]:
    content = parse_json(member.read(), member)
    rows = content.get("annotations") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DatasetError(member, "must be a list of objects, or contain one as 'annotations'.")
    return rows


def _category(row: Mapping[str, Any]) -> Any:
    """An object's class: a name ('category') or a number ('category_id')."""
    return row.get("category", row.get("category_id"))


def _categories_seen(labels: Mapping[str, Member]) -> tuple[str, ...]:
    seen: set[str] = set()
    for member in labels.values():
        for i, row in enumerate(_annotations(member)):
            name = _category(row)
            if not isinstance(name, str):
                fix = "give the names with classes=FILE, one per line"
                raise DatasetError(member, f"category {name!r} is not a name; {fix}.", f"object {i}")
            seen.add(name)
    return tuple(sorted(seen))
