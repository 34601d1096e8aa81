"""Every section, table, figure and equation cited exists in its paper; every flag in the docs exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from stormproof.cli import app

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "studies").rglob("*.md")]
)


def numbers(last: int) -> set[str]:
    return {str(i) for i in range(1, last + 1)}


# The papers' own headings and captions.
PAPERS: dict[str, dict[str, set[str]]] = {
    "michaelis": {
        "section": {"1", "1.1", "1.2", "2", "2.1", "2.2", "3", "3.1", "3.2", "3.3", "3.4", "4"},
        "table": numbers(6), "figure": numbers(10), "equation": numbers(2),
    },
    "kamann": {
        "section": {
            "1", "2", "3", "3.1", "3.2", "4", "4.1", "4.2", "5", *(f"5.{i}" for i in range(1, 8)), "6",
            "6.1", "7",
        },
        "table": numbers(4), "figure": numbers(20), "equation": numbers(3),
    },
    "liu": {
        "section": {
            "1", "2", "2.1", "2.2", "2.3", "3", *(f"3.{i}" for i in range(1, 6)), "3.2.1", "3.2.2", "3.2.3",
            "4", *(f"4.{i}" for i in range(1, 7)), "5", "6",
        },
        "table": numbers(5), "figure": numbers(9), "equation": numbers(4),
    },
    "theodoridis": {
        "section": {"1", "2", "2.1", "2.2", "3", "4", "5", "6"},
        "table": numbers(1), "figure": numbers(19), "equation": set(),
    },
    "pezzementi": {
        "section": {"I", "II", "II-A", "II-B", "III", "III-A", "III-B", "IV", "IV-A", "IV-B", "IV-C", "V"},
        "table": {"I", "II", "III", "IV"}, "figure": numbers(8), "equation": numbers(4),
    },
}  # fmt: skip
KINDS = {"section": "section", "Table": "table", "Fig": "figure", "Eq": "equation"}
ITEM = r"(?:\d+(?:\.\d+)*|[IVX]+(?:-[A-C])?)"
RUN = rf"{ITEM}[a-d]?(?:(?:, | and | to ){ITEM}[a-d]?\b)*"
CITED = re.compile(
    rf"\b(?P<paper>{'|'.join(PAPERS)})(?: ?20\d\d)?\*?'?s?,? "
    rf"(?P<what>(?:(?:sections?|Tables?|Figs?\.|Eqs?\.) {RUN}[;, ]*)+)"
)
EACH = re.compile(rf"(?P<kind>section|Table|Fig|Eq)s?\.? (?P<items>{RUN})")


def cited(text: str) -> Iterator[tuple[str, str, str]]:
    """Paper, kind and number of everything cited right after a paper's name."""
    for match in CITED.finditer(re.sub(r"\s+", " ", text)):
        for each in EACH.finditer(match["what"]):
            for item in re.findall(ITEM, each["items"]):
                yield match["paper"], KINDS[each["kind"]], item


def test_finds_citations() -> None:
    text = "*kamann*, Fig. 10 to 12 and Table 1; (*michaelis*, Eqs. 1, 2); pezzementi, Table IV."
    found = [f"{paper} {kind} {item}" for paper, kind, item in cited(text)]
    assert found == [
        "kamann figure 10", "kamann figure 12", "michaelis equation 1", "michaelis equation 2",
        "pezzementi table IV",
    ]  # fmt: skip  # what follows an 'and' is another sentence


def test_cited_sections_tables_and_figures_exist() -> None:
    wrong, count = [], 0
    for path in SOURCES:
        for paper, kind, item in cited(path.read_text(encoding="utf-8")):
            count += 1
            if item not in PAPERS[paper][kind]:
                wrong.append(f"{path.relative_to(ROOT)}: {paper}, {kind} {item}")
    assert wrong == []
    assert count > 60


@cache
def flags() -> dict[str, set[str]]:
    """The options of every command."""
    group: Any = typer.main.get_command(app)
    found = {}
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        nested = getattr(command, "commands", {"": command})
        options = {
            word for each in nested.values() for p in each.params for word in (*p.opts, *p.secondary_opts)
        }
        found[name] = options
    return found


SPAN = re.compile(r"`(?:stormproof )?(?P<verb>[a-z][a-z-]+)(?P<rest> [^`]*)`")


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_flags_in_the_docs_exist(page: Path) -> None:
    known = flags()
    wrong = []
    for match in SPAN.finditer(page.read_text(encoding="utf-8")):
        if match["verb"] in known:
            asked = re.findall(r"(?<=\s)--[a-z][a-z-]*", match["rest"])
            wrong += [f"{match['verb']} {flag}" for flag in asked if flag not in known[match["verb"]]]
    assert wrong == []
