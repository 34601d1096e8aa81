"""Sorting millions of detections in linear time: by falling score, and by small integers.

A comparison sort of half a million scores takes as long as matching them. Both sorts are stable, as every
protocol requires: equal entries keep their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats, Ints

_DIGIT = 16  # bits sorted by at a time
_SIGN = np.uint64(1 << 63)


def by_falling_score(scores: Floats) -> Ints:
    """The indices of the scores, highest first.

    >>> by_falling_score(np.array([0.5, 0.9, 0.5, 0.0])).tolist()
    [1, 0, 2, 3]
    """
    bits = (np.asarray(scores, np.float64) + 0.0).view(np.uint64)  # + 0.0 turns −0.0 into 0.0
    # Bit patterns of positive floats rise with the value, those of negative floats fall.
    rising = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    order: Ints = _radix(~rising)
    return order


def by_number(numbers: Ints, count: int, order: Ints) -> Ints:
    """Sort the indices in `order` by `numbers[index]`, which is between 0 and `count` − 1.

    >>> by_number(np.array([1, 0, 1]), 2, np.array([2, 1, 0])).tolist()
    [1, 2, 0]
    """
    sorted_order: Ints = _counting(np.asarray(numbers, np.int64), count, order)
    return sorted_order


def places(order: Ints, count: int) -> Ints:
    """Where each of `count` entries stands in `order`; −1 for one that does not.

    >>> places(np.array([3, 0, 1]), 4).tolist()
    [1, 2, -1, 0]
    """
    place = np.full(count, -1)
    place[order] = np.arange(len(order))
    return place


def starts(labels: Ints, classes: int) -> Ints:
    """Where each class starts, and where the last ends, once entries are sorted by label.

    >>> starts(np.array([0, 2, 0]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=classes))])


@kernel
def _radix(keys: Any) -> Any:
    order = np.arange(len(keys))
    other = np.empty_like(order)
    for shift in range(0, 64, _DIGIT):
        count = np.zeros((1 << _DIGIT) + 1, np.int64)
        for i in range(len(keys)):
            count[((keys[i] >> np.uint64(shift)) & np.uint64(0xFFFF)) + np.uint64(1)] += 1
        if count.max() == len(keys):
            continue  # this digit is equal everywhere, like the last one of values that were float32
        count = np.cumsum(count)
        for k in range(len(order)):
            i = order[k]
            digit = (keys[i] >> np.uint64(shift)) & np.uint64(0xFFFF)
            other[count[digit]] = i
            count[digit] += 1
        order, other = other, order
    return order


@kernel
def _counting(numbers: Any, count: Any, order: Any) -> Any:
    starts = np.zeros(count + 1, np.int64)
    for i in order:
        starts[numbers[i] + 1] += 1
    starts = np.cumsum(starts)
    sorted_order = np.empty_like(order)
    for i in order:
        sorted_order[starts[numbers[i]]] = i
        starts[numbers[i]] += 1
    return sorted_order
