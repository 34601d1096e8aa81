"""What files beside a dataset add to its samples.

Context: depth maps, disparities, calibrations and right-hand images. Clips: a CSV file that says to which
sequence an image belongs, and when it was taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from stormproof.core.errors import DatasetError, InvalidOption, counted, first_few
from stormproof.core.files import list_files, locate
from stormproof.core.identity import to_json
from stormproof.core.imagefile import IMAGE_SUFFIXES, read_image
from stormproof.core.randomness import Frame
from stormproof.core.sample import Context, Sample
from stormproof.datasets.annotations import by_stem, raise_all, read_table
from stormproof.datasets.chosen import ChosenImages
from stormproof.datasets.dataset import Dataset, Source, abilities, fingerprint_of, frames_identity, in_clip
from stormproof.datasets.depthmaps import (
    CALIBRATION_SUFFIXES,
    JOURNAL,
    MOST_DOUBTFUL,
    SUFFIXES,
    DepthFolder,
    depth_from_disparity,
    fill_unknown,
    read_calibration,
    read_depth,
    read_disparity,
    stem_of,
)
from stormproof.datasets.image_files import require_listed

# What formats append to the name of a frame in its various files.
_ENDINGS = ("_leftImg8bit", "_rightImg8bit", "_disparity", "_camera", "_depth", "_disp")
# The kinds of files that samples may have, by option, and what messages call them.
_KINDS = {
    "depth": (SUFFIXES, "depth map"),
    "disparity": (SUFFIXES, "disparity map"),
    "calib": (CALIBRATION_SUFFIXES, "calibration"),
    "right": (IMAGE_SUFFIXES, "right image"),
}
_CLIPS = ["id", "sequence", "time"]  # the header of a file of clips


def attach_context(
    dataset: Dataset,
    *,
    depth: str | None = None,
    depth_scale: float | None = None,
    fill_depth: bool = False,
    disparity: str | None = None,
    disparity_scale: float | None = None,
    calib: str | None = None,
    right: str | None = None,
    min_confidence: float | None = None,
) -> Dataset:
    """Add context from files to a dataset; each folder is searched by sample id or image name.

    `depth` contains depth maps (`depth_scale` units per metre), `disparity` disparities (`disparity_scale`
    units per pixel), from which `calib` makes depth, and `right` the right-hand images. Each may also be one
    file for all samples. `fill_depth=true` gives pixels of unknown depth that of the nearest known pixel.
    `min_confidence` leaves out samples whose depth, made by 'stormproof depth', has a lower mean confidence.
    """
    if depth is not None and disparity is not None and calib is not None:
        raise InvalidOption("depth, and disparity with calib, both give depth; use one of them.")
    if depth_scale is not None and depth is None:
        raise InvalidOption(f"depth_scale={depth_scale} needs depth=FOLDER.")
    if disparity_scale is not None and disparity is None:
        raise InvalidOption(f"disparity_scale={disparity_scale} needs disparity=FOLDER.")
    if fill_depth and depth is None and (disparity is None or calib is None):
        raise InvalidOption("fill_depth needs depth=FOLDER, or disparity=FOLDER with calib=FOLDER.")
    given = {"depth": depth, "disparity": disparity, "calib": calib, "right": right}
    folders = {kind: text for kind, text in given.items() if text is not None}
    paths = {kind: _companions(dataset, text, *_KINDS[kind]) for kind, text in folders.items()}
    files = ContextFiles(paths, depth_scale, disparity_scale, fill_depth)
    place = None if depth is None else locate(depth, abilities(dataset).root)
    estimated = DepthFolder(place) if place is not None and (place / JOURNAL).is_file() else None
    kept = _confident(dataset, estimated, min_confidence)
    remark = "" if estimated is None else _depth_remark([dataset.ids[i] for i in kept], estimated)
    return DatasetWithContext(dataset, kept, files, remark)


def _confident(dataset: Dataset, folder: DepthFolder | None, least: float | None) -> tuple[int, ...]:
    """The indices of the samples whose depth has at least that mean confidence."""
    if least is None:
        return tuple(range(len(dataset)))
    if folder is None:
        raise InvalidOption(f"min_confidence={least} needs depth=FOLDER, written by 'stormproof depth'.")
    kept = tuple(i for i, name in enumerate(dataset.ids) if folder.mean_confidence(name) >= least)
    if not kept:
        raise InvalidOption(
            f"min_confidence={least} leaves no image: in {folder.folder} all have less confidence."
        )
    return kept


def _depth_remark(names: Sequence[str], folder: DepthFolder) -> str:
    """A warning about images whose estimated depth is doubtful; empty if there are none."""
    doubtful = [name for name in names if folder.doubtful(name) > MOST_DOUBTFUL]
    if not doubtful:
        return ""
    enough = math.ceil(100 * max(folder.mean_confidence(name) for name in doubtful) + 0.01) / 100
    return (
        f"The depth of {len(doubtful)} of {counted(len(names), 'image')} is doubtful: a guess in more than "
        f"{MOST_DOUBTFUL:.0%} of the pixels ({first_few(doubtful)}). Haze and defocus may look wrong there; "
        f"look at them, or leave them out with min_confidence={enough:g}."
    )


def _companions(dataset: Dataset, text: str, suffixes: Iterable[str], noun: str) -> tuple[Path, ...]:
    """The file of each sample in a folder, or the same file for all."""
    place, source = locate(text, abilities(dataset).root), abilities(dataset).image_source
    if place.is_file():
        return (place,) * len(dataset)
    paths = by_stem(list_files(place, suffixes), _ENDINGS)
    names = [_names(name, source(i)) for i, name in enumerate(dataset.ids)]
    matches = [next((paths[name] for name in each if name in paths), None) for each in names]
    problems = [
        DatasetError(place, f"no {noun} found; looked for {', '.join(each)}.", f"sample {each[0]!r}")
        for each, match in zip(names, matches, strict=True)
        if match is None
    ]
    raise_all(problems)
    return tuple(match for match in matches if match is not None)


def _names(name: str, source: Source | None) -> list[str]:
    """The stems that the files of a sample may have."""
    stem = PurePosixPath(name).name
    candidates = [stem_of(name), name, stem]
    if source is not None:
        candidates.append(PurePosixPath(source.name).stem)
    for ending in _ENDINGS:
        candidates += [c.removesuffix(ending) for c in candidates if c.endswith(ending)]
    return list(dict.fromkeys(candidates))


@dataclass(frozen=True)
class ContextFiles:
    """The context files of all samples by kind, and how to read them."""

    paths: Mapping[str, tuple[Path, ...]]
    depth_scale: float | None = None
    disparity_scale: float | None = None
    fill_depth: bool = False

    def of(self, index: int) -> dict[str, Path]:
        """The files beside one sample."""
        return {kind: paths[index] for kind, paths in self.paths.items()}

    def read(self, index: int, context: Context) -> Context:
        """The context of a sample, with what its files add."""
        files, calibration = self.of(index), None
        if "calib" in files:
            calibration = read_calibration(files["calib"])
            context = replace(context, camera=calibration.camera)
        if "depth" in files:
            context = replace(context, depth=read_depth(files["depth"], self.depth_scale))
        if "disparity" in files:
            disparity = read_disparity(files["disparity"], self.disparity_scale)
            context = replace(context, disparity=disparity)
            if calibration is not None and calibration.camera.baseline is None:
                problem = "has no baseline, which is needed to compute depth from disparity."
                raise DatasetError(files["calib"], problem)
            if calibration is not None:
                context = replace(context, depth=depth_from_disparity(disparity, calibration))
        if "right" in files:
            context = replace(context, right=read_image(files["right"]))
        if self.fill_depth and context.depth is not None:
            context = replace(context, depth=fill_unknown(context.depth))
        return context


@dataclass(frozen=True, eq=False)
class DatasetWithContext(ChosenImages):
    """A dataset whose samples get context from files; `depth_remark` says which have doubtful depth."""

    files: ContextFiles
    depth_remark: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """Covers the dataset's own and names and sizes of context files: depth decides how haze looks."""
        every = dict.fromkeys(path for paths in self.files.paths.values() for path in paths)
        files = [[path.name, path.stat().st_size] for path in every]
        options = [self.files.depth_scale, self.files.disparity_scale, self.files.fill_depth]
        if self.is_subset:
            options.append(list(self.kept))  # type: ignore[arg-type]
        return fingerprint_of(to_json([self.dataset.fingerprint, files, options]).encode(), ())

    def __getitem__(self, index: int) -> Sample:
        index = self.kept[index]
        sample = self.dataset[index]
        context = self.files.read(index, sample.context)
        self._check_sizes(index, sample, context)
        return replace(sample, context=context)

    def context_files(self, index: int) -> tuple[Path, ...]:
        return tuple(self.files.of(self.kept[index]).values())

    def _check_sizes(self, index: int, sample: Sample, context: Context) -> None:
        size, files = sample.image.shape[:2], self.files.of(index)
        for kind in ("disparity", "depth", "right"):
            array = getattr(context, kind)
            if array is not None and kind in files and array.shape[:2] != size:
                problem = f"is {array.shape[:2]} (height, width), but the image is {size}; resize it."
                raise DatasetError(files[kind], problem, f"sample {sample.id!r}")


