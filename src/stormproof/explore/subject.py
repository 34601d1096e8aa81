"""What is looked at: runs of models on the same pixels, or models without a run.

Run folders are only read. Their scores are made in the background; until then there is no map, but the
microscope works.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, RunError, StormproofError, counted, message_of
from stormproof.core.sample import Prediction, Sample
from stormproof.core.spec import OBJECT, Spec
from stormproof.core.text import plain
from stormproof.corruptions import apply
from stormproof.corruptions.plugins import declare
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.engine.stages.encode import check_prediction
from stormproof.models import full_spec, load_model
from stormproof.models.classes import match_classes
from stormproof.models.enhance import enhance_model
from stormproof.models.model import Model, Precomputed, Unbound
from stormproof.results.run import Run
from stormproof.results.scores import ScoreOptions, Scores
from stormproof.results.stored import has_scores
from stormproof.results.weights import REPLICATES

# Kinds of models that are files of numbers: opening one that a run folder names runs no code of its own and
# sends no image anywhere. Any other kind is opened only if the user names it again.
PLAIN_KINDS = ("builtin", "onnx", "tflite")
_SAMPLES, _CORRUPTED, _PARTS = 4, 12, 64  # images, corrupted images and images' predictions that are kept


class RunSoFar(Run):
    """A run that is not finished: those images that every condition begun so far was run on."""

    def __init__(self, run: Run, images: set[int], data: str | Dataset | None) -> None:
        super().__init__(run.folder, data=data)
        self._images = images

    @cached_property
    def unreadable(self) -> dict[int, str]:
        """Everything else: images that could not be read, or that are still to come."""
        ids = self.dataset.ids
        return {index: ids[index] for index in range(self.record.images) if index not in self._images}


def open_run(folder: Path, data: str | Dataset | None = None) -> Run:
    """A run folder as far as it has come."""
    run = Run(folder, data=data)
    begun = [images for images in run.held.values() if images]
    complete = set.intersection(*begun) if begun else set()
    if not run.missing or not complete:
        return run
    return RunSoFar(run, complete, data)


class Live:
    """A model that is open and answers now, one image at a time."""

    def __init__(self, model: Model, dataset: Dataset) -> None:
        self._model, self._dataset = model, dataset
        self._match = match_classes(model.classes, dataset.classes)
        self._maps = match_classes(model.semantic_classes, dataset.semantic_classes)
        self._one_at_a_time = threading.Lock()

    def predict(self, sample: Sample) -> Prediction:
        """The prediction for an image, checked as a run checks it, in the dataset's labels."""
        with self._one_at_a_time:
            try:
                (returned,) = self._model([sample.image])
            except Exception as error:  # a framework may raise anything
                raise RunError(f"The model failed: {message_of(error, longest=400)}") from error
        size = (sample.image.shape[0], sample.image.shape[1])
        model, dataset = self._model, self._dataset
        classes = len(model.classes or dataset.classes)
        maps = len(model.semantic_classes or dataset.semantic_classes)
        return self._match.apply(check_prediction(returned, size, classes, maps), maps=self._maps)


