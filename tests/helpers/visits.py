"""A page open in a browser; and axe-core, which judges its accessibility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

AXE = Path(__file__).resolve().parents[2] / ".browser" / "node_modules" / "axe-core" / "axe.min.js"


class Visit:
    """One open page, and everything it should not have done."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page, self.faults = page, []  # type: ignore[var-annotated]
        page.on("console", lambda m: self.faults.append(f"{m.type}: {m.text}") if m.type == "error" else None)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self._asked(request.url, path))
        page.goto(path.as_uri())
        page.wait_for_selector('html[data-ready="yes"]', state="attached", timeout=120_000)

    def _asked(self, url: str, path: Path) -> None:
        beside = path.parent.parent / "assets" / "charts.js"  # a site has its charts in one file
        if not url.startswith(("data:", "blob:")) and url not in (path.as_uri(), beside.as_uri()):
            self.faults.append(f"request {url}")
