"""Pages with several makers: each script rewrites its own part and leaves the others alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_part(page: Path, name: str, text: str) -> None:
    """Put `text` between the page's markers of that name, at the end where there are none yet."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    page.write_text(_with_part(old, name, text), encoding="utf-8")


def renew(page: Path, parts: Mapping[str, str], *, check: bool) -> None:
    """Write every part; with `check`, only compare, and exit naming the parts that would change."""
    if not check:
        for name, text in parts.items():
            write_part(page, name, text)
        return
    old = page.read_text(encoding="utf-8")
    stale = [name for name, text in parts.items() if _with_part(old, name, text) != old]
    if stale:
        raise SystemExit(f"{page}: out of date: {', '.join(stale)}. Run the script without --check.")
    print(f"{page}: all {len(parts)} parts are up to date.")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, without a line break at its end."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def from_to(estimate: float, low: float, high: float) -> str:
    """A difference and its interval, each with its sign.

    >>> from_to(-1.04, -2, 0.2)
    '-1.0 (-2.0 to +0.2)'
    """
    return f"{estimate:+.1f} ({low:+.1f} to {high:+.1f})"


def _with_part(page: str, name: str, text: str) -> str:
    start, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    block = f"{start}\n{text.strip()}\n{end}\n"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}\n", re.DOTALL)
    if pattern.search(page):
        return pattern.sub(lambda _: block, page)
    return f"{page.rstrip()}\n\n{block}".lstrip()
