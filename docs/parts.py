"""Pages with several makers: each script rewrites its own part and leaves the others alone."""

from __future__ import annotations

import re
from pathlib import Path


def write_part(page: Path, name: str, text: str) -> None:
    """Put `text` between the page's markers of that name, at the end where there are none yet."""
    start, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    block = f"{start}\n{text.strip()}\n{end}\n"
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}\n", re.DOTALL)
    new = pattern.sub(lambda _: block, old) if pattern.search(old) else f"{old.rstrip()}\n\n{block}".lstrip()
    page.write_text(new, encoding="utf-8")
