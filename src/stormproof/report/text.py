"""Strings of users, made harmless once, and tables as CSV, LaTeX and Markdown."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence

Cell = str | float | int | None

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
# Characters that reorder or hide what stands beside them: a name must look like what it is.
_HIDDEN = dict.fromkeys(
    [*range(0x80, 0xA0), *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF],
    0xFFFD,
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&])")
_FORMULA = ("=", "+", "-", "@")


def plain(name: object) -> str:
    """A name as one visible line: control characters as their symbols, invisible ones as �.

    >>> plain("a\\tb\\u202e")
    'a␉b�'
    """
    return _SURROGATES.sub("�", str(name)).translate(_PICTURES).translate(_HIDDEN)


def shown(value: Cell, digits: int = 1) -> str:
    """A cell as people read it; what is not there is a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:z.{digits}f}" if isinstance(value, float) else str(value)  # z: no negative zero


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Numbers in full. A name that a spreadsheet would run as a formula gets an apostrophe before it.

    >>> as_csv(["model", "P"], [["=1+1", 0.5]])
    "model,P\\n'=1+1,0.5\\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in ([*columns], *rows):
        writer.writerow([_spreadsheet(value) for value in row])
    return out.getvalue()


def as_latex(columns: Sequence[str], rows: Sequence[Sequence[Cell]], digits: int) -> str:
    """A `tabular` with booktabs rules; names keep every character.

    >>> as_latex(["model"], [["a_b"]], 1).splitlines()[4]
    'a\\\\_b \\\\\\\\'
    """
    kinds = "".join("r" if _is_number(rows, i) else "l" for i in range(len(columns)))
    lines = [" & ".join(map(_latex, columns)) + r" \\"]
    body = [" & ".join(_latex(shown(value, digits)) for value in row) + r" \\" for row in rows]
    head = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", *lines, r"\midrule"]
    return "\n".join([*head, *body, r"\bottomrule", r"\end{tabular}", ""])


def as_markdown(columns: Sequence[str], rows: Sequence[Sequence[Cell]], digits: int) -> str:
    """A pipe table; names keep every character.

    >>> as_markdown(["model"], [["a|b"]], 1).splitlines()[2]
    '| a\\\\|b |'
    """
    rule = ["---:" if _is_number(rows, i) else "---" for i in range(len(columns))]
    cells = [[_markdown(value) for value in columns], rule]
    cells += [
        [_markdown(shown(value, digits)) if isinstance(value, str) else shown(value, digits) for value in row]
        for row in rows
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def file_name(*words: str) -> str:
    """Words as part of a file's name.

    >>> file_name("grid", "my/model <x>", "relative to clean")
    'grid-my-model-x-relative-to-clean'
    """
    return "-".join(filter(None, (re.sub(r"[^\w.]+", "-", word).strip("-.") for word in words)))[:120]


def _spreadsheet(value: Cell) -> Cell:
    if isinstance(value, float):
        return value if math.isfinite(value) else ""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _is_number(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    return any(isinstance(row[column], float | int) for row in rows)
