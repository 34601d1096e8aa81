"""`run`, and `Run`: the folder of one, with what it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, counted
from stormproof.core.local_objects import named
from stormproof.core.sample import Image, Prediction, Sample
from stormproof.corruptions import apply
from stormproof.corruptions.grammar import read_condition
from stormproof.datasets.dataset import Dataset
from stormproof.engine.config import make_config
from stormproof.engine.notebook import watch_here
from stormproof.engine.opened import OpenedDataset, OpenedModel, open_dataset, open_model
from stormproof.engine.pair import forget_pair
from stormproof.engine.run import Summary
from stormproof.engine.run import run as run_config
from stormproof.engine.trackers import open_tracker
from stormproof.engine.work import alike
from stormproof.models.classes import match_classes
from stormproof.models.model import Model
from stormproof.results.measured import Scores
from stormproof.results.reading import RunRows
from stormproof.results.score import score_run
from stormproof.results.store.parts import read_failures
from stormproof.results.store.record import RunRecord, read_record
from stormproof.results.store.reopen import dataset_of
from stormproof.results.store.schema import DETECTION, SEMANTIC, prediction_of
from stormproof.results.worst import ImageScore, worst_images

if TYPE_CHECKING:
    from stormproof.engine.run import Watch

Conditions = str | Condition | Iterable[str | Condition]
AnyModel = str | Model | Callable[[Sequence[Image]], Any]
AnyDataset = str | Dataset | Iterable[Sample]


def run(
    model: AnyModel,
    data: AnyDataset | None = None,
    *,
    out: str | PathLike[str],
    suite: Conditions = (),
    conditions: Conditions = (),
    benchmark: str | None = None,
    root: str | PathLike[str] | None = None,
    enhance: str | Sequence[str] = (),
    seed: int = 0,
    limit: int | None = None,
    engine: str | None = None,
    workers: int = 0,
    batch: int = 8,
    timeout: float | None = None,
    device: str | None = None,
    tags: Mapping[str, str] | None = None,
    track: str | Sequence[str] = (),
    progress: bool = True,
) -> Run:
    """Run a model on a dataset, clean and under every condition; the same call continues a stopped run.

    Arguments are the flags of `stormproof run`. A model or dataset made in Python runs in this process
    (`engine="local"`, which is then the default); those that have a spec run in worker processes.
    """
    opened = open_model(model)
    dataset = None if data is None else open_dataset(data)
    made_here = [thing for thing in (opened, dataset) if thing is not None and thing.spec is None]
    engine = engine or ("local" if made_here else "pool")
    if made_here and engine != "local":
        raise InvalidOption(
            f"{made_here[0].name} was made in this Python process, and engine={engine!r} works in others, "
            "which cannot see it; use engine='local', or put it in a file and name it 'file.py:function'."
        )
    with ExitStack() as stack:
        settings = {
            "model": _spec(stack, opened), "out": str(out), "benchmark": benchmark,
            "data": None if dataset is None else _spec(stack, dataset),
            "root": None if root is None else str(root),
            "suite": _strings(suite), "conditions": _strings(conditions), "enhance": enhance, "seed": seed,
            "limit": limit or (dataset.limit if dataset is not None else None), "engine": engine,
            "workers": workers, "batch": batch, "timeout": timeout, "tags": dict(tags or {}), "track": track,
            "device": device,
        }  # fmt: skip
        config = make_config({key: value for key, value in settings.items() if value is not None})
        watches: list[Watch] = [watch_here()] if progress else []
        if made_here:
            stack.callback(forget_pair)  # it must not outlive the names of what it was made of
        summary = run_config(config, [*watches, *(open_tracker(name) for name in config.track)])
    _warn(summary)
    return Run(out, data=None if dataset is None else dataset.whole)


class Run:
    """A run's folder: `sp.Run("runs/mine")`, or what `sp.run` returns.

    `data` is the dataset, where it has moved since, or was made in Python.
    """

    def __init__(self, folder: str | PathLike[str], *, data: AnyDataset | None = None) -> None:
        self.folder = Path(folder)
        self._data = data
        self.record  # noqa: B018  no such run is said here, not at the first question

    @property
    def record(self) -> RunRecord:
        """What the run is: `run.json`."""
        return read_record(self.folder)

    @property
    def conditions(self) -> tuple[str, ...]:
        return self.record.conditions

    @property
    def failures(self) -> list[dict[str, str]]:
        """The cells without an answer: image, condition, kind and error."""
        return read_failures(self.folder)

    def data(self, data: AnyDataset | None = None) -> OpenedDataset:
        """The dataset of the run, opened again if need be."""
        given = self._data if data is None else data
        dataset = dataset_of(self.record, given if given is None or isinstance(given, str) else _whole(given))
        self._data = dataset
        return OpenedDataset(self.record.dataset.spec, dataset, self.record.images)

    def score(
        self,
        *,
        data: AnyDataset | None = None,
        classes: Sequence[str] | str | None = None,
        reference: Run | str | PathLike[str] | None = None,
        partial: bool = False,
    ) -> Scores:
        """Every measure that fits, over the classes that model and dataset share, unless some are named."""
        beside = reference.folder if isinstance(reference, Run) else reference
        found = score_run(
            self.folder,
            data=self.data(data).whole,
            classes=classes,
            reference=None if beside is None else Path(beside),
            partial=partial,
        )
        return Scores(found)

    def predictions(self, condition: str | Condition) -> dict[str, Prediction]:
        """What the model said under a condition, by image, in the dataset's labels."""
        record, asked = self.record, self._held(condition)
        match = match_classes(record.model.classes, record.dataset.classes)
        maps = match_classes(record.model.semantic_classes, record.dataset.semantic_classes)
        ((_, table),) = RunRows(self.folder, record).by_condition([asked], (*DETECTION, *SEMANTIC))
        said = {row["image"]: prediction_of(row) for row in table.to_pylist()}
        return {
            name: (match if answer.semantic is None else maps).apply(answer) for name, answer in said.items()
        }

    def sample(self, image: str, condition: str | Condition = "clean") -> Sample:
        """An image of the run as the model saw it, with its truth."""
        sample = self.data()[image]
        return apply(sample, read_condition(condition), seed=self.record.seed)

    def worst(self, count: int = 20, *, data: AnyDataset | None = None) -> list[ImageScore]:
        """The images and conditions that cost the model most, against the same image clean."""
        return worst_images(self.folder, self.record, self.data(data).whole, count)

    def _held(self, condition: str | Condition) -> str:
        text = str(read_condition(condition))
        if text not in self.record.conditions:
            some = ", ".join(self.record.conditions[:5])
            raise InvalidOption(f"{self.folder} was not run under {text}; it has {some} …")
        return text

    def __repr__(self) -> str:
        record = self.record
        return (
            f"<run {self.folder}: {record.model.name} on {record.dataset.name}, {record.images} images "
            f"× {len(record.conditions)} conditions>"
        )


def _whole(data: Dataset | Iterable[Sample]) -> Dataset:
    return open_dataset(data).whole


def _spec(stack: ExitStack, thing: OpenedModel | OpenedDataset) -> str:
    """The name by which a run knows a model or dataset."""
    if thing.spec is not None:
        return thing.spec
    return stack.enter_context(
        named(thing.name, thing.model if isinstance(thing, OpenedModel) else thing.whole)
    )


def _strings(given: Conditions) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str | Condition) else tuple(map(str, given))


def _warn(summary: Summary) -> None:
    if summary.failures:
        causes = alike(summary.failures)
        warnings.warn(
            f"{counted(len(summary.failures), 'cell')} failed; {causes[0]}. The same call tries them again.",
            stacklevel=3,
        )
