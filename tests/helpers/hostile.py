"""Names that a page must show and never run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stormproof.results.store.record import RunRecord
from stormproof.results.store.seal import with_digest

SCRIPT = "<script>alert(1)</script>"
TEMPLATE = "</template></script><img src=x onerror=alert(1)>"
MARKDOWN = "[click](javascript:alert(1)) `|` *x* $x_1$"
CONTROL = "tab\there\x00null\u202eright"


def rename_classes(spec: str) -> None:
    """Give the classes of a COCO scene hostile names."""
    path = Path(spec.partition(":")[2].partition(",")[0])
    content = json.loads(path.read_text())
    for category, name in zip(content["categories"], (TEMPLATE, MARKDOWN), strict=True):
        category["name"] = name
    path.write_text(json.dumps(content))


def rename_model(run: Path, name: str) -> None:
    """Give the model of a finished run another name; it is no part of the run's identity."""

    def rename(content: dict[str, Any]) -> None:
        content["model"]["name"] = name
        content["tags"] = {**content["tags"], CONTROL: SCRIPT}

    rewrite(run, rename)


def rewrite(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record of a run as if it had been made so."""
    path = run / "run.json"
    content = json.loads(path.read_text())
    change(content)
    kept = {key: value for key, value in content.items() if key in RunRecord.model_fields}
    path.write_text(json.dumps(with_digest(kept)))