class Subject:
    """One model: its run, if there is one, and the model itself, if it can be opened here."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        run: Run | None = None,
        model: Model | None = None,
        name: str = "",
        specs: tuple[str, str] = ("", ""),
    ) -> None:
        self.dataset, self.run, self.model = dataset, run, model
        if run is not None:
            specs = (run.record.model.spec, run.record.dataset.spec)
        self.specs = specs  # of the model and of the dataset
        known = model if run is None else run.record.model
        assert known is not None
        # The model's own names, of objects and of maps; empty if its labels are the dataset's.
        self.classes, self.semantic_classes = known.classes, known.semantic_classes
        self.name = name or (plain(run.record.name or run.record.model.name) if run else "")
        self.scores: Scores | None = None
        self.problem = ""  # why there are no scores
        self._opening, self._scoring = threading.Lock(), threading.Lock()
        self._stored = lru_cache(maxsize=_PARTS)(self._read)

    @property
    def only_maps(self) -> bool:
        """Whether the model names classes of maps and none of objects."""
        return bool(self.semantic_classes) and not self.classes

    def stored(self, image: str, condition: str) -> Prediction | None:
        """What the run predicted for a cell; None if it has no such cell."""
        if self.run is None or condition not in self.run.conditions:
            return None
        return self._stored(image).get(condition)

    def _read(self, image: str) -> dict[str, Prediction]:
        assert self.run is not None
        return self.run.predictions_of(image)

    @property
    def live(self) -> Live | None:
        """The open model; None if it cannot be asked here, and `silent` says why."""
        with self._opening:
            return self._opened[0]

    @property
    def silent(self) -> str:
        """Why the model cannot be asked; empty if it can."""
        with self._opening:
            return self._opened[1]

    @cached_property
    def _opened(self) -> tuple[Live | None, str]:
        try:
            model = self.model or self._reopened()
        except Exception as error:  # a framework may raise anything
            return None, message_of(error, longest=400)
        return Live(model, self.dataset), ""

    def _reopened(self) -> Model:
        """The run's model, from where its record says it is."""
        assert self.run is not None
        record = self.run.record.model
        kind = Spec.parse(full_spec(record.spec)).kind
        if kind == OBJECT or kind not in PLAIN_KINDS:
            again = "it was made in Python" if kind == OBJECT else f"name it again with --model {record.spec}"
            raise InvalidOption(f"A run folder does not start code or servers: {again}.")
        return require_model(record.spec, record.enhance, self.dataset, record.fingerprint)

    def keeps_scores(self, *, intervals: bool) -> bool:
        """Whether there is nothing to compute: no run, or a folder that keeps its scores."""
        if self.run is None:
            return True
        options = ScoreOptions.of(None, None, ())
        return has_scores(self.run, options, replicates=REPLICATES if intervals else 0)

    @property
    def awaits_scores(self) -> bool:
        """Whether scores, or their intervals, are still to come."""
        is_whole = self.scores is not None and self.scores.replicates is not None
        return self.run is not None and not is_whole and not self.problem

    def make_scores(self) -> None:
        """Score the run without writing to its folder; stored scores that lack intervals are shown before."""
        with self._scoring:  # when another run has grown, a second thread asks while the first computes
            if self.run is None or not self.awaits_scores:
                return
            try:
                if self.keeps_scores(intervals=False) and not self.keeps_scores(intervals=True):
                    self.scores = self.run.score(partial=True, keep=False)
                self.scores = self.run.score(partial=True, interval=True, keep=False)
            except StormproofError as error:
                self.problem = str(error)


def require_model(spec: str, enhance: Sequence[str], dataset: Dataset, fingerprint: str = "") -> Model:
    """An open model that answers to images; another one than the run's is refused."""
    opened: object = load_model(spec)
    bound = opened.bind(dataset) if isinstance(opened, Unbound) else opened
    if isinstance(bound, Precomputed) or not isinstance(bound, Model):
        raise InvalidOption(f"{spec} holds predictions made elsewhere, so it cannot be asked.")
    model = enhance_model(bound, tuple(enhance))
    assert isinstance(model, Model)
    if fingerprint and model.fingerprint != fingerprint:
        differ = f"fingerprint {model.fingerprint[:16]}, not {fingerprint[:16]}"
        raise InvalidOption(f"{spec} is not the model of the run: {differ}.")
    return model


class Exploration:
    """Several subjects on the same pixels, and those pixels. Memory does not grow with the dataset."""

    def __init__(self, subjects: Sequence[Subject], seed: int) -> None:
        self.subjects, self.seed = tuple(subjects), seed
        self.dataset = subjects[0].dataset
        runs = [subject.run.record.images for subject in subjects if subject.run is not None]
        self.images = min(runs) if runs else len(self.dataset)
        self.ids: Sequence[str] = self.dataset.ids
        self.index = {name: index for index, name in enumerate(self.ids)}
        self._reading = threading.Lock()
        self._sample = lru_cache(maxsize=_SAMPLES)(self.dataset.__getitem__)
        self._changed = lru_cache(maxsize=_CORRUPTED)(self._corrupt)

    @property
    def scores(self) -> list[Scores]:
        """The scores that are there so far, each under its subject's name."""
        held = [(subject.scores, subject.name) for subject in self.subjects]
        return [replace(scores, label=name) for scores, name in held if scores is not None]

    def subject(self, place: int) -> Subject:
        if not 0 <= place < len(self.subjects):
            raise InvalidOption(f"There are {counted(len(self.subjects), 'model')}, so no number {place}.")
        return self.subjects[place]

    def image_id(self, index: int) -> str:
        if not 0 <= index < self.images:
            raise InvalidOption(f"There are {counted(self.images, 'image')}, so no number {index}.")
        return self.ids[index]

    def sample(self, index: int, condition: Condition) -> Sample:
        """An image under a condition: the pixels that the runs' models saw."""
        self.image_id(index)
        with self._reading:  # readers of datasets need not be safe to share between threads
            return self._changed(index, condition)

    def _corrupt(self, index: int, condition: Condition) -> Sample:
        sample = self._sample(index)
        run = self.subjects[0].run
        if run is not None:
            return run.corrupted(sample, condition)
        return apply(sample, condition, seed=self.seed)

    def make_scores(self) -> None:
        for subject in self.subjects:
            subject.make_scores()


