"""How a room is found without a list of it: importing every module of a package runs its declarations."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules


@cache
def load(package: str) -> None:
    """Import every module of a package, once, in the order of their names."""
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
