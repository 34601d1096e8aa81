"""What a model spec names: a file on disk, and a framework that may not be installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from stormproof.errors import MissingExtra, ModelError
from stormproof.files import locate


def model_file(text: str, purpose: str) -> Path:
    """The file `text`, which must exist; a near name is suggested where it does not."""
    path = locate(text, error=ModelError)
    if not path.is_file():
        raise ModelError(f"{path} is a folder; {purpose} is a file.")
    return path


def framework(module: str, *, extra: str = "", install: str = "") -> ModuleType:
    """Import a framework that Stormproof runs without; if it is missing, say how to install it.

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
