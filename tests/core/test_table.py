"""Tables as a terminal shows them."""

from __future__ import annotations

import math
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import stormproof
from stormproof.core.table import Entry, Styled, Table, styled
from stormproof.report.page import environment


@pytest.mark.parametrize(
    ("change", "shown"), [(1.26, "+1.3"), (-0.04, "+0.0"), (0.0, "+0.0"), (-0.06, "-0.1"), (math.nan, "–")]
)
def test_a_change_has_a_sign_and_zero_is_not_negative(change: float, shown: str) -> None:
    table = Table("changes", "Changes", ("class", "change"), [["car", change]]).as_rich()
    assert [str(cell) for cell in table.columns[1].cells] == [shown]


def test_a_change_has_its_sign_wherever_a_table_is_written() -> None:
    table = Table("t", "", ("image", "changeformer", "change (points)"), [["a", 45.0, 4.6]])
    for text in (table.as_html(), table.as_markdown(), table.as_latex(), environment_cells(table)):
        assert "+4.6" in text
        assert "+45.0" not in text


def environment_cells(table: Table) -> str:
    """The table as a page has it."""
    parts = environment().get_template("parts.html").module
    return str(parts.table(table)).split("<script")[0]  # type: ignore[attr-defined]


def test_corruption_names_are_not_cut_at_80_columns() -> None:
    columns = ("corruption", "street-grid", "street-grid-combined", "change", "95 % from", "to", "clear")
    row = ["elastic_transform", 46.1, 41.8, -4.3, -5.5, -3.1, "yes"]
    console = Console(width=80)
    with console.capture() as shown:
        console.print(Table("t", "AP", columns, [row]).as_rich())
    text = shown.get()
    assert max(map(len, text.splitlines())) <= 80
    assert all(word in text for word in ("elastic_transform", "combined", "street-", "95 % from"))


@pytest.mark.parametrize(
    ("cells", "side"),
    [
        (["30.2 ± 1.2", "", "9.1 −2.2 +1.2"], "right"),
        (["53.8 (48.1 – 59.0)", None], "right"),
        (["5.9%", "12.0%"], "right"),
        (["0.1 … 0.3"], "right"),
        (["000123.png", "000124.png"], "left"),
        (["12 of 14 missing", "3"], "left"),
        (["–", ""], "left"),
    ],
)
def test_numbers_stand_right_also_as_text_with_an_interval(cells: list[Entry], side: str) -> None:
    table = Table("t", "", ("name", "value"), [["a", cell] for cell in cells]).as_rich()
    assert table.columns[1].justify == side


def test_a_style_is_shown_by_the_terminal_and_nowhere_else() -> None:
    table = Table(
        "t", "", ("id", "verdict"), [["R1", Styled("fail", "bold red")], styled(["R2", 1.25], "dim")]
    )
    assert [cell.style for cell in table.as_rich().columns[1].cells] == ["bold red", "dim"]
    assert table.as_csv() == Table("t", "", ("id", "verdict"), [["R1", "fail"], ["R2", "1.2"]]).as_csv()


def test_words_may_fold_before_a_column_is_moved_below() -> None:
    words = "a long explanation of what the name means, which a terminal breaks where it must"
    assert len(Table("t", "", ("name", "meaning"), [["rPC", words]]).fitted(40)) == 1
    assert (
        len(
            Table("t", "", ("name", "P", "mPC"), [["rPC", "53.8 (48.1 – 59.0)", "25.8 (1.0 – 2.0)"]]).fitted(
                40
            )
        )
        == 2
    )


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("name", ["fog", "a_corruption_of_28_letters_", "a model with a name of words"])
def test_no_number_is_folded_beside_names_and_words(name: str, width: int) -> None:
    row = [name, "some words about it", "99.9 (29.1 – 99.9)", "12.3", "and some more", "45.6", "78.9", "10.1"]
    columns = ("corruption", "words", "mPC", "under corruption", "why", "mean change", "P", "rPC")
    printed = StringIO()
    console = Console(width=width, file=printed)
    for part in Table("t", "", columns, [row]).fitted(width):
        console.print(part.as_rich(width=width))
    assert all(
        number in printed.getvalue() for number in ("99.9 (29.1 – 99.9)", "12.3", "45.6", "78.9", "10.1")
    )


def test_every_table_is_made_in_one_place() -> None:
    source = Path(stormproof.__file__).parent
    makers = [path for path in source.rglob("*.py") if "rich.table" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(source).as_posix() for path in makers] == ["core/table.py"]
