"""A view as one self-contained file that requests nothing and needs nothing installed."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import stormproof
from stormproof.core.table import Table, cell_text, column_text
from stormproof.core.text import as_csv, json_safe
from stormproof.report.charts import THEMES, config, prepare_rows, spec_of
from stormproof.report.elements import VERSION, Datum, Figure, View
from stormproof.report.vega import charting_script

_SCRIPTS = ("drawing.js", "sizing.js", "app.js")  # in this order
_KEYS = ("pick", "panel", "series", "label", "x", "y", "x2", "y2", "low", "high", "v", "runs")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates. Every value is escaped, and a missing one is an error."""
    made = Environment(
        loader=PackageLoader("stormproof.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = cell_text
    made.filters["shown_in"] = column_text
    made.filters["packed"] = pack
    made.filters["shortened"] = shorten
    made.filters["blob"] = figure_blob
    made.filters["texts"] = table_blob
    made.globals["source"] = _source
    made.globals["scripts"] = _scripts
    made.globals["charting"] = charting
    made.globals["themes"] = {name: config(name) for name in THEMES}
    made.globals["version"] = stormproof.__version__
    return made


def page(view: View, imagery: Mapping[str, Any] | None = None) -> str:
    """The page of a view; `imagery` holds the images that were made for it."""
    return environment().get_template("report.html").render(view=view, imagery=imagery or {})


def as_json(view: View) -> str:
    """The view as JSON: the same rows and tables; the decision table repeats numbers of others as text."""
    content = {name: value for name, value in asdict(view).items() if name != "decision"}
    return json.dumps({"version": VERSION, **json_safe(content)}, ensure_ascii=False, indent=1) + "\n"


def shorten(name: str, longest: int) -> str:
    """A long name without its middle.

    >>> shorten("yolox_s_8x8_300e_coco_20211121_095711", 16), shorten("yolox", 16)
    ('yolox_s_…_095711', 'yolox')
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def pack(content: Any) -> str:
    """Anything JSON can hold, gzipped and in base64, which means nothing to a parser of HTML.

    >>> import base64, gzip
    >>> gzip.decompress(base64.b64decode(pack({"name": "</script>"}))).decode()
    '{"name":"</script>"}'
    """
    raw = json.dumps(json_safe(content), ensure_ascii=False, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode()


@lru_cache(maxsize=1024)
def figure_blob(figure: Figure) -> str:
    """What the page needs to draw a figure and to save its numbers."""
    return pack(
        {
            "spec": spec_of(figure),
            "rows": prepare_rows(figure, figure.rows),
            "grouped": {tag: prepare_rows(figure, rows) for tag, rows in figure.grouped.items()},
            "pick": figure.pick,
            "csv": figure_csv(figure),
        }
    )


@lru_cache(maxsize=1024)
def table_blob(table: Table) -> str:
    """A table as the files it can be saved as."""
    return pack({"csv": table.as_csv(), "tex": table.as_latex(), "md": table.as_markdown()})


def figure_csv(figure: Figure) -> str:
    """The rows of a figure as a file."""
    used = [key for key in _KEYS if any(row.get(key) is not None for row in figure.rows)]
    heads: list[str] = []
    for key in used:
        heads += figure.pick if key == "pick" else [_head(figure, key)]
    return as_csv(heads, [_values(row, used, figure) for row in figure.rows])


def _head(figure: Figure, key: str) -> str:
    named = {
        "x": figure.x.title,
        "y": figure.y.title,
        "v": figure.value,
        "series": figure.series,
        "panel": figure.panel,
    }
    return named.get(key) or key


def _values(row: Datum, used: Sequence[str], figure: Figure) -> list[Any]:
    values: list[Any] = []
    for key in used:
        values += row.get(key, [""] * len(figure.pick)) if key == "pick" else [row.get(key)]
    return values


@lru_cache(maxsize=1)
def charting() -> str:
    """The script that draws charts, gzipped."""
    return base64.b64encode(gzip.compress(charting_script().encode(), 9, mtime=0)).decode()


def _source(name: str) -> Markup:
    """One of our own style sheets or scripts, unescaped."""
    loader = environment().loader
    assert loader is not None
    return Markup(loader.get_source(environment(), name)[0])


def _scripts() -> Markup:
    """Our own scripts, in one element."""
    return Markup("<script>{}</script>").format(Markup("").join(map(_source, _SCRIPTS)))
