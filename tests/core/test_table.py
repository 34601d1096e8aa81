"""Tables as a terminal shows them."""

from __future__ import annotations

import math

import pytest

from stormproof.core.table import Table


@pytest.mark.parametrize(
    ("change", "shown"), [(1.26, "+1.3"), (-0.04, "+0.0"), (0.0, "+0.0"), (-0.06, "-0.1"), (math.nan, "–")]
)
def test_a_change_has_a_sign_and_zero_is_not_negative(change: float, shown: str) -> None:
    table = Table("changes", "Changes", ("class", "change"), [["car", change]]).as_rich()
    assert [str(cell) for cell in table.columns[1].cells] == [shown]
