"""The stages of a cell, each alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import StoreError
from stormproof.core.sample import Prediction, Sample
from stormproof.core.threads import run_ahead
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine import stages
from stormproof.engine.cells import _Line
from stormproof.engine.failures import Failure
from stormproof.engine.stages import DecodedImage, Pace, PreparedCell
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.stages.decode import Decoder, ReadAhead
from stormproof.engine.stages.encode import check_together
from stormproof.engine.stages.predict import call_model
from stormproof.engine.work import Times


@pytest.fixture
def dataset() -> SampleDataset:
    rng = np.random.default_rng(0)
    return SampleDataset.of(
        [Sample(f"im{i}", rng.integers(0, 256, (24, 32, 3), np.uint8)) for i in range(3)], classes=("thing",)
    )


def test_threads_run_ahead_and_results_keep_their_order() -> None:
    begun, asked = threading.Semaphore(0), list[int]()

    def double(number: int) -> int:
        asked.append(number)
        begun.release()
        return 2 * number

    with ThreadPoolExecutor(3) as threads:
        doubled: Iterator[int] = run_ahead(threads, double, range(100), ahead=4)
        assert next(doubled) == 0
        for _ in range(5):  # the one that was asked for, and four ahead
            assert begun.acquire(timeout=60)
        assert max(asked) == 4
        assert list(doubled) == [2 * number for number in range(1, 100)]


def test_an_error_of_a_thread_is_raised_where_its_result_is_asked_for() -> None:
    with ThreadPoolExecutor(2) as threads:
        inverse = run_ahead(threads, lambda number: 1 // number, [1, 0, 1], ahead=3)
        assert next(inverse) == 1
        with pytest.raises(ZeroDivisionError):
            next(inverse)


def test_decoding_counts_its_time_and_refuses_an_image_that_changed(dataset: SampleDataset) -> None:
    times = Times()
    decoded = Decoder(dataset, {}, times)(1)
    assert isinstance(decoded, DecodedImage)
    assert (decoded.index, decoded.sample.id, times.decoded) == (1, "im1", 1)
    assert Decoder(dataset, {1: decoded.content}, times)(1) is not None
    with pytest.raises(StoreError, match="im1 of samples is not the image that this run began with"):
        Decoder(dataset, {1: "other"}, times)(1)
    assert isinstance(Decoder(dataset, {}, times)(99), IndexError)


def test_a_corrupted_image_is_never_the_clean_one(dataset: SampleDataset) -> None:
    times = Times()
    decoded = Decoder(dataset, {}, times)(0)
    assert isinstance(decoded, DecodedImage)
    corrupt = Corruptor(dataset, seed=0, copies=None, times=times)
    for condition in (CLEAN, Condition.parse("contrast@3")):
        cell = corrupt(decoded, condition)
        assert isinstance(cell, PreparedCell)
        assert not np.may_share_memory(cell.image, decoded.sample.image)
        assert cell.size == (24, 32)
    assert times.corrupt > 0


def test_a_condition_that_cannot_be_made_is_a_failure_of_its_cell(dataset: SampleDataset) -> None:
    times = Times()
    decoded = Decoder(dataset, {}, times)(0)
    assert isinstance(decoded, DecodedImage)
    failed = Corruptor(dataset, seed=0, copies=None, times=times)(decoded, Condition.parse("haze@3"))
    assert isinstance(failed, Failure)
    assert (failed.kind, failed.cell) == ("corruption", (0, "haze@3"))


def test_a_model_gets_its_own_list(dataset: SampleDataset) -> None:
    class Greedy:
        name, classes, semantic_classes, fingerprint = "greedy", ("thing",), (), "0"

        def __call__(self, images: list[np.ndarray]) -> list[Prediction]:
            count = len(images)
            images.clear()
            return [Prediction()] * count

    images = [sample.image for sample in dataset.samples]
    assert len(call_model(Greedy(), images, None)) == 3
    assert len(images) == 3


def _boxes(count: int, **other: object) -> Prediction:
    corners = np.arange(4.0 * count).reshape(-1, 4) / 7
    return Prediction(corners, np.linspace(0, 1, count), np.arange(count) % 3, **other)  # type: ignore[arg-type]


def test_checking_boxes_together_equals_checking_them_one_by_one() -> None:
    answers = [_boxes(count) for count in (3, 0, 5)]
    together = check_together(answers, 3)
    assert together is not None
    for one, checked in zip(answers, together, strict=True):
        for name in ("boxes", "scores", "labels", "sides"):
            own, other = getattr(one, name), getattr(checked, name)
            assert own.dtype == other.dtype
            assert (own.tobytes(), own.shape) == (other.tobytes(), other.shape)
            assert not np.may_share_memory(own, other)  # the model may use its arrays again


def test_an_unusual_batch_is_checked_one_by_one() -> None:
    changed = _boxes(2)
    changed.boxes[0, 2] = -9.0
    certain = _boxes(2)
    certain.scores[0] = np.nan
    stated = _boxes(2, sides=np.nextafter(_boxes(2).sides, 9))
    odd = [changed, certain, stated, _boxes(2, semantic=np.zeros((2, 2), np.uint8)), None]
    for one in odd:
        assert check_together([_boxes(1), one], 3) is None
    assert check_together([_boxes(3)], 2) is None  # label 2 of 2 classes
    assert check_together([], 3) is None


def test_the_next_chunk_is_read_ahead_and_only_once(dataset: SampleDataset) -> None:
    times = Times()
    ahead, decode = ReadAhead(dataset), Decoder(dataset, {}, times)
    assert [index for index, _ in ahead(decode, [0, 1], [2], ahead=3)] == [0, 1]
    changed = Decoder(dataset, {2: "0:other"}, times)  # its chunk has rows of another image
    with pytest.raises(StoreError, match="is not the image that this run began with"):
        list(ahead(changed, [2], [], ahead=3))
    assert times.decoded == 3
    assert [index for index, _ in ahead(decode, [1, 0], [], ahead=1)] == [1, 0]  # not those foreseen


def test_work_beside_the_model_waits_for_the_second_half_of_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(stages, "perf_counter", lambda: now[0])
    monkeypatch.setattr(stages, "sleep", sleep)
    pace = Pace()
    with pace.call():
        sleep(8)  # what calls usually take
    with pace.call():
        start = now[0]
        assert pace.keep(lambda: now[0]) == start + 4
    assert pace.keep(lambda: now[0]) < start + 4.1  # between calls it is soon allowed


def test_a_batch_of_failures_is_no_call_that_others_keep_pace_with() -> None:
    """It would take no time, as if the model's next calls did."""
    failed = Failure.of(OSError("no file"), 0, "a", CLEAN, "image")
    config = SimpleNamespace(batch=2)
    line = SimpleNamespace(attempt=SimpleNamespace(work=SimpleNamespace(config=config)), predict=None)
    pace = Pace()
    with pace.call():
        sleep(0.01)
    usual = pace._usual
    assert [*_Line._predict_all(line, [failed] * 3, pace)] == [([failed] * 2, []), ([failed], [])]
    assert pace._usual == usual


def test_the_first_images_are_read_at_once_and_each_image_once(dataset: SampleDataset) -> None:
    times = Times()
    ahead, decode = ReadAhead(dataset, uses=100), Decoder(dataset, {}, times)
    found = [index for index, _ in ahead(decode, [0, 1, 2], [], ahead=2, at_once=2)]
    assert found == [0, 1, 2]
    assert times.decoded == 3
