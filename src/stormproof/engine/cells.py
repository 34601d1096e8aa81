"""From images to rows: the four stages in a line.

Rows come in the order of cells: image by image, conditions sorted as strings. On a device, some images at a
time go through the line condition by condition, and their rows are sorted; decoding and encoding run beside
the model.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice, repeat, takewhile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.sample import Truth
from stormproof.core.threads import Job, Made, run_ahead
from stormproof.corruptions import truth_under
from stormproof.datasets.dataset import Dataset, identity_of
from stormproof.engine.failures import Failure
from stormproof.engine.feeding import Feeders
from stormproof.engine.pair import Pair
from stormproof.engine.stages import Answer, AnsweredBatch, DecodedImage, Pace, PreparedCell, Wanted
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.stages.decode import Decoder, ReadAhead
from stormproof.engine.stages.encode import Encoder
from stormproof.engine.stages.predict import Predictor
from stormproof.engine.work import Attempt, Times, Work
from stormproof.models.model import Precomputed
from stormproof.results.store.schema import Row, RowBlock

if TYPE_CHECKING:
    from stormproof.engine.stages.corrupt_on_device import DeviceCorruptor, UploadedImages

_NO_IMAGE = np.zeros((0, 0, 3), np.uint8)  # of a cell whose prediction was made before
_TOGETHER = 4  # of the model's batches that are corrupted at once: fewer launches
Read = tuple[int, DecodedImage | Exception]
Outcomes = tuple[list[Failure], AnsweredBatch | list[Answer | Failure]]  # of a batch
Take = Callable[[Iterable[Row | Failure] | RowBlock], None]
Encoded = list[Row | Failure] | RowBlock


def run_cells(
    pair: Pair, attempt: Attempt, wanted: Wanted, before: Mapping[int, str], times: Times, take: Take
) -> None:
    """Hand the row or the failure of every wanted cell to `take`, in the order of rows.

    `before` holds the digests of images that existing rows recorded: an image that changed is refused. On a
    device, `take` is called several times, by a thread beside the model.
    """
    if isinstance(pair.model, Precomputed):
        take(_look_up(pair, pair.model, attempt, wanted, times))
        return
    line = _Line(pair, attempt, before, times)
    device = attempt.work.config.device
    if device is None or attempt.one_by_one:
        is_fed = attempt.work.config.engine == "feed"
        take(line.run(wanted, _feeders_of(attempt.work) if is_fed else None))
        return
    from stormproof.engine.stages.corrupt_on_device import DeviceCorruptor  # loads torch

    seed, keep = attempt.work.config.seed, line.predict.takes_tensors
    _leave_old_objects_alone(attempt.work)
    line.run_on_device(wanted, DeviceCorruptor(line.corrupt, device, seed, times, keep=keep), take)


_frozen: list[Path] = []  # the folder of the run whose first chunk left older objects alone


def _leave_old_objects_alone(work: Work) -> None:
    """Let the garbage collector look at new objects only: each look at all those of torch stops every
    thread for a fifth of a second. If something is frozen already, its owner decides.

    Once in a run: what one chunk leaves behind must be found during the next.
    """
    if _frozen != [work.out]:
        look_at_old_objects()
        if not gc.get_freeze_count():
            gc.collect()  # the model of the run before
            gc.freeze()
            _frozen[:] = [work.out]


def look_at_old_objects() -> None:
    """Let the garbage collector look at all objects again."""
    if _frozen:
        _frozen.clear()
        gc.unfreeze()


_ahead: list[ReadAhead] = []  # of the dataset in use


def _reader(dataset: Dataset, uses: int) -> ReadAhead:
    if not _ahead or _ahead[0].dataset is not dataset:
        _ahead[:] = [ReadAhead(dataset, uses)]
    return _ahead[0]


_feeding: list[Feeders] = []  # of the run in progress


def _feeders_of(work: Work) -> Feeders:
    if not _feeding or _feeding[0].out != work.out:
        end_feeding()
        _feeding[:] = [Feeders(work)]
    return _feeding[0]


def end_feeding() -> None:
    """End the processes that feed the model."""
    while _feeding:
        _feeding.pop().end()


def _look_up(
    pair: Pair, model: Precomputed, attempt: Attempt, wanted: Wanted, times: Times
) -> Iterator[Row | Failure]:
    """Rows of precomputed predictions: no image is decoded."""
    encode, seed = Encoder(attempt.work, pair), attempt.work.config.seed
    for index, conditions in wanted.items():
        name = pair.dataset.ids[index]
        for condition in conditions:
            truth = partial(_truth, pair.dataset, index, condition, seed)
            start = perf_counter()
            try:
                prediction, size = model.lookup(name, condition), pair.dataset.size(index)
            except Exception as error:
                yield Failure.of(error, index, name, condition, "model")
                continue
            times.model += perf_counter() - start
            cell = PreparedCell(index, name, condition, _NO_IMAGE, size, truth, None, lambda: None)
            yield encode.one(cell, prediction)


def _truth(dataset: Dataset, index: int, condition: Condition, seed: int) -> Truth:
    size, identity = dataset.size(index), identity_of(dataset, index)
    return truth_under(dataset.truth(index), size, condition, seed=seed, image_id=identity)


class _Line:
    """The stages of one attempt at the cells of a chunk."""

    def __init__(self, pair: Pair, attempt: Attempt, before: Mapping[int, str], times: Times) -> None:
        config = attempt.work.config
        self.pair, self.attempt, self.times = pair, attempt, times
        self.decode = Decoder(pair.dataset, before, times)
        self.corrupt = Corruptor(pair.dataset, seed=config.seed, copies=config.copies, times=times)
        self.predict = Predictor(pair, attempt, times, self._again)
        self.encode = Encoder(attempt.work, pair)

    def _again(self, cell: PreparedCell) -> PreparedCell | Failure:
        decoded = self.decode(cell.index)
        if isinstance(decoded, Exception):
            return self._unreadable(decoded, cell.index, cell.condition)
        return self.corrupt(decoded, cell.condition)

    def run(self, wanted: Wanted, feeders: Feeders | None = None) -> Iterator[Row | Failure]:
        """One batch after the other, of which at most one exists at any time; two with `feeders`, from whom
        the next is received while the model works."""
        size = 1 if self.attempt.one_by_one else self.attempt.work.config.batch
        prepared = self._prepare(wanted) if feeders is None else self._receive(wanted, feeders)

        def following(_: None) -> list[PreparedCell | Failure]:
            return list(islice(prepared, size))

        with ThreadPoolExecutor(1) as thread:
            turns = repeat(None)
            fed = feeders is not None
            batches = run_ahead(thread, following, turns, ahead=1) if fed else map(following, turns)
            for batch in takewhile(bool, batches):
                yield from self._rows(batch)
                batch.clear()  # its images are freed before those of the next are made

    def _receive(self, wanted: Wanted, feeders: Feeders) -> Iterator[PreparedCell | Failure]:
        cells = [(index, condition) for index, conditions in wanted.items() for condition in conditions]
        for (index, condition), fed in zip(cells, feeders(cells), strict=True):
            if fed is None:
                yield from self._prepare({index: [condition]})
            else:
                content, cell, times = fed
                self.decode.require_same(index, cell.id, content)
                self.times.add(times)
                yield cell

    def _prepare(self, wanted: Wanted) -> Iterator[PreparedCell | Failure]:
        for index, conditions in wanted.items():
            decoded = self.decode(index)
            for condition in conditions:
                fatal = self.attempt.skip.get((index, str(condition)))
                if fatal is not None:
                    yield Failure(index, self.pair.dataset.ids[index], str(condition), "death", fatal)
                elif isinstance(decoded, Exception):
                    yield self._unreadable(decoded, index, condition)
                else:
                    yield self.corrupt(decoded, condition)

    def _rows(self, batch: Sequence[PreparedCell | Failure]) -> Iterator[Row | Failure]:
        waiting = [cell for cell in batch if isinstance(cell, PreparedCell)]
        rows = iter(self.encode(self.predict(waiting) if waiting else ()))
        return (cell if isinstance(cell, Failure) else next(rows) for cell in batch)

    def run_on_device(self, wanted: Wanted, corrupt: DeviceCorruptor, take: Take) -> None:
        """Some images at a time, condition by condition. The model's batches span conditions, so that they
        are full. Threads decode and upload the next images while the model works, launch the corruption of
        the next condition, and encode, sort and store the rows of the last."""
        batch = self.attempt.work.config.batch
        together, pace, conditions = _TOGETHER * batch, Pace(), self.attempt.work.conditions
        uploaders, launchers, storers = (ThreadPoolExecutor(1) for _ in range(3))
        with uploaders, launchers, storers:
            following = self.attempt.work.following(self.attempt.chunk)[:together]
            read = _reader(self.pair.dataset, len(conditions))
            first = together if read.started else batch  # the device waits for the first images
            sizes = [first, *repeat(together, -(-(len(wanted) - first) // together))]
            reads = read(self.decode, [*wanted], following, ahead=2 * together, at_once=first)
            upload = partial(self._upload, corrupt, reads)

            def launch(make: Callable[[Job], Made], jobs: Iterable[Job]) -> Iterator[Made]:
                return run_ahead(launchers, partial(pace.keep, make), jobs, ahead=1)

            stored: Future[None] | None = None
            for uploaded, failed in run_ahead(uploaders, upload, sizes, ahead=1):
                unread = [self._unreadable(why, i, condition) for i, why in failed for condition in wanted[i]]
                cells = corrupt.under_all(uploaded, conditions, wanted, launch)
                outcomes = self._predict_all(chain(unread, cells), pace)
                encoded = [storers.submit(pace.keep, self._encode, some) for some in outcomes]
                if stored is not None:
                    stored.result()  # the rows of at most two groups are in memory
                stored = storers.submit(_take_sorted, encoded, take)
            if stored is not None:
                stored.result()

    def _upload(
        self, corrupt: DeviceCorruptor, reads: Iterator[Read], count: int
    ) -> tuple[list[UploadedImages], list[tuple[int, Exception]]]:
        some = list(islice(reads, count))
        images = [read for _, read in some if isinstance(read, DecodedImage)]
        return corrupt.upload(images), [(i, read) for i, read in some if isinstance(read, Exception)]

    def _predict_all(self, cells: Iterable[PreparedCell | Failure], pace: Pace) -> Iterator[Outcomes]:
        """What the model returns for the cells, a batch at a time, in any order."""
        rest = iter(cells)
        while batch := list(islice(rest, self.attempt.work.config.batch)):
            failed = [cell for cell in batch if isinstance(cell, Failure)]
            ready = [cell for cell in batch if not isinstance(cell, Failure)]
            answers: Iterable[Answer | Failure] = ()
            if ready:  # without a call there is none to keep pace with
                with pace.call():
                    answers = self.predict(ready)
            yield failed, answers if isinstance(answers, AnsweredBatch) else list(answers)

    def _encode(self, outcomes: Outcomes) -> Encoded:
        failed, answers = outcomes
        rows = self.encode(answers)
        return rows if isinstance(rows, RowBlock) and not failed else [*failed, *rows]

    def _unreadable(self, error: Exception, index: int, condition: Condition) -> Failure:
        return Failure.of(error, index, self.pair.dataset.ids[index], condition, "image")


def _take_sorted(encoded: Sequence[Future[Encoded]], take: Take) -> None:
    made = [future.result() for future in encoded]
    blocks = [one for one in made if isinstance(one, RowBlock)]
    if len(blocks) == len(made):
        take(RowBlock.in_order(blocks))
    else:
        take(sorted(chain.from_iterable(made), key=lambda row: row.cell))
