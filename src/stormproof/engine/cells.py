"""From images to answers: decode once, corrupt under every condition, ask the model in batches.

Cells go through in the order of rows: image by image, conditions by their string. One bad cell costs only
itself: a batch that fails is asked again image by image.
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
from stormproof.core.sample import Image, Prediction, Sample, Truth, as_rgb
from stormproof.corruptions import apply, truth_under
from stormproof.datasets.image_files import content_of, copy_of, file_content
from stormproof.engine.guard import ModelTimeout, ask, check_prediction, describe, is_watched, trace_of
from stormproof.engine.in_hand import write_in_hand
from stormproof.engine.pair import Pair, forget_pair, pair_for
from stormproof.engine.work import Attempt, Failure, Times, Work
from stormproof.metrics.quality import Change, change
from stormproof.metrics.semantic import Confusion
from stormproof.models.model import Model, Precomputed
from stormproof.results.store.schema import Row

Wanted = Mapping[int, Sequence[Condition]]
PATIENCE = 3  # calls that may hang on one image before its other conditions are left untried


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A cell whose image is waiting for the model."""

    index: int
    id: str
    condition: Condition
    image: Image
    truth: Truth
    content: str
    change: Change | None

    def failed(self, kind: str, error: str, trace: str = "") -> Failure:
        return Failure(self.index, self.id, str(self.condition), kind, error, trace)


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """An image as read, with what tells it from any other."""

    sample: Sample
    content: str


def answers(
    pair: Pair, attempt: Attempt, wanted: Wanted, before: Mapping[int, str], times: Times
) -> Iterator[Row | Failure]:
    """Every wanted cell's answer or failure, in the order of rows.

    `before` is the content of images as rows that are there recorded it: other pixels are refused.
    """
    if isinstance(pair.model, Precomputed):
        return _looked_up(attempt.work, pair, pair.model, wanted, times)
    if attempt.work.device is not None and not attempt.one_by_one:
        from stormproof.engine.on_device import AskingOnDevice  # torch is loaded for it alone

        return AskingOnDevice(pair, pair.model, attempt, before, times).answers(wanted)
    return Asking(pair, pair.model, attempt, before, times).answers(wanted)


def _looked_up(
    work: Work, pair: Pair, model: Precomputed, wanted: Wanted, times: Times
) -> Iterator[Row | Failure]:
    """Answers that were made beforehand: no image is decoded."""
    for index, conditions in wanted.items():
        name = pair.dataset.ids[index]
        for condition in conditions:
            start = perf_counter()
            try:
                said = model.lookup(name, condition)
                size = pair.dataset.size(index)
                times.model += perf_counter() - start
                known = pair.dataset.truth(index)
                truth = truth_under(known, size, condition, seed=work.seed, image_id=name)
                yield _row(work, pair, index, name, condition, size, said, truth)
            except Exception as error:
                yield Failure(index, name, str(condition), "model", describe(error), trace_of(error))


