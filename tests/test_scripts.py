"""Scripts beside the package import what it has."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(path for room in ("benchmarks", "docs", "training") for path in (ROOT / room).rglob("*.py"))


def imports_of(script: Path) -> list[tuple[str, str]]:
    """The modules and names that a script imports from the package, wherever it does."""
    nodes = ast.walk(ast.parse(script.read_text(encoding="utf-8")))
    froms = [(node.module or "", node.names) for node in nodes if isinstance(node, ast.ImportFrom)]
    return [(room, one.name) for room, names in froms if room.startswith("stormproof.") for one in names]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_imports_names_that_exist(script: Path) -> None:
    for module, name in imports_of(script):
        try:
            found = hasattr(import_module(module), name)
        except ModuleNotFoundError as error:  # a framework that is not installed here
            if str(error.name).startswith("stormproof."):
                raise
            continue
        if not found:
            import_module(f"{module}.{name}")  # a module of a room
