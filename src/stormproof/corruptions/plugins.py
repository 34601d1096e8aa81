"""Corruptions and metrics from plugins: Python files that the user names, and installed packages.

A file is code, so it runs only when it is named: `--plugin mine.py`. A run records a plugin's declaration as
data, which is all that scoring needs unless the truth moves with the pixels.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption
from stormproof.core.extensions import POINTS
from stormproof.core.files import locate
from stormproof.core.registry import declares_anything, entry_points_of
from stormproof.corruptions.corruption import CORRUPTIONS, Corruption, free


def load_plugins(files: Iterable[str]) -> None:
    """Run each file once; its corruptions and measures can then be named like any other."""
    for text in files:
        path = locate(text, error=InvalidOption).resolve()
        if path.suffix != ".py":
            raise InvalidOption(
                f"The plugin {text} is not a Python file; give a .py file that uses @corruption or @metric."
            )
        _load(path, path.stat().st_mtime_ns)


@cache
def _load(path: Path, modified: int) -> None:  # once, and again after the file was modified
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = next((f.lineno for f in inspect.trace()[::-1] if f.filename == str(path)), "?")
        what = f"{type(error).__name__}: {error}"
        raise InvalidOption(f"The plugin {path} failed in line {line}: {what}") from error
    if not declares_anything(name):
        fix = "decorate a function with @corruption(…) or @metric(…)"
        raise InvalidOption(f"The plugin {path} declares neither a corruption nor a metric; {fix}.")


def _module_name(path: Path) -> str:
    """A file of an installed package keeps its name, so that nothing in it is declared a second time."""
    offered = (entry.module for point in POINTS for entry in entry_points_of(point.group))
    parts = path.with_suffix("").parts
    same = (name for name in offered if parts[-name.count(".") - 1 :] == tuple(name.split(".")))
    return next(same, f"stormproof_plugin_{path.stem}")


def is_plugin(corruption: Corruption) -> bool:
    """Whether a corruption comes from a plugin."""
    return not corruption.recipe.__module__.startswith("stormproof.")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A corruption's declaration as data: all that a run folder records about a plugin."""

    family: str
    cite: str
    version: int
    doc: str
    parameters: tuple[str, ...]
    labels: str
    moves: bool
    needs: tuple[str, ...]

    @classmethod
    def of(cls, one: Corruption) -> Declaration:
        return cls(
            one.family, one.cite, one.version, one.doc, tuple(one.ladders), one.labels,
            one.moves is not None, one.needs,
        )  # fmt: skip


def declare(declared: Mapping[str, Declaration]) -> None:
    """Register corruptions whose code is missing, so that runs under them can be scored."""
    for name, data in declared.items():
        if name not in CORRUPTIONS:
            CORRUPTIONS.add(name, _without_code(name, data), module=None)


def _without_code(name: str, data: Declaration) -> Corruption:
    def nothing(*_: object, **__: object) -> Any:
        raise AssertionError("parameters() is called first, and refuses")

    return Corruption(
        name, data.family, data.cite, data.version, nothing,
        {key: free() for key in data.parameters}, data.needs, nothing if data.moves else None, data.labels,
        absent=f"{name} needs the code of a plugin; give its file with --plugin FILE.",
    )  # fmt: skip