class Asking:
    """One attempt at a chunk with a model that must be asked."""

    def __init__(
        self, pair: Pair, model: Model, attempt: Attempt, before: Mapping[int, str], times: Times
    ) -> None:
        self._work, self._attempt = attempt.work, attempt
        self._pair, self._model, self._before, self._times = pair, model, before, times
        self._hung: Counter[int] = Counter()

    def answers(self, wanted: Wanted) -> Iterator[Row | Failure]:
        size = 1 if self._attempt.one_by_one else self._work.batch
        prepared = self._prepared(wanted)
        while batch := list(islice(prepared, size)):
            yield from self._answered(batch)
            batch.clear()  # its images go before those of the next are made

    def _answered(self, batch: Sequence[Ready | Failure]) -> Iterator[Row | Failure]:
        waiting = [cell for cell in batch if isinstance(cell, Ready)]
        answered = self._predicted(waiting) if waiting else iter(())
        for cell in batch:
            yield cell if isinstance(cell, Failure) else next(answered)

    def _prepared(self, wanted: Wanted) -> Iterator[Ready | Failure]:
        """The corrupted images; at most a batch of them exists at any time."""
        for index, conditions in wanted.items():
            read = self._decoded(index)
            for condition in conditions:
                guilty = self._attempt.skip.get((index, str(condition)))
                if guilty is not None:
                    kind, error, trace = "death", guilty, ""
                elif isinstance(read, Exception):
                    kind, error, trace = "image", describe(read), trace_of(read)
                else:
                    yield self._corrupted(read, index, condition, last=len(conditions) == 1)
                    continue
                yield Failure(index, self._pair.dataset.ids[index], str(condition), kind, error, trace)

    def _decoded(self, index: int) -> Read | Exception:
        """The sample and its content, or why there is none."""
        start = perf_counter()
        try:
            sample = self._pair.dataset[index]
            content = content_of(self._pair.dataset, index, sample.image)
        except Exception as error:
            return error
        finally:
            self._times.decode += perf_counter() - start
            self._times.decoded += 1
        if self._work.copies is None and self._before.get(index, content) != content:
            raise StoreError(
                f"{sample.id} of {self._pair.dataset.name} is not the image that this run began with. "
                "Restore the file, or run into another folder."
            )
        return Read(sample, content)

    def _corrupted(self, read: Read, index: int, condition: Condition, last: bool) -> Ready | Failure:
        """An image for the model, which may write into it: not the sample's own unless that is done with."""
        start, sample = perf_counter(), read.sample
        try:
            if self._work.copies is not None and not condition.is_clean:
                return self._copied(sample, index, condition)
            changed = apply(
                sample,
                condition,
                seed=self._work.seed,
                classes=self._pair.dataset.classes,
                semantic_classes=self._pair.dataset.semantic_classes,
            )
            moved = change(sample.image, changed.image)
        except Exception as error:
            return Failure(index, sample.id, str(condition), "corruption", describe(error), trace_of(error))
        else:
            own = not last and np.may_share_memory(changed.image, sample.image)
            image = changed.image.copy() if own else changed.image
            return Ready(index, sample.id, condition, image, changed.truth, read.content, moved)
        finally:
            self._times.corrupt += perf_counter() - start

    def _copied(self, sample: Sample, index: int, condition: Condition) -> Ready:
        """The copy of an image that somebody made under a condition, with the truth it has there."""
        assert self._work.copies is not None
        path = copy_of(Path(self._work.copies), self._pair.dataset, index, condition)
        image, size = read_image(path), (sample.image.shape[0], sample.image.shape[1])
        if image.shape[:2] != size:
            raise InvalidImage(f"{path} is {image.shape[:2]} (height, width), its original {size}.")
        truth = truth_under(sample.truth, size, condition, seed=self._work.seed, image_id=sample.id)
        moved = change(sample.image, image) if image.shape == sample.image.shape else None
        return Ready(index, sample.id, condition, image, truth, file_content(path), moved)

    def _predicted(self, cells: Sequence[Ready]) -> Iterator[Row | Failure]:
        """Ask now; make rows as they are taken, since a packed noisy label map is larger than the map."""
        tired = self._hung[cells[0].index] >= PATIENCE
        if len(cells) == 1 and tired:
            return iter([cells[0].failed("timeout", f"not tried: {PATIENCE} calls on this image hung")])
        if is_watched():
            in_hand = [(cell.index, str(cell.condition)) for cell in cells]
            write_in_hand(self._work.out, self._attempt.chunk, in_hand)
        start = perf_counter()
        try:
            said = ask(self._model, [as_rgb(cell.image) for cell in cells], self._work.timeout)
        except Exception as error:
            if isinstance(error, ModelTimeout):
                self._reopen()
            if len(cells) > 1:
                return (answer for cell in cells for answer in self._alone(cell))
            self._hung[cells[0].index] += isinstance(error, ModelTimeout)
            kind = "timeout" if isinstance(error, ModelTimeout) else "model"
            return iter([cells[0].failed(kind, describe(error), trace_of(error))])
        finally:
            self._times.model += perf_counter() - start
        return (self._checked(cell, answer) for cell, answer in zip(cells, said, strict=True))

    def _alone(self, cell: Ready) -> Iterator[Row | Failure]:
        """Ask about one image of a batch that failed, made anew: the model may have written into it."""
        read = self._decoded(cell.index)
        if isinstance(read, Exception):
            return iter([cell.failed("image", describe(read), trace_of(read))])
        again = self._corrupted(read, cell.index, cell.condition, last=True)
        return self._predicted([again]) if isinstance(again, Ready) else iter([again])

    def _checked(self, cell: Ready, said: Prediction) -> Row | Failure:
        size = (cell.image.shape[0], cell.image.shape[1])
        try:
            return _row(
                self._work, self._pair, cell.index, cell.id, cell.condition, size, said,
                cell.truth, cell.content, cell.change,
            )  # fmt: skip
        except Exception as error:
            return cell.failed("model", describe(error), trace_of(error))

    def _reopen(self) -> None:
        # A call that was cut off may have left the model in any state.
        forget_pair()
        self._pair = pair_for(self._work)
        assert isinstance(self._pair.model, Model)
        self._model = self._pair.model


def _row(
    work: Work, pair: Pair, index: int, name: str, condition: Condition, size: tuple[int, int],
    said: object, truth: Truth, content: str | None = None, change: Change | None = None,
) -> Row:  # fmt: skip
    """A checked row, with the confusion of its label map where the truth has one."""
    model, dataset = pair.model, pair.dataset
    known, semantic = (
        len(model.classes or dataset.classes),
        len(model.semantic_classes or dataset.semantic_classes),
    )
    answer = check_prediction(said, size, known, semantic)
    confusion = None
    if answer.semantic is not None and truth.semantic is not None:
        side = max(len(dataset.semantic_classes), semantic)
        confusion = Confusion.of(truth.semantic, answer.semantic, classes=side, name=name)
    return Row.of(
        index, name, condition, work.recipe(condition), size, answer, confusion, content, change
    )  # fmt: skip
