"""Linear sorts against NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stormproof.metrics.ordering import by_falling_score, by_number

SCORES = st.lists(
    st.one_of(st.sampled_from([0.0, -0.0, 0.5, 1.0, 0.25]), st.floats(-10, 10, allow_nan=False)), max_size=40
)


@given(SCORES)
def test_falling_scores_keep_ties_in_order(scores: list[float]) -> None:
    array = np.array(scores, np.float64)
    assert by_falling_score(array).tolist() == np.argsort(-array, kind="stable").tolist()


@given(st.lists(st.integers(0, 6), max_size=40))
def test_numbers_keep_the_order_given(numbers: list[int]) -> None:
    order = np.random.default_rng(len(numbers)).permutation(len(numbers))
    array = np.array(numbers, np.int64)
    expected = order[np.argsort(array[order], kind="stable")]
    assert by_number(array, 7, order).tolist() == expected.tolist()
