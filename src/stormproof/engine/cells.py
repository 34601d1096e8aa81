"""From images to rows: decode once, corrupt under every condition, call the model in batches.

Cells are done in the order of rows: image by image, conditions sorted as strings. One bad cell costs only
itself: when the model fails on a batch, it is called again image by image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, StoreError
from stormproof.core.imagefile import read_image
from stormproof.core.sample import Image, Ints, Prediction, Sample, Truth, as_rgb
from stormproof.corruptions import apply, truth_under
from stormproof.datasets.copies import read_copy
from stormproof.datasets.dataset import identity_of
from stormproof.datasets.image_files import content_of, size_and_digest
from stormproof.engine.guard import (
    ModelTimeout,
    check_prediction,
    describe,
    is_worker,
    predict,
    trace_of,
    write_note,
)
from stormproof.engine.pair import Pair, forget_pair, pair_for
from stormproof.engine.work import Attempt, Failure, Times, Work
from stormproof.metrics.map_calibration import confidence_sums
from stormproof.metrics.panoptic import overlaps
from stormproof.metrics.quality import Change, change
from stormproof.metrics.semantic import Confusion
from stormproof.models.classes import match_classes
from stormproof.models.model import Model, Precomputed
from stormproof.results.store.schema import Row

Wanted = Mapping[int, Sequence[Condition]]
PATIENCE = 3  # model calls that may hang on one image before its other conditions are skipped


@dataclass(frozen=True, slots=True, eq=False)
class DecodedImage:
    """A sample as read, with the digest that identifies it."""

    sample: Sample
    content: str


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCell:
    """A cell whose corrupted image is ready for the model."""

    index: int
    id: str
    condition: Condition
    image: Image
    truth: Truth
    content: str
    change: Change | None

    def failed(self, kind: str, error: str, trace: str = "") -> Failure:
        return Failure(self.index, self.id, str(self.condition), kind, error, trace)


def run_cells(
    pair: Pair, attempt: Attempt, wanted: Wanted, before: Mapping[int, str], times: Times
) -> Iterator[Row | Failure]:
    """The row or the failure of every wanted cell, in the order of rows.

    `before` holds the digests of images that existing rows recorded: an image that changed is refused.
    """
    if isinstance(pair.model, Precomputed):
        return _looked_up(attempt.work, pair, pair.model, wanted, times)
    if attempt.work.config.device is not None and not attempt.one_by_one:
        from stormproof.engine.on_device import DeviceChunkRunner  # loads torch

        return DeviceChunkRunner(pair, pair.model, attempt, before, times).rows(wanted)
    return ChunkRunner(pair, pair.model, attempt, before, times).rows(wanted)


def _looked_up(
    work: Work, pair: Pair, model: Precomputed, wanted: Wanted, times: Times
) -> Iterator[Row | Failure]:
    """Rows of precomputed predictions: no image is decoded."""
    for index, conditions in wanted.items():
        name = pair.dataset.ids[index]
        for condition in conditions:
            start = perf_counter()
            try:
                found = model.lookup(name, condition)
                size = pair.dataset.size(index)
                times.model += perf_counter() - start
                clean = pair.dataset.truth(index)
                identity = identity_of(pair.dataset, index)
                truth = truth_under(clean, size, condition, seed=work.config.seed, image_id=identity)
                yield _row(work, pair, index, name, condition, size, found, truth)
            except Exception as error:
                yield Failure(index, name, str(condition), "model", describe(error), trace_of(error))


class ChunkRunner:
    """One attempt at the cells of a chunk with a model that must be called."""

    def __init__(
        self, pair: Pair, model: Model, attempt: Attempt, before: Mapping[int, str], times: Times
    ) -> None:
        self._work, self._config, self._attempt = attempt.work, attempt.work.config, attempt
        self._pair, self._model, self._before, self._times = pair, model, before, times
        self._hung: Counter[int] = Counter()

    def rows(self, wanted: Wanted) -> Iterator[Row | Failure]:
        size = 1 if self._attempt.one_by_one else self._config.batch
        prepared = self._prepare(wanted)
        while batch := list(islice(prepared, size)):
            yield from self._run_batch(batch)
            batch.clear()  # its images are freed before those of the next are made

    def _run_batch(self, batch: Sequence[PreparedCell | Failure]) -> Iterator[Row | Failure]:
        waiting = [cell for cell in batch if isinstance(cell, PreparedCell)]
        predicted = self._predict(waiting) if waiting else iter(())
        for cell in batch:
            yield cell if isinstance(cell, Failure) else next(predicted)

    def _prepare(self, wanted: Wanted) -> Iterator[PreparedCell | Failure]:
        """The corrupted images; at most a batch of them exists at any time."""
        for index, conditions in wanted.items():
            decoded = self._decode(index)
            for condition in conditions:
                fatal = self._attempt.skip.get((index, str(condition)))
                if fatal is not None:
                    kind, error, trace = "death", fatal, ""
                elif isinstance(decoded, Exception):
                    kind, error, trace = "image", describe(decoded), trace_of(decoded)
                else:
                    yield self._corrupt(decoded, index, condition)
                    continue
                yield Failure(index, self._pair.dataset.ids[index], str(condition), kind, error, trace)

    def _decode(self, index: int) -> DecodedImage | Exception:
        """The sample and its content, or the error that reading it raised."""
        start = perf_counter()
        try:
            sample = self._pair.dataset[index]
            content = content_of(self._pair.dataset, index, sample.image)
        except Exception as error:
            return error
        finally:
            self._times.decode += perf_counter() - start
            self._times.decoded += 1
        if self._before.get(index, content) != content:
            raise StoreError(
                f"{sample.id} of {self._pair.dataset.name} is not the image that this run began with. "
                "Restore the file, or run into another folder."
            )
        return DecodedImage(sample, content)

    def _corrupt(self, decoded: DecodedImage, index: int, condition: Condition) -> PreparedCell | Failure:
        """A corrupted image that the model may modify: never the sample's own, which others are made from."""
        start, sample = perf_counter(), decoded.sample
        try:
            if self._config.copies is not None and not condition.is_clean:
                return self._read_copy(sample, index, condition)
            corrupted = apply(
                sample,
                condition,
                seed=self._config.seed,
                classes=self._pair.dataset.classes,
                semantic_classes=self._pair.dataset.semantic_classes,
            )
            moved = change(sample.image, corrupted.image)
        except Exception as error:
            return Failure(index, sample.id, str(condition), "corruption", describe(error), trace_of(error))
        else:
            shared = np.may_share_memory(corrupted.image, sample.image)
            image = corrupted.image.copy() if shared else corrupted.image
            return PreparedCell(index, sample.id, condition, image, corrupted.truth, decoded.content, moved)
        finally:
            self._times.corrupt += perf_counter() - start

    def _read_copy(self, sample: Sample, index: int, condition: Condition) -> PreparedCell:
        """A stored corrupted copy of an image, with the truth under its condition."""
        path, content = read_copy(Path(str(self._config.copies)), self._pair.dataset, index, condition)
        image, size = read_image(content, str(path)), (sample.image.shape[0], sample.image.shape[1])
        if image.shape[:2] != size:
            raise InvalidImage(f"{path} is {image.shape[:2]} (height, width), its original {size}.")
        truth = truth_under(sample.truth, size, condition, seed=self._config.seed, image_id=sample.frame)
        moved = change(sample.image, image) if image.shape == sample.image.shape else None
        return PreparedCell(index, sample.id, condition, image, truth, size_and_digest(content), moved)

    def _predict(self, cells: Sequence[PreparedCell]) -> Iterator[Row | Failure]:
        """Call the model now, but make rows on demand: a packed noisy label map is larger than the map."""
        if len(cells) == 1 and self._hung[cells[0].index] >= PATIENCE:
            return iter([cells[0].failed("timeout", f"not tried: {PATIENCE} calls on this image hung")])
        if is_worker():
            in_progress = [(cell.index, str(cell.condition)) for cell in cells]
            write_note(self._work.out, self._attempt.chunk, in_progress)
        start = perf_counter()
        try:
            found = predict(self._model, [as_rgb(cell.image) for cell in cells], self._config.timeout)
        except Exception as error:
            if isinstance(error, ModelTimeout):
                self._reopen()
            if len(cells) > 1:
                return (outcome for cell in cells for outcome in self._predict_alone(cell))
            self._hung[cells[0].index] += isinstance(error, ModelTimeout)
            kind = "timeout" if isinstance(error, ModelTimeout) else "model"
            return iter([cells[0].failed(kind, describe(error), trace_of(error))])
        finally:
            self._times.model += perf_counter() - start
        return (self._checked(cell, one) for cell, one in zip(cells, found, strict=True))

    def _predict_alone(self, cell: PreparedCell) -> Iterator[Row | Failure]:
        """One image of a batch that failed, made again because the model may have written into it."""
        decoded = self._decode(cell.index)
        if isinstance(decoded, Exception):
            return iter([cell.failed("image", describe(decoded), trace_of(decoded))])
        again = self._corrupt(decoded, cell.index, cell.condition)
        return self._predict([again]) if isinstance(again, PreparedCell) else iter([again])

    def _checked(self, cell: PreparedCell, found: Prediction) -> Row | Failure:
        size = (cell.image.shape[0], cell.image.shape[1])
        try:
            return _row(
                self._work, self._pair, cell.index, cell.id, cell.condition, size, found,
                cell.truth, cell.content, cell.change,
            )  # fmt: skip
        except Exception as error:
            return cell.failed("model", describe(error), trace_of(error))

    def _reopen(self) -> None:
        # A call that was interrupted may have left the model in any state.
        forget_pair()
        self._pair = pair_for(self._work)
        assert isinstance(self._pair.model, Model)
        self._model = self._pair.model


