"""`Table`, and how it is written: as CSV, LaTeX or Markdown, or on a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from textwrap import fill
from typing import Any, Self, TypeGuard

from stormproof.core.text import as_csv

Entry = str | float | int | None

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
})  # fmt: skip
_NARROW = 80  # characters of a terminal, if nobody says how wide it is
_SHORT = 10  # characters of a column's name that is never folded
_WHOLE = 28  # characters of a name that is never broken in two
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&])")
_WRITTEN = re.compile(r"[+−-]?\d[\d,.]*%?( (±|−|\(|…|%|–).*)?")  # a number, perhaps with its interval


class Styled(str):
    """Text with a style of the terminal, such as "bold red"; elsewhere it is plain text."""

    style: str

    def __new__(cls, text: str, style: str) -> Self:
        made = super().__new__(cls, text)
        made.style = style
        return made


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table whose numbers stay numbers, so that it can be sorted and downloaded."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Entry]]
    digits: int = 1
    note: str = ""

    def as_csv(self) -> str:
        return as_csv(self.columns, self.rows)

    def as_latex(self) -> str:
        """A `tabular` with booktabs rules; names keep every character.

        >>> Table("t", "", ("model",), [["a_b"]]).as_latex().splitlines()[4]
        'a\\\\_b \\\\\\\\'
        """
        kinds = "".join("r" if _is_number(self.rows, i) else "l" for i in range(len(self.columns)))
        cells = [self.columns, *map(self._texts, self.rows)]
        head, *body = (" & ".join(text.translate(_LATEX) for text in row) + r" \\" for row in cells)
        lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
        return "\n".join([*lines, r"\end{tabular}", ""])

    def as_markdown(self) -> str:
        """A pipe table; names keep every character.

        >>> Table("t", "", ("model",), [["a|b"]]).as_markdown().splitlines()[2]
        '| a\\\\|b |'
        """
        rule = ["---:" if _is_number(self.rows, i) else "---" for i in range(len(self.columns))]
        rows = [
            [_markdown(text) if isinstance(value, str) else text
             for value, text in zip(row, self._texts(row), strict=True)]
            for row in self.rows
        ]  # fmt: skip
        cells = [[_markdown(name) for name in self.columns], rule, *rows]
        return "".join(f"| {' | '.join(row)} |\n" for row in cells)

    def as_html(self) -> str:
        """For a notebook; names are escaped."""
        rows = [[escape(text) for text in self._texts(row)] for row in self.rows]
        return html_table(self.title, self.columns, rows)

    def _texts(self, row: Sequence[Entry]) -> list[str]:
        return [column_text(value, name, self.digits) for value, name in zip(row, self.columns, strict=True)]

    def as_rich(self, most: int | None = None, *, framed: bool = True, width: int = _NARROW) -> Any:
        """For a terminal of a `width`, with long text wrapped; at most `most` rows from either end."""
        from rich.box import HEAVY_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        rows = list(self.rows)
        if most is not None and len(rows) > 2 * most:
            rows = [*rows[:most], ["…"] + [""] * (len(self.columns) - 1), *rows[-most:]]
        made = RichTable(
            title=Text(self.title) if self.title else None, title_justify="left", pad_edge=framed,
            box=HEAVY_HEAD if framed else None, show_header=any(self.columns),
        )  # fmt: skip
        columns = [(name, *_read_column(rows, i, self.digits)) for i, name in enumerate(self.columns)]
        wide = sum(3 + max(map(len, (name, *texts))) for name, texts, _ in columns) >= width
        for i, (name, texts, number) in enumerate(columns):
            made.add_column(
                Text(_fold_name(name, texts) if wide and number else name),
                justify="right" if number else "left",
                overflow="fold",
                no_wrap=(wide and number) or (i == 0 and _are_names(texts)),
            )
        for row in rows:
            made.add_row(*(_text(value, self.columns[i], self.digits) for i, value in enumerate(row)))
        return made

    def fitted(self, width: int, *, framed: bool = True) -> list[Table]:
        """The table in parts that are at most `width` characters wide on a terminal without folding a number.

        Each part starts with the first column; only the first part has the title.

        >>> wide = Table("t", "Scores", ("slice", "P", "mPC"), [["rain", 30.2, 20.1]])
        >>> [part.columns for part in wide.fitted(80)], [part.columns for part in wide.fitted(20)]
        ([('slice', 'P', 'mPC')], [('slice', 'P'), ('slice', 'mPC')])
        """
        needs = []
        columns = [_read_column(self.rows, i, self.digits) for i in range(len(self.columns))]
        for name, (texts, number) in zip(self.columns, columns, strict=True):
            pieces = texts if number else [word for text in texts for word in text.split()]
            heads = _fold_name(name, texts).split("\n") if number else _fold_name(name, ()).split()
            needs.append((3 if framed else 2) + max(map(len, (*heads, *pieces)), default=0))
        first = needs[0] if _are_names(columns[0][0]) else min(needs[0], width // 3)  # other text may fold
        every = (width - 1 if framed else width + 2) - first  # the last column needs no gap
        parts, room = [[0]], every
        for i in range(1, len(needs)):
            if needs[i] > room and len(parts[-1]) > 1:
                parts.append([0])
                room = every
            parts[-1].append(i)
            room -= needs[i]
        return [
            replace(
                self,
                title=self.title if part is parts[0] else "",
                columns=tuple(self.columns[i] for i in part),
                rows=[[row[i] for i in part] for row in self.rows],
            )
            for part in parts
        ]


def _read_column(rows: Sequence[Sequence[Entry]], i: int, digits: int) -> tuple[list[str], bool]:
    """The texts of a column, and whether they are numbers, with or without an interval."""
    texts = [cell_text(row[i], digits) for row in rows]
    known = [text for text in texts if text not in ("", "–", "…")]
    some = any(isinstance(row[i], float | int) for row in rows)
    return texts, some or (bool(known) and all(map(_WRITTEN.fullmatch, known)))


def _are_names(texts: Sequence[str]) -> bool:
    """Whether texts are names that a terminal shows in one line each."""
    return all(" " not in text and len(text) <= _WHOLE for text in texts)


def _fold_name(name: str, texts: Sequence[str]) -> str:
    """The name of a column in lines no longer than its texts, or `_SHORT`; long words end at a hyphen, an
    underscore or a slash.

    >>> _fold_name("street-grid-combined", ()), _fold_name("mean change", ["+1.0"])
    ('street-\\ngrid-\\ncombined', 'mean\\nchange')
    """
    if max(map(len, name.split()), default=0) > _SHORT:
        name = re.sub(r"(?<=[-_/])(?=\w)", "\n", name)
    room = max([_SHORT, *map(len, (*name.split(), *texts))])
    return "\n".join(fill(line, room, break_long_words=False) for line in name.split("\n"))


def _text(value: Entry, column: str, digits: int) -> Any:
    """A cell for a terminal; changes get a colour, green for better (for errors: lower)."""
    from rich.text import Text

    if isinstance(value, Styled):
        return Text(value, value.style)
    text = column_text(value, column, digits)
    if not _is_change(value, column):
        return Text(text)
    better = value < 0 if "error" in column else value > 0
    return Text(text, style="green" if better else "red" if value else "")


def _is_change(value: Entry, column: str) -> TypeGuard[float]:
    # its first word: "changeformer" is a model
    return column.split(" ")[0] == "change" and isinstance(value, float) and math.isfinite(value)


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain HTML table; cells are HTML already, title and columns are text.

    >>> html_table("a < b", (), [["x"]])
    '<table><caption>a &lt; b</caption><tbody><tr><td>x</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if columns else ""
    return f"<table><caption>{escape(title)}</caption>{top}<tbody>{body}</tbody></table>"


def styled(row: Sequence[Entry], style: str, digits: int = 1) -> list[Entry]:
    """A row of a table in a style of the terminal."""
    return [Styled(cell_text(value, digits), style) for value in row]


def cell_text(value: Entry, digits: int = 1) -> str:
    """The text of a cell, a dash if it has no value."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:z.{digits}f}" if isinstance(value, float) else str(value)  # z: no negative zero


def column_text(value: Entry, column: str, digits: int = 1) -> str:
    """The text of a cell of a column; a change has a sign.

    >>> column_text(1.25, "AP"), column_text(1.25, "change (points)"), column_text(-0.01, "change")
    ('1.2', '+1.2', '+0.0')
    """
    return f"{value:+z.{digits}f}" if _is_change(value, column) else cell_text(value, digits)


def file_name(*words: str) -> str:
    """Words as part of a file's name.

    >>> file_name("grid", "my/model <x>", "relative to clean")
    'grid-my-model-x-relative-to-clean'
    """
    return "-".join(filter(None, (re.sub(r"[^\w.]+", "-", word).strip("-.") for word in words)))[:120]


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _is_number(rows: Sequence[Sequence[Entry]], column: int) -> bool:
    return any(isinstance(row[column], float | int) for row in rows)
