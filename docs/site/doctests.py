"""Shows the doctests of docstrings as code; without this, Markdown takes `>>>` for a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

# From a line that starts with >>> to the next empty line.
DOCTEST = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