def explore_runs(
    folders: Sequence[Path], *, data: str | Dataset | None = None, models: Sequence[str] = ()
) -> Exploration:
    """Runs on the same pixels. `models` names again those that a run folder may not open by itself."""
    runs = [open_run(folder, data) for folder in folders]
    first = runs[0]
    for run in runs:
        declare(run.record.declared)
        if _pixels(run) != _pixels(first):
            raise InvalidOption(
                f"{run.folder} and {first.folder} are not on the same pixels (dataset, seed); explore them "
                "one at a time."
            )
    dataset = first.dataset
    named = [require_model(spec, (), dataset) for spec in models]
    subjects = []
    for run in runs:
        again = [model for model in named if _is_model_of(model, run)]
        subjects.append(Subject(dataset, run=run, model=again[0] if again else None))
    strange = [
        spec
        for spec, model in zip(models, named, strict=True)
        if not any(_is_model_of(model, run) for run in runs)
    ]
    if strange:
        raise InvalidOption(f"--model {strange[0]} is not the model of any of these runs.")
    return Exploration(_told_apart(subjects), first.record.seed)


def _is_model_of(model: Model, run: Run) -> bool:
    record = run.record.model
    return enhance_model(model, record.enhance).fingerprint == record.fingerprint


def _pixels(run: Run) -> tuple[str, int, str | None]:
    return run.record.dataset.fingerprint, run.record.seed, run.record.copies


def explore_models(models: Sequence[str], data: str, *, seed: int = 0) -> Exploration:
    """Models that are asked now, on a dataset."""
    dataset = read_dataset(data)
    opened = [require_model(spec, (), dataset) for spec in models]
    subjects = [
        Subject(dataset, model=model, name=plain(model.name), specs=(spec, data))
        for spec, model in zip(models, opened, strict=True)
    ]
    return Exploration(_told_apart(subjects), seed)


def _told_apart(subjects: Sequence[Subject]) -> Sequence[Subject]:
    names = [subject.name for subject in subjects]
    for place, subject in enumerate(subjects):
        if names.count(subject.name) > 1:
            where = plain(subject.run.folder.name) if subject.run is not None else str(place + 1)
            subject.name = f"{subject.name} ({where})"
    return subjects


def is_unfinished(subject: Subject) -> bool:
    """Whether the run lacked cells when it was opened."""
    return subject.run is not None and (isinstance(subject.run, RunSoFar) or bool(subject.run.missing))


def progress(subject: Subject) -> dict[str, int] | None:
    """How many cells of a run there are by now, and of how many; None for a run that is complete."""
    if subject.run is None or not is_unfinished(subject):
        return None
    run = Run(subject.run.folder, data=subject.dataset)  # read again: the folder may have grown
    held = sum(len(images) for images in run.held.values())
    whole = len(run.readable) * len(run.conditions)
    return None if held >= whole else {"done": held, "of": whole}


def grown(exploration: Exploration) -> Exploration:
    """The same subjects, with unfinished runs opened again as far as they have come by now."""
    subjects = []
    for subject in exploration.subjects:
        if subject.run is not None and is_unfinished(subject):
            run = open_run(subject.run.folder, subject.dataset)
            subject = Subject(subject.dataset, run=run, model=subject.model, name=subject.name)
        subjects.append(subject)
    return Exploration(subjects, exploration.seed)
