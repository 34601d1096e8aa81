"""From images to answers: decode once, corrupt under every condition, ask the model in batches.

Cells go through in the order of rows: image by image, conditions by their string. One bad cell costs only
itself: a batch that fails is asked again image by image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

import numpy as np

from stormproof.condition import Condition
from stormproof.corruptions import apply, truth_under
from stormproof.engine.guard import ModelTimeout, ask, check_prediction, describe, is_watched
from stormproof.engine.in_hand import write_in_hand
from stormproof.engine.pair import Pair, forget_pair, pair_for
from stormproof.engine.work import Attempt, Failure, Times, Work
from stormproof.metrics.semantic import Confusion
from stormproof.models.geometry import as_rgb
from stormproof.models.model import Model, Precomputed
from stormproof.sample import Image, Prediction, Sample, Truth
from stormproof.store.schema import Row

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

    def failed(self, kind: str, error: str) -> Failure:
        return Failure(self.index, self.id, str(self.condition), kind, error)


def answers(
    work: Work, pair: Pair, attempt: Attempt, wanted: Wanted, times: Times
) -> Iterator[Row | Failure]:
    """Every wanted cell's answer or failure, in the order of rows."""
    if isinstance(pair.model, Precomputed):
        return _looked_up(work, pair, pair.model, wanted, times)
    return _Asking(work, pair, pair.model, attempt, times).answers(wanted)


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
                yield Failure(index, name, str(condition), "model", describe(error))


class _Asking:
    """One attempt at a chunk with a model that must be asked."""

    def __init__(self, work: Work, pair: Pair, model: Model, attempt: Attempt, times: Times) -> None:
        self._work, self._pair, self._model, self._attempt, self._times = work, pair, model, attempt, times
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
            sample = self._decoded(index)
            for condition in conditions:
                guilty = self._attempt.skip.get((index, str(condition)))
                if guilty is not None:
                    kind, error = "death", guilty
                elif isinstance(sample, str):
                    kind, error = "image", sample
                else:
                    yield self._corrupted(sample, index, condition, last=len(conditions) == 1)
                    continue
                yield Failure(index, self._pair.dataset.ids[index], str(condition), kind, error)

    def _decoded(self, index: int) -> Sample | str:
        """The sample, or why there is none."""
        start = perf_counter()
        try:
            return self._pair.dataset[index]
        except Exception as error:
            return describe(error)
        finally:
            self._times.decode += perf_counter() - start
            self._times.decoded += 1

    def _corrupted(self, sample: Sample, index: int, condition: Condition, last: bool) -> Ready | Failure:
        """An image for the model, which may write into it: not the sample's own unless that is done with."""
        start = perf_counter()
        try:
            changed = apply(
                sample,
                condition,
                seed=self._work.seed,
                classes=self._pair.dataset.classes,
                semantic_classes=self._pair.dataset.semantic_classes,
            )
        except Exception as error:
            return Failure(index, sample.id, str(condition), "corruption", describe(error))
        else:
            own = not last and np.may_share_memory(changed.image, sample.image)
            image = changed.image.copy() if own else changed.image
            return Ready(index, sample.id, condition, image, changed.truth)
        finally:
            self._times.corrupt += perf_counter() - start

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
            return iter([cells[0].failed(kind, describe(error))])
        finally:
            self._times.model += perf_counter() - start
        return (self._checked(cell, answer) for cell, answer in zip(cells, said, strict=True))

    def _alone(self, cell: Ready) -> Iterator[Row | Failure]:
        """Ask about one image of a batch that failed, made anew: the model may have written into it."""
        sample = self._decoded(cell.index)
        if isinstance(sample, str):
            return iter([cell.failed("image", sample)])
        again = self._corrupted(sample, cell.index, cell.condition, last=True)
        return self._predicted([again]) if isinstance(again, Ready) else iter([again])

    def _checked(self, cell: Ready, said: Prediction) -> Row | Failure:
        size = (cell.image.shape[0], cell.image.shape[1])
        try:
            return _row(self._work, self._pair, cell.index, cell.id, cell.condition, size, said, cell.truth)
        except Exception as error:
            return cell.failed("model", describe(error))

    def _reopen(self) -> None:
        # A call that was cut off may have left the model in any state.
        forget_pair()
        self._pair = pair_for(self._work)
        assert isinstance(self._pair.model, Model)
        self._model = self._pair.model


def _row(
    work: Work, pair: Pair, index: int, name: str, condition: Condition, size: tuple[int, int],
    said: object, truth: Truth,
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
    return Row.of(index, name, condition, work.recipe(condition), size, answer, confusion)
