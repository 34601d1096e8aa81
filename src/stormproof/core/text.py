"""Makes outside text harmless: names on one visible line, numbers for JSON, cells for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
# Characters that reorder or hide their neighbours: a name must look like what it is.
_HIDDEN = dict.fromkeys(
    [*range(0x80, 0xA0), *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF],
    0xFFFD,
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@")


def plain(name: object) -> str:
    """A name as one visible line: control characters as their symbols, invisible ones as �.

    >>> plain("a\\tb\\u202e")
    'a␉b�'
    """
    return _SURROGATES.sub("�", str(name)).translate(_PICTURES).translate(_HIDDEN)


def compose(name: str) -> str:
    """A name in Unicode's composed form, without spaces around it: names that look alike are then equal.

    >>> compose("cafe\\u0301 ") == "caf\\xe9"
    True
    """
    return unicodedata.normalize("NFC", name).strip()


def same_name(asked: str, known: Sequence[str]) -> str | None:
    """The very name, or the one that differs in nothing but its Unicode form; None if there is neither."""
    if asked in known:
        return asked
    return next((name for name in known if compose(name) == compose(asked)), None)


def json_safe(value: Any) -> Any:
    """The same value for JSON, with None for NaN and infinity, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): json_safe(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(entry) for entry in value]
    return value


def indented_json(value: Any, depth: int = 0) -> str:
    """What `json.dumps(value, indent=1, ensure_ascii=False)` returns, in a fraction of its time.

    Python's fast encoder does not indent. It can still write a list or a dict of plain values, with the line
    break and the indentation as part of the separator.

    >>> indented_json({"AP": {"clean": 0.5}, "classes": []}) == json.dumps(
    ...     {"AP": {"clean": 0.5}, "classes": []}, indent=1
    ... )
    True
    """
    if not value or not isinstance(value, dict | list | tuple):
        return _encoder(0).encode(value)
    line, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    entries = list(value.values()) if isinstance(value, dict) else value
    if not any(isinstance(entry, dict | list | tuple) for entry in entries):
        inside = _encoder(depth + 1).encode(value)[1:-1]
    else:
        texts = [indented_json(entry, depth + 1) for entry in entries]
        if isinstance(value, dict):
            encode = _encoder(0).encode
            keys = (encode(key if isinstance(key, str) else encode(key)) for key in value)
            texts = [f"{key}: {text}" for key, text in zip(keys, texts, strict=True)]
        inside = f",{line}".join(texts)
    return f"{{{line}{inside}{end}}}" if isinstance(value, dict) else f"[{line}{inside}{end}]"


@lru_cache
def _encoder(depth: int) -> json.JSONEncoder:
    """Separates entries by a comma, a line break and `depth` spaces."""
    return json.JSONEncoder(ensure_ascii=False, separators=(",\n" + " " * depth, ": "))


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV table: numbers in full, missing ones empty, and an apostrophe before any name that a spreadsheet
    would run as a formula.

    >>> as_csv(["model", "P"], [["=1+1", 0.5]])
    "model,P\\n'=1+1,0.5\\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name) for name in columns])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, str):
        text = plain(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return repr(value) if isinstance(value, float) else value
