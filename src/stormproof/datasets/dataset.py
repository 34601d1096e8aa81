"""The interface of a dataset, datasets of image files, and datasets for use from Python."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, get_args, get_type_hints, runtime_checkable

import numpy as np

from stormproof.core import extensions
from stormproof.core.errors import DatasetError, InvalidImage, InvalidOption
from stormproof.core.federated import Federated
from stormproof.core.files import is_file, open_regular, read_bytes
from stormproof.core.identity import blake2b, file_digest, to_json
from stormproof.core.imagefile import (
    AS_STORED,
    MAX_BYTES,
    PixelRules,
    image_size,
    read_image,
    require_nvjpeg,
)
from stormproof.core.randomness import Frame
from stormproof.core.registry import Registry
from stormproof.core.sample import Image, Instances, Ints, Sample, Truth
from stormproof.core.spec import OBJECT, local_object
from stormproof.core.wrapper import Described

READERS: Registry[Callable[..., Any]] = Registry(
    extensions.DATASETS, "stormproof.datasets", order=lambda opener: opener.__module__
)
_MEMBERS = (
    "name", "ids", "classes", "semantic_classes", "fingerprint", "truth", "size", "__len__", "__getitem__",
)  # fmt: skip


@runtime_checkable
class Dataset(Described, Protocol):
    """Anything with these members is a dataset; there is no base class and no registration.

    `fingerprint` is a hash of annotations and file list: equal fingerprints mean equal truth. Indexing
    decodes one image; `truth` and `size` read image files only if the format leaves no other way.
    """

    @property
    def ids(self) -> Sequence[str]: ...

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Sample: ...
    def truth(self, index: int) -> Truth: ...
    def size(self, index: int) -> tuple[int, int]:
        """Height and width."""
        ...


def missing_members(dataset: object) -> list[str]:
    """The members of `Dataset` that an object lacks. None is evaluated: a fingerprint takes time."""
    nothing = object()
    return [name for name in _MEMBERS if inspect.getattr_static(dataset, name, nothing) is nothing]


class Source(Protocol):
    """Where an image comes from: a local file, a member of an archive, an object in a store."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> Path | None:
        """The local file; None if it is none."""
        ...

    def read(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class LocalFile:
    """An image file on this machine."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def read(self) -> bytes:
        return read_bytes(self.path, at_most=MAX_BYTES, error=InvalidImage)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a dataset may offer beyond `Dataset`, and what holds where it does not.

    A dataset offers an ability by having a member of that name; `abilities` is the only place that looks.
    """

    root: Path | None = None  # the folder that relative paths in options start from
    image_source: Callable[[int], Source | None] = lambda index: None
    read_file: Callable[[int], tuple[Sample, bytes]] | None = None  # a sample without truth, and its file
    context_files: Callable[[int], tuple[Path, ...]] | None = None  # the files behind an image's context
    all_objects: Callable[[], tuple[Ints, Instances] | None] = lambda: None  # of all images, if faster
    frames: Mapping[str, Frame] = field(default_factory=dict)  # of images that belong to clips, by id
    groups: Mapping[str, str] = field(default_factory=dict)  # of images that are not independent, by id
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of images: name → id → value
    category_ids: tuple[int, ...] = ()  # the numbers of the classes in the format's own files
    things: tuple[str, ...] = ()  # semantic classes with countable objects, if these are not `classes`
    federated: Federated | None = None  # if images were searched for some classes only
    rules: PixelRules | None = None  # how image files are read
    thread_safe: bool = False  # whether several threads may read images at the same time
    depth_remark: str = ""  # a caveat about its depth, for readers of haze and defocus scores


_ABILITIES = tuple(one.name for one in fields(Abilities))


def abilities(dataset: object) -> Abilities:
    """What a dataset offers beyond `Dataset`.

    >>> abilities(SampleDataset.of([])).category_ids
    ()
    """
    return Abilities(**{name: getattr(dataset, name) for name in _ABILITIES if hasattr(dataset, name)})


def source_size(source: Source, rules: PixelRules) -> tuple[int, int]:
    """Height and width of an image; of a local file, only the header is read."""
    return image_size(source.path or source.read(), str(source), rules)


class Labels(Protocol):
    """What a format knows about each image; everything else is the same for all formats."""

    def truth(self, index: int) -> Truth: ...
    def size(self, index: int) -> tuple[int, int] | None:
        """Height and width, or None if only the image file knows."""
        return None


class NoLabels(Labels):
    """Images without truth."""

    def truth(self, index: int) -> Truth:
        return Truth()


@dataclass(frozen=True, kw_only=True, eq=False)
class FileDataset:
    """Image files, each decoded when it is indexed.

    `root` is None where no folder of this machine holds them, as in a store. `sources` are the annotation
    files; the fingerprint covers their bytes, the class names and the ids. `variant` names the options that
    change the truth read from the same files. `Abilities` says what the others mean.
    """

    name: str
    root: Path | None = None
    ids: tuple[str, ...]
    images: tuple[Path | Source, ...]
    labels: Labels = field(default_factory=NoLabels)
    sources: tuple[Path, ...] = ()
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    category_ids: tuple[int, ...] = ()
    things: tuple[str, ...] = ()
    federated: Federated | None = None
    variant: str = ""
    rules: PixelRules = AS_STORED
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    frames: Mapping[str, Frame] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    thread_safe: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        truth = self.truth(index)
        return replace(self.read_file(index)[0], truth=truth)

    def read_file(self, index: int) -> tuple[Sample, bytes]:
        """The sample without its truth, and the file that it was decoded from."""
        index = range(len(self))[index]
        image, stored = self._image(index)
        name, maps = self.ids[index], self.semantic_classes
        return in_clip(Sample(name, image, classes=self.classes, semantic_classes=maps), self.frames), stored

    def truth(self, index: int) -> Truth:
        return self.labels.truth(range(len(self))[index])

    def all_objects(self) -> tuple[Ints, Instances] | None:
        """The objects of all images, each with its image's index; None if this would not be faster."""
        every = getattr(self.labels, "all_objects", None)
        return None if every is None else every()

    def image_source(self, index: int) -> Source:
        image = self.images[index]
        return LocalFile(image) if isinstance(image, Path) else image

    def size(self, index: int) -> tuple[int, int]:
        index = range(len(self))[index]
        return self.labels.size(index) or source_size(self.image_source(index), self.rules)

    def _image(self, index: int) -> tuple[Image, bytes]:
        source, record = self.image_source(index), f"image {self.ids[index]!r}"
        if source.path is not None and not is_file(source.path):
            raise DatasetError(source, "no such image file; check the images folder.", record)
        stored = source.read()
        image = read_image(stored, str(source), rules=self.rules)
        stated, size = self.labels.size(index), (image.shape[0], image.shape[1])
        if stated is not None and stated != size:
            problem = f"the image is {size} (height, width), but its annotation says {stated}."
            if self.rules.exif == "ignore" and stated == source_size(
                source, replace(self.rules, exif="apply")
            ):
                problem += " It was labelled after rotation by its orientation tag: add exif=apply."
            raise DatasetError(source, problem, record)
        return image, stored

    @cached_property
    def fingerprint(self) -> str:
        files = [[name, path.name] for name, path in zip(self.ids, self.images, strict=True)]
        identity: list[object] = [
            self.variant, self.classes, self.semantic_classes, self.category_ids, files
        ]  # fmt: skip
        if self.rules != AS_STORED:
            identity.append(self.rules.identity())
        if self.frames:
            identity.append(frames_identity(self.frames))
        return fingerprint_of(to_json(identity).encode(), self.sources)


def in_clip(sample: Sample, frames: Mapping[str, Frame]) -> Sample:
    """The sample with its sequence and time, if it belongs to a clip."""
    frame = frames.get(sample.id)
    return sample if frame is None else replace(sample, sequence=frame.sequence, time=frame.time)


def frames_identity(frames: Mapping[str, Frame]) -> list[object]:
    """Clips as part of a fingerprint: corrupted pixels depend on sequences and times."""
    return [[frame.id, frame.sequence, frame.time] for frame in frames.values()]


def identity_of(dataset: Dataset, index: int) -> str | Frame:
    """The key of an image's random numbers: its id, or its frame if it belongs to a clip."""
    name = dataset.ids[index]
    return abilities(dataset).frames.get(name, name)


def thing_classes(dataset: Dataset) -> tuple[str, ...]:
    """The semantic classes that have countable objects: those that the dataset states, else those that are
    also classes of its objects. All others are stuff, such as road and sky."""
    stated = abilities(dataset).things or dataset.classes
    return tuple(name for name in dataset.semantic_classes if name in stated)


def fingerprint_of(identity: bytes, sources: Iterable[Path]) -> str:
    """A hash, in 32 hexadecimal digits, of `identity` and the names and bytes of the annotation files."""
    total = blake2b(identity, digest_size=16)
    for path in sources:
        with open_regular(path) as file:
            content = file_digest(file, blake2b).digest()
        total.update(os.fsencode(path.name) + b"\0" + content)
    return total.hexdigest()


_CHOICES = {name: get_args(kind) for name, kind in get_type_hints(PixelRules).items()}


def with_pixel_rules(
    dataset: Dataset,
    *,
    exif: str | None = None,
    alpha: str | None = None,
    bits: int | None = None,
    decode: str | None = None,
) -> Dataset:
    """The dataset, with rules for reading its image files; docs/datasets.md explains them."""
    given = {"exif": exif, "alpha": alpha, "bits": bits, "decode": decode}
    rules = {name: value for name, value in given.items() if value is not None}
    for name, value in rules.items():
        if value not in _CHOICES[name]:
            raise InvalidOption(f"{name}={value}: choose one of {', '.join(map(str, _CHOICES[name]))}.")
    if not _takes_rules(dataset):
        raise InvalidOption(
            f"{', '.join(rules)}: {dataset.name} has no image files, so these options do not apply."
        )
    if decode == "nvjpeg":
        require_nvjpeg()
        if exif == "apply":
            raise InvalidOption("exif=apply: nvJPEG cannot rotate images; drop decode=nvjpeg.")
    chosen = PixelRules(**rules, exif_stated=exif is not None)  # type: ignore[arg-type]  # checked above
    ruled: Dataset = _with_rules(dataset, chosen)
    return ruled


def _takes_rules(value: object) -> bool:
    return is_dataclass(value) and "rules" in {field.name for field in fields(value)}


def _with_rules(dataset: Any, rules: PixelRules) -> Any:
    """A copy of the dataset with the rules, also in its labels if these read image files."""
    labels: Any = dataset.labels if isinstance(dataset, FileDataset) else None
    inner = {"labels": replace(labels, rules=rules)} if _takes_rules(labels) else {}
    return replace(dataset, rules=rules, **inner)


@dataclass(frozen=True, eq=False)
class SampleDataset:
    """Samples in memory; the fingerprint covers their pixels, truth, depth and camera."""

    name: str
    samples: tuple[Sample, ...]
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        samples: Iterable[Sample],
        *,
        name: str = "samples",
        classes: Sequence[str] = (),
        semantic_classes: Sequence[str] = (),
    ) -> SampleDataset:
        """A dataset of samples; without class names, those of the first sample are used."""
        held = tuple(samples)
        for sample in held:
            if not isinstance(sample, Sample):
                raise InvalidOption(
                    f"A dataset consists of samples, not {type(sample).__name__}; use Sample(id, image)."
                )
        first = held[0] if held else None
        known = tuple(classes) or (first.classes if first else ())
        known_maps = tuple(semantic_classes) or (first.semantic_classes if first else ())
        held = tuple(replace(s, classes=known, semantic_classes=known_maps) for s in held)
        twice = [name for name, count in Counter(s.id for s in held).items() if count > 1]
        if twice:
            raise InvalidOption(f"Two samples have the id {twice[0]!r}; ids must be unique.")
        return cls(name, held, known, known_maps)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(sample.id for sample in self.samples)

    @cached_property
    def frames(self) -> Mapping[str, Frame]:
        return {sample.id: sample.frame for sample in self.samples if sample.sequence}

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Sample:
        return self.samples[index]

    def truth(self, index: int) -> Truth:
        return self.samples[index].truth

    def size(self, index: int) -> tuple[int, int]:
        height, width = self.samples[index].image.shape[:2]
        return height, width

    @cached_property
    def fingerprint(self) -> str:
        total = blake2b(to_json([self.classes, self.semantic_classes]).encode(), digest_size=16)
        for sample in self.samples:
            total.update(
                sample.id.encode() + b"\0" + repr(sample.image.shape).encode() + sample.image.tobytes()
            )
            objects = sample.truth.instances
            if objects is not None:
                for column in (objects.boxes, objects.labels, objects.crowd, objects.ignore):
                    total.update(column.tobytes())
                for mask in objects.masks or ():
                    total.update(mask.counts.tobytes())
                if sample.sequence:
                    total.update(objects.tracks.tobytes())
                plain = Instances(objects.boxes, objects.labels, objects.masks)
                for name in ("area", "occlusion", "truncation", "distance"):
                    stated = getattr(objects, name).tobytes()
                    if stated != getattr(plain, name).tobytes():
                        total.update(name.encode() + stated)
                for name, values in sorted(objects.data.items()):
                    total.update(name.encode() + repr(values.shape).encode() + values.tobytes())
            total.update(sample.truth.map_bytes)
            if sample.context.depth is not None:
                total.update(sample.context.depth.tobytes())
            if sample.context.camera is not None:
                total.update(np.array(astuple(sample.context.camera), np.float64).tobytes())
        if self.frames:
            total.update(to_json(frames_identity(self.frames)).encode())
        return total.hexdigest()


def open_object(main: str) -> Dataset:
    """A dataset object that this process passed to `stormproof.run`, while that runs."""
    dataset: Dataset | None = local_object(main)
    if dataset is None:
        problem = "was made in Python by another process; pass the dataset again."
        raise DatasetError(f"{OBJECT}:{main}", problem)
    return dataset
