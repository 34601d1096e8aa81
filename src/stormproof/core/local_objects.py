"""Objects of this process under a name: how a function made in a notebook is a model like any other.

A run knows its model and its dataset by name, since workers open them for themselves. What exists only in
this process has a name only here and only for a while: `object:NAME`, which no other process can open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

KIND = "object"
_HERE: dict[str, Any] = {}


@contextmanager
def named(name: str, thing: Any) -> Iterator[str]:
    """A spec that opens `thing`, in this process and inside the block."""
    plain = re.sub(r"[^\w.-]+", "_", name).strip("_") or "it"
    key, count = plain, 1
    while key in _HERE:
        count += 1
        key = f"{plain}-{count}"
    _HERE[key] = thing
    try:
        yield f"{KIND}:{key}"
    finally:
        del _HERE[key]


def find_here(name: str) -> Any:
    """The object of that name; None if this process has none."""
    return _HERE.get(name)
