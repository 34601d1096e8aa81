"""Text from outside, and JSON as files and the command line show it."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stormproof.core.text import indented_json, json_safe

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_KEYS = st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False)


@given(st.recursive(_PLAIN, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner)))
def test_indented_json_equals_the_standard_librarys(value: Any) -> None:
    assert indented_json(value) == json.dumps(value, indent=1, ensure_ascii=False)


def test_tuples_are_written_as_lists() -> None:
    value = {"images": (1, (2, 3)), "none": (), "nested": [{}, {"a": []}]}
    assert indented_json(value) == json.dumps(value, indent=1, ensure_ascii=False)


def test_numbers_that_json_lacks_become_null() -> None:
    assert json_safe({1: [math.nan, (math.inf, 0.5)], "a": True}) == {"1": [None, [None, 0.5]], "a": True}
