"""Names stay what they are in every format, and never become more than names."""

from __future__ import annotations

import csv
import io

import pytest

from helpers.hostile import CONTROL, MARKDOWN, SCRIPT
from stormproof.core.table import Table, cell_text
from stormproof.core.text import as_csv, plain


def test_control_characters_are_made_visible() -> None:
    assert plain(CONTROL) == "tab␉here␀null�right"
    assert plain("a\u2028b\ud800") == "a�b�"
    assert plain("naïve 画像") == "naïve 画像"


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1", "-1", "@x"])
def test_names_are_not_read_as_formulas(name: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(["name", "value"], [[name, -0.5]]))))
    assert rows[1] == [f"'{name}", "-0.5"]


def test_latex_and_markdown_keep_every_character() -> None:
    latex = Table("", "", ("name",), [[MARKDOWN]]).as_latex()
    assert r"\textbar{}" in latex
    assert r"\$x\_1\$" in latex
    line = Table("", "", ("name",), [[SCRIPT]]).as_markdown().splitlines()[2]
    assert line == r"| \<script\>alert(1)\</script\> |"


def test_a_missing_value_is_shown_as_a_dash() -> None:
    assert [cell_text(v) for v in (None, float("nan"), float("inf"), 1.25, 3, "x")] == [
        "–",
        "–",
        "–",
        "1.2",
        "3",
        "x",
    ]
