"""`Run`: a run folder, opened once: its record, predictions and dataset, and everything derived."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stormproof.core.condition import Condition
from stormproof.core.display import DISPLAYS
from stormproof.core.errors import DatasetError, IncompleteGrid, InvalidOption, StoreError, counted, first_few
from stormproof.core.files import open_regular, read_bytes
from stormproof.core.imagefile import read_image
from stormproof.core.loading import framework
from stormproof.core.sample import Prediction, Sample
from stormproof.core.spec import OBJECT, Spec
from stormproof.core.threads import map_in_threads
from stormproof.datasets import read_dataset
from stormproof.datasets.copies import copy_of
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.models.classes import match_classes
from stormproof.results.store.lock import shares
from stormproof.results.store.parts import (
    encode_strings,
    part_path,
    part_paths,
    read_failures,
    read_further_columns,
    read_part,
    resume_command,
)
from stormproof.results.store.record import RECORD, RunRecord, read_record
from stormproof.results.store.schema import (
    DETECTION,
    KEY,
    MAP_COLUMNS,
    OPTIONAL,
    columns_of,
    prediction_of,
)
from stormproof.results.weights import REPLICATES

if TYPE_CHECKING:
    from stormproof.metrics.object_error import MatchingRule
    from stormproof.results.detection_rate import DetectionRates
    from stormproof.results.scores import Scores
    from stormproof.results.slices import Slices
    from stormproof.results.truths import ClassSelection
    from stormproof.results.worst import ImageLoss

Made = TypeVar("Made")


class Run:
    """A run folder: `Run("runs/mine")`, or what `stormproof.run` returns.

    Everything is read once and cached, so open a new `Run` after the folder has grown. `data` is the dataset,
    if it has moved or was made in Python.
    """

    def __init__(
        self, folder: str | PathLike[str], *, data: str | Dataset | Iterable[Sample] | None = None
    ) -> None:
        self.folder = Path(folder)
        self.record: RunRecord = read_record(self.folder)
        self._data = data

    @property
    def name(self) -> str:
        """The run's own name or its model's, and the dataset's."""
        return f"{self.record.name or self.record.model.name} on {self.record.dataset.name}"

    @property
    def conditions(self) -> tuple[str, ...]:
        return self.record.conditions

    @cached_property
    def parts(self) -> list[Path]:
        """The part files, in order."""
        return part_paths(self.folder)

    @cached_property
    def failures(self) -> list[dict[str, Any]]:
        """The cells without a prediction: image, condition, kind and error."""
        return read_failures(self.folder, self.record.key)

    @cached_property
    def unreadable(self) -> dict[int, str]:
        """Images that could not be read, by index: they are left out of every condition."""
        failed = (row for row in self.failures if row["kind"] == "image")
        return {row["index"]: row["image"] for row in failed if row["index"] < self.record.images}

    @cached_property
    def readable(self) -> list[int]:
        """The images that are scored, by index: all but those that could not be read."""
        return [index for index in range(self.record.images) if index not in self.unreadable]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the images that are scored."""
        return tuple(self.dataset.ids[index] for index in self.readable)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The independent unit that each scored image belongs to: its clip, its group, or the image itself.

        Resampling draws whole units.
        """
        known = abilities(self.dataset)
        return tuple(
            known.frames[name].sequence if name in known.frames else known.groups.get(name, name)
            for name in self.ids
        )

    @cached_property
    def clips(self) -> int | None:
        """The number of units if some are clips of several images; None if every image is its own."""
        units = len({*self.units})
        return units if units < len(self.units) else None

    @cached_property
    def held(self) -> dict[str, set[int]]:
        """The readable images that each condition was run on."""
        images: dict[str, set[int]] = {text: set() for text in self.conditions}
        for path in self.parts:
            table = self.read(path, KEY)
            index, (texts, codes) = np.asarray(table["index"]), encode_strings(table["condition"])
            kept = (index < self.record.images) & ~np.isin(index, list(self.unreadable))
            for code, text in enumerate(texts):
                if text in images:
                    images[text].update(index[kept & (codes == code)].tolist())
        return images

    @property
    def missing(self) -> dict[str, int]:
        """Conditions that lack images, with the number lacking."""
        lacking = {text: len(self.readable) - len(images) for text, images in self.held.items()}
        return {text: count for text, count in lacking.items() if count}

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset of the run, from its recorded place or from `data`; a different dataset is refused.

        A run folder is data: Python code that its record names is not run unless the user names it again.
        """
        return _reopen(self.record, self._data)

    @cached_property
    def has_objects(self) -> bool:
        """Whether the model found any object anywhere."""
        return any(len(pc.list_flatten(self.read(path, ("scores",))["scores"])) for path in self.parts)

    def has(self, column: str) -> bool:
        """Whether any row has a value in an optional column, such as masks."""
        return column in self._with_values

    @cached_property
    def _with_values(self) -> set[str]:
        """The optional columns that have a value in any row; each is read until a value is found."""
        filled: set[str] = set()
        for path in self.parts:
            lacking = [name for name in (*OPTIONAL, *self.further) if name not in filled]
            table = self.read(path, lacking)
            filled.update(name for name in lacking if table[name].null_count < len(table))
        return filled

    @cached_property
    def further(self) -> tuple[str, ...]:
        """The columns of forms that only some runs have, as far as their forms are declared."""
        held = {name for path in self.parts for name in read_further_columns(path)}
        return tuple(column.name for column in columns_of(sorted(held)))

    def read(self, path: Path, columns: Sequence[str]) -> pa.Table:
        """Columns of one part; a value that this run cannot have written is an error."""
        return read_part(path, self.record.key, columns, self.record.known_classes)

    def map_parts(self, function: Callable[[Path], Made]) -> Iterator[Made]:
        """What a function makes of every part, in order; threads share the parts."""
        return map_in_threads(function, self.parts)

    @cached_property
    def digest(self) -> str:
        """A digest of everything in the folder: the record, every prediction, every failure."""
        total = hashlib.blake2b(read_bytes(self.folder / RECORD, error=StoreError), digest_size=16)
        paths = (*self.parts, *sorted((self.folder / "failures").glob("part-*.json")))
        for path, digest in zip(paths, map_in_threads(_digest_of, paths), strict=True):
            total.update(path.name.encode() + digest)
        return total.hexdigest()

    def check(self) -> None:
        """Refuse a folder whose predictions were changed, or whose images were."""
        from stormproof.results.store.integrity import check_images, check_parts

        if not self.parts:
            raise StoreError(f"{self.folder} holds no predictions yet; run it first.")
        if not self.readable:
            first = "".join("; {image}: {error}".format_map(failure) for failure in self.failures[:1])
            raise StoreError(
                f"{self.folder}: no image of {self.record.dataset.name} could be read{first}. Nothing can be "
                "scored: repair the images and run again."
            )
        check_parts(self)
        self.dataset  # noqa: B018  a different dataset is refused, even if the images are copies
        check_images(self)

    def require_complete(self, doing: str) -> None:
        """Refuse a run whose conditions lack images, and say how to finish it."""
        if self.missing:
            raise IncompleteRun(self, doing)

    def score(
        self,
        *,
        classes: ClassSelection = None,
        rule: MatchingRule | None = None,
        conditions: Sequence[str] = (),
        partial: bool = False,
        interval: bool = False,
        replicates: int | None = None,
        reference: Run | str | PathLike[str] | None = None,
        keep: bool = True,
    ) -> Scores:
        """The scores by every measure that fits, stored in the folder under a key of all that decides them.

        `classes` are those to score: by default the ones that model and dataset share, "all" of the
        dataset's, or some by name. `rule` says which boxes match which objects for object errors,
        `conditions` limits scoring to some of the run's. An incomplete grid is refused, unless `partial` is
        true. `interval` adds 95 % intervals from 200 random halves of the images, or from `replicates`;
        `reference` is a run to compare with: CD, rCD and gains. Without `keep`, nothing is written.
        """
        from stormproof.results.scores import ScoreOptions
        from stormproof.results.scoring import score

        options = ScoreOptions.of(classes, rule, [self._known_condition(each) for each in conditions])
        count = replicates or (REPLICATES if interval else 0)
        scores = score(self, options, partial=partial, replicates=count, keep=keep)
        if reference is None:
            return scores
        other = reference if isinstance(reference, Run) else Run(reference, data=self._data)
        return scores.with_reference(score(other, options, partial=False, replicates=count, keep=keep))

    def slices(
        self,
        by: str,
        *,
        measure: str | None = None,
        classes: ClassSelection = None,
        clean: Run | str | None = None,
        replicates: int = REPLICATES,
    ) -> Slices:
        """The scores by an attribute of images, each slice with its interval: `run.slices("weather")`.

        `by` is an attribute that the dataset has, 'brightness', 'contrast', 'sharpness', 'count', or a CSV
        file 'FILE.csv:COLUMN' with image ids in its first column. `measure` is the run's headline by default.
        `clean` is what slices are relative to: one of them, or a run on the dataset's clean counterpart.
        """
        from stormproof.results.slices import slice_scores

        return slice_scores(self, by, measure=measure, classes=classes, clean=clean, replicates=replicates)

    def detection_rates(
        self,
        by: str,
        *,
        classes: ClassSelection = None,
        min_score: float = 0.4,
        replicates: int = REPLICATES,
    ) -> DetectionRates:
        """The share of objects found by 'distance', 'size' or 'occlusion' of the objects, with intervals.

        An object is found by a detection of its class scored `min_score` or more at IoU 0.5. By distance,
        `lost_from(condition)` says where fewer than half are found.
        """
        from stormproof.results.detection_rate import detection_rates

        return detection_rates(self, by, classes=classes, min_score=min_score, replicates=replicates)

    def predictions(self, condition: str | Condition) -> dict[str, Prediction]:
        """What the model predicted under a condition, by image, in the dataset's labels."""
        from stormproof.results.rows import by_condition

        ((_, table),) = by_condition(
            self, [self._known_condition(condition)], (*DETECTION, *MAP_COLUMNS, *self.further)
        )
        return self._predictions(table, by="image")

    def predictions_of(self, image: str) -> dict[str, Prediction]:
        """What the model predicted for one image, by condition, in the dataset's labels.

        Only the part that holds the image is read; conditions that it was not run under are left out.
        """
        index = self._index_of(image)
        path = part_path(self.folder, index // self.record.chunk)
        if not path.exists():
            return {}
        table = self.read(path, (*KEY, "height", "width", *DETECTION, *MAP_COLUMNS, *self.further))
        return self._predictions(table.filter(pc.equal(table["index"], index)), by="condition")

    def _predictions(self, table: pa.Table, *, by: str) -> dict[str, Prediction]:
        record = self.record
        match = match_classes(record.model.classes, record.dataset.classes)
        maps = match_classes(record.model.semantic_classes, record.dataset.semantic_classes)
        return {row[by]: match.apply(prediction_of(row), maps=maps) for row in table.to_pylist()}

    def sample(self, image: str, condition: str | Condition = "clean") -> Sample:
        """An image of the run as it was given to the model, with its truth."""
        from stormproof.corruptions.grammar import read_condition

        return self.corrupted(self.dataset[self._index_of(image)], read_condition(condition))

    def _index_of(self, image: str) -> int:
        if image not in (ids := self.dataset.ids):
            raise InvalidOption(
                f"{self.record.dataset.name} has no image {image!r}; its first is {ids[0]!r}."
            )
        return ids.index(image)

    def corrupted(self, sample: Sample, condition: Condition) -> Sample:
        """A clean sample of the dataset under a condition: corrupted now, or the copy that the run read."""
        from stormproof.corruptions import apply, truth_under

        copies, seed = self.record.copies, self.record.seed
        if copies is None or condition.is_clean:
            return apply(sample, condition, seed=seed)
        index = self.dataset.ids.index(sample.id)
        image = read_image(copy_of(Path(copies), self.dataset, index, condition))
        size = (image.shape[0], image.shape[1])
        truth = truth_under(sample.truth, size, condition, seed=seed, image_id=sample.frame)
        return replace(sample, image=image, truth=truth)

    def worst(self, count: int = 20) -> list[ImageLoss]:
        """The images that suffer most, and under which condition, compared with the same image clean."""
        from stormproof.results.worst import worst_images

        return worst_images(self.score(partial=True), count)

    def explore(self) -> Any:
        """Look at this run live, in the cell of a notebook or at the link that is printed: its heat map, its
        images, any severity between. `stop()` of what is returned ends it; so does the end of the process."""
        for needed in ("starlette", "uvicorn"):
            framework(needed, extra="explore")
        return framework("stormproof.explore.serve", extra="explore").explore_here(self)

    def _known_condition(self, condition: str | Condition) -> str:
        from stormproof.corruptions.grammar import read_condition

        if (text := str(condition)) in self.conditions:
            return text
        text = str(read_condition(condition))
        if text not in self.conditions:
            some = ", ".join(self.conditions[:5])
            raise InvalidOption(f"{self.folder} was not run under {text}; it has {some} …")
        return text

    def _repr_html_(self) -> str:
        return str(DISPLAYS["notebook"].run_html(self))

    def __repr__(self) -> str:
        grid = f"{counted(self.record.images, 'image')} × {counted(len(self.conditions), 'condition')}"
        return f"<run {self.folder}: {self.name}, {grid}>"


class DatasetGone(InvalidOption):
    """The dataset of a run is not where it was; stored scores can still be read."""


class IncompleteRun(IncompleteGrid):
    """Conditions of a run lack images; the message says how to finish it and what failed."""

    def __init__(self, run: Run, doing: str) -> None:
        missing = missing_words(run)
        super().__init__(missing, len(run.conditions))
        failed = "".join("; {image} under {condition}: {error}".format_map(f) for f in run.failures[:1])
        command = resume_command(run.folder)
        if run.record.quota is not None:
            failed += f"; it is an estimate from {run.record.quota} images a condition, to be completed"
        if len(own := shares(run.folder) - {"1/1"}) == 1:  # run.yaml would run this shard again
            failed += f"; it is shard {own.pop()}, to be joined with the others"
            command = "stormproof merge OUT SHARD…"
        partial = f", or {doing} the others with --partial" if len(missing) < len(run.conditions) else ""
        self.args = (
            f"{run.folder}: {len(missing)} of {len(run.conditions)} conditions lack images: "
            f"{first_few(missing)}{failed}. Finish it with '{command}'{partial}.",
        )


def missing_words(run: Run, conditions: Sequence[str] | None = None) -> tuple[str, ...]:
    """The conditions that lack images, such as 'fog@3 (2 of 9 missing)'."""
    return tuple(
        f"{text} ({count} of {run.record.images} missing)"
        for text, count in run.missing.items()
        if conditions is None or text in conditions
    )


def _digest_of(path: Path) -> bytes:
    with open_regular(path, error=StoreError) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _reopen(record: RunRecord, data: str | Dataset | Iterable[Sample] | None) -> Dataset:
    kind = Spec.parse(record.dataset.spec).kind
    if data is None and kind == OBJECT:
        name = record.dataset.name
        raise DatasetGone(f"The dataset {name} of this run was made in Python; give it again with data=.")
    if data is None and "." in kind:
        raise DatasetGone(
            f"The dataset of this run is Python code ({record.dataset.spec}), which runs only if you name "
            f"it: --data {shlex.quote(record.dataset.spec)}"
        )
    try:
        named = record.dataset.spec if data is None else data
        dataset = read_dataset(named) if isinstance(named, str) else _as_dataset(named)
    except DatasetError as error:
        if data is not None:
            raise
        gone = not Path(Spec.parse(record.dataset.spec).main).exists()
        raise (DatasetGone if gone else InvalidOption)(
            f"{error} Say where the dataset is now with --data{_elsewhere(record)}."
        ) from error
    if dataset.fingerprint != record.dataset.fingerprint:
        raise InvalidOption(
            f"{data if isinstance(data, str) else dataset.name} is not the dataset of this run: fingerprint "
            f"{dataset.fingerprint[:16]}, not {record.dataset.fingerprint[:16]}."
        )
    return dataset


def _as_dataset(data: Any) -> Dataset:
    """A dataset object, one that `stormproof.open_dataset` returned, or samples made in Python."""
    from stormproof.datasets.dataset import SampleDataset

    whole = getattr(data, "whole", data)
    return whole if hasattr(whole, "fingerprint") else SampleDataset.of(whole, classes=())


def _elsewhere(record: RunRecord) -> str:
    """The folder that relative paths of the run start from, if it is not the current one."""
    folder = record.provenance.get("folder")
    return (
        f", or call from {folder}, where the run was started" if folder not in (None, str(Path.cwd())) else ""
    )


def runs_in(places: Sequence[Path]) -> dict[str, Path]:
    """Run folders by name, from run folders and folders that hold some, such as those of many models.

    A run has the name in its record, since folders may be renamed. Without a name, or if the record cannot be
    read, it has the name of its folder.
    """
    folders: dict[str, Path] = {}
    for place in places:
        below = (path.parent for pattern in (f"*/{RECORD}", f"*/*/{RECORD}") for path in place.glob(pattern))
        inside = [place] if (place / RECORD).exists() else sorted(below)
        if not inside:
            raise StoreError(f"{place} is not a run folder: it has no {RECORD}; 'stormproof run' makes one.")
        for run in inside:
            name = _recorded_name(run)
            name = name or (run.name if run == place else run.relative_to(place).as_posix())
            folders[name if name not in folders else str(run)] = run
    return folders


def _recorded_name(run: Path) -> str | None:
    try:
        name = read_record(run).name
    except StoreError:  # opening the run reports the error
        return None
    parts = PurePath(name).parts if name is not None else ()
    if name is not None and (not parts or PurePath(name).is_absolute() or ".." in parts):
        raise StoreError(f"{run / RECORD}: the name {name!r} leads out of a folder; give the run another.")
    return name
