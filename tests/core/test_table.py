"""Tables as a terminal shows them."""

from __future__ import annotations

import math

import pytest
from rich.console import Console

from stormproof.core.table import Table


@pytest.mark.parametrize(
    ("change", "shown"), [(1.26, "+1.3"), (-0.04, "+0.0"), (0.0, "+0.0"), (-0.06, "-0.1"), (math.nan, "–")]
)
def test_a_change_has_a_sign_and_zero_is_not_negative(change: float, shown: str) -> None:
    table = Table("changes", "Changes", ("class", "change"), [["car", change]]).as_rich()
    assert [str(cell) for cell in table.columns[1].cells] == [shown]


def test_corruption_names_are_not_cut_at_80_columns() -> None:
    columns = ("corruption", "street-grid", "street-grid-combined", "change", "95 % from", "to", "clear")
    row = ["elastic_transform", 46.1, 41.8, -4.3, -5.5, -3.1, "yes"]
    console = Console(width=80)
    with console.capture() as shown:
        console.print(Table("t", "AP", columns, [row]).as_rich())
    text = shown.get()
    assert max(map(len, text.splitlines())) <= 80
    assert all(word in text for word in ("elastic_transform", "combined", "street-", "95 % from"))
