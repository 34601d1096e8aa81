"""A program that runs vl-convert: jobs as JSON on standard input, results on standard output.

It imports nothing of Stormproof: `vega.py` starts it as a file, because the engine inside vl-convert ends its
whole process when it cannot have the memory that it wants.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import vl_convert

_NO_FETCHING: list[str] = []  # base addresses that a chart may load from
DPI = 300  # of a PNG file


def make(kind: str, given: Any) -> bytes:
    """A chart as a file of that kind; or the script that draws charts in a browser."""
    if kind == "script":
        return str(vl_convert.javascript_bundle(given)).encode()
    if kind == "svg":
        return str(vl_convert.vegalite_to_svg(given, allowed_base_urls=_NO_FETCHING)).encode()
    if kind == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(given, allowed_base_urls=_NO_FETCHING))
    return bytes(vl_convert.vegalite_to_png(given, ppi=DPI, allowed_base_urls=_NO_FETCHING))


def main() -> None:
    """Answer every job with its length in eight bytes and its content."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the library prints must not end up among the answers
    for kind, given in json.load(sys.stdin):
        content = make(kind, given)
        answers.write(len(content).to_bytes(8, "little") + content)
    answers.flush()


if __name__ == "__main__":
    main()