def _row(
    work: Work, pair: Pair, index: int, name: str, condition: Condition, size: tuple[int, int],
    found: object, truth: Truth, content: str | None = None, change: Change | None = None,
) -> Row:  # fmt: skip
    """A checked row, with the agreement of its maps and the true ones, if the image has any."""
    model, dataset = pair.model, pair.dataset
    classes = len(model.classes or dataset.classes)
    semantic_classes = len(model.semantic_classes or dataset.semantic_classes)
    prediction = check_prediction(found, size, classes, semantic_classes)
    confusion = None
    if prediction.semantic is not None and truth.semantic is not None:
        side = max(len(dataset.semantic_classes), semantic_classes)
        confusion = Confusion.of(truth.semantic, prediction.semantic, classes=side, name=name)
    confidences = None
    if confusion is not None and truth.semantic is not None and prediction.confidence is not None:
        assert prediction.semantic is not None
        confidences = confidence_sums(
            truth.semantic, prediction.semantic, prediction.confidence, _map_labels(pair)
        )
    overlap = None
    if prediction.panoptic is not None and truth.panoptic is not None and truth.semantic is not None:
        overlap = overlaps(truth, prediction.panoptic, name=name)
    return Row.of(
        index, name, condition, work.recipe(condition), size, prediction, confusion, content, change,
        confidences, overlap,
    )  # fmt: skip


def _map_labels(pair: Pair) -> Ints:
    """The dataset's label of each class of the model's maps."""
    names = pair.dataset.semantic_classes
    return np.asarray(match_classes(pair.model.semantic_classes or names, names).labels, np.int64)
