"""Corruptions from elsewhere: files that the user names, and packages that offer some.

A file is Python code, so it runs only when it is named: `--plugin mine.py`. A run keeps what the corruption
declared as data, which is all that scoring needs unless the truth moves with the pixels.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption
from stormproof.core.files import locate
from stormproof.corruptions.registry import Corruption, free, registered, registry


def load_plugins(files: Iterable[str]) -> None:
    """Run the files, each once; what they register can be named like any other corruption."""
    for text in files:
        path = locate(text, error=InvalidOption).resolve()
        if path.suffix != ".py":
            raise InvalidOption(f"The plugin {text} is not a Python file; give one with @corruption in it.")
        _load(path, path.stat().st_mtime_ns)


@cache
def _load(path: Path, modified: int) -> None:
    name = f"stormproof_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    before = registered().keys()
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = next((f.lineno for f in inspect.trace()[::-1] if f.filename == str(path)), "?")
        what = f"{type(error).__name__}: {error}"
        raise InvalidOption(f"The plugin {path} fails in line {line}: {what}") from error
    if not registered().keys() - before and not _own(name):
        raise InvalidOption(
            f"The plugin {path} registers no corruption; mark a function with @corruption(…)."
        )


def _own(module: str) -> list[str]:
    return [name for name, found in registered().items() if found.recipe.__module__ == module]


def is_plugin(corruption: Corruption) -> bool:
    """Whether it comes from elsewhere."""
    return not corruption.recipe.__module__.startswith("stormproof.")


def declaration(corruption: Corruption) -> dict[str, Any]:
    """What a corruption declares, as data."""
    return {
        "family": corruption.family, "cite": corruption.cite, "version": corruption.version,
        "doc": corruption.doc, "parameters": list(corruption.ladders), "labels": corruption.labels,
        "moves": corruption.moves is not None, "needs": list(corruption.needs),
    }  # fmt: skip


def declare(declared: Mapping[str, Mapping[str, Any]]) -> None:
    """Make corruptions known whose code is not here, so that what was run under them can be scored."""
    for name, data in declared.items():
        if name not in registered():
            registry()[name] = _without_code(name, data)


def _without_code(name: str, data: Mapping[str, Any]) -> Corruption:
    def nothing(*_: object, **__: object) -> Any:
        raise AssertionError("parameters are asked for first")

    return Corruption(
        name, str(data["family"]), str(data["cite"]), int(data["version"]), nothing,
        {key: free() for key in data["parameters"]}, tuple(data["needs"]),
        nothing if data["moves"] else None, str(data["labels"]),
        absent=f"{name} is the code of a plugin; name its file again with --plugin FILE.",
    )  # fmt: skip
