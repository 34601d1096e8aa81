from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from stormproof.core.threads import cached, map_in_threads, remember


def test_results_come_in_the_order_of_jobs() -> None:
    first_may_end = threading.Event()

    def wait_for_the_second(job: int) -> int:
        if job == 0:
            assert first_may_end.wait(10)
        else:
            first_may_end.set()
        return job

    assert list(map_in_threads(wait_for_the_second, range(5), threads=2)) == [0, 1, 2, 3, 4]


def test_few_jobs_are_made_ahead() -> None:
    made: list[int] = []

    def jobs() -> Iterator[int]:
        for job in range(20):
            made.append(job)
            yield job

    results = map_in_threads(abs, jobs(), threads=2)
    assert next(results) == 0
    assert len(made) == 3
    assert list(results) == list(range(1, 20))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_ends_the_work(threads: int) -> None:
    done: list[int] = []

    def fail_at_two(job: int) -> None:
        if job == 2:
            raise ValueError("two")
        done.append(job)

    with pytest.raises(ValueError, match="two"):
        list(map_in_threads(fail_at_two, range(1000), threads=threads))
    assert len(done) < 20


class _Slow:
    """Its property waits until that of another object is computed as well."""

    def __init__(self, both: threading.Barrier) -> None:
        self.both, self.computed = both, 0

    @cached
    def answer(self) -> int:
        self.both.wait(10)
        self.computed += 1
        return 42


def test_threads_compute_a_cached_property_of_two_objects_at_the_same_time() -> None:
    both = threading.Barrier(2)
    objects = [_Slow(both), _Slow(both)]
    assert list(map_in_threads(lambda each: each.answer, objects, threads=2)) == [42, 42]
    assert [each.answer for each in objects] == [42, 42]
    assert [each.computed for each in objects] == [1, 1]


def test_remembers_what_was_made_for_the_last_key() -> None:
    owner, made = _Slow(threading.Barrier(1)), iter(range(9))
    one, other = object(), object()
    asked = [remember(owner, "_last", key, lambda: next(made)) for key in (one, one, other, other, one)]
    assert asked == [0, 0, 1, 1, 2]
