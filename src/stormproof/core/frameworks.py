"""Frameworks that Stormproof runs without: imported when something names them."""

from __future__ import annotations

import importlib
from types import ModuleType

from stormproof.core.errors import MissingExtra


def framework(module: str, *, extra: str = "", install: str = "") -> ModuleType:
    """Import a framework; if it is missing, say how to install it.

    `extra` names the extra of Stormproof that brings it, `install` the command where there is none.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that the framework itself fails to find is another problem, with another fix.
        if error.name is not None and not module.startswith(error.name):
            raise
        command = install or f"pip install 'stormproof[{extra}]'"
        raise MissingExtra(module.partition(".")[0], command) from None