def with_sequences(dataset: Dataset, *, sequences: str | None = None) -> Dataset:
    """The dataset as clips. `sequences` is a CSV file with the columns id, sequence and time in seconds.

    Images that the file does not list stay single images.
    """
    if sequences is None:
        return dataset
    path = locate(sequences, abilities(dataset).root)
    frames = read_sequences(path)
    require_listed(dataset, frames, path)
    listed = {name: frames[name] for name in dataset.ids if name in frames}  # in the dataset's order
    return DatasetInClips(dataset, range(len(dataset)), listed)


def read_sequences(path: Path) -> dict[str, Frame]:
    """The frames that a CSV file lists, by image id."""
    frames: dict[str, Frame] = {}
    problems = []
    for line, row in read_table(path, _CLIPS):
        frame = _frame(row)
        if frame is None:
            problem = f"{','.join(row)!r:.80} must be an image id, a sequence and a time in seconds."
            problems.append(DatasetError(path, problem, f"line {line}"))
        else:
            frames[frame.id] = frame
    raise_all(problems)
    return frames


def _frame(row: Sequence[str]) -> Frame | None:
    try:
        name, sequence, seconds = row
        time = float(seconds)
    except ValueError:
        return None
    return Frame(name, sequence, time) if name and sequence and math.isfinite(time) else None


@dataclass(frozen=True, eq=False)
class DatasetInClips(ChosenImages):
    """A dataset whose images, or some of them, are frames of clips."""

    frames: Mapping[str, Frame]

    @cached_property
    def fingerprint(self) -> str:
        identity = [self.dataset.fingerprint, frames_identity(self.frames)]
        return fingerprint_of(to_json(identity).encode(), ())

    def __getitem__(self, index: int) -> Sample:
        return in_clip(self.dataset[index], self.frames)
