"""Importing code by name: frameworks and `module:attribute`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from stormproof.core.errors import InvalidOption, MissingExtra

ON_PYPI = False  # set at the first release (docs/releasing.md): from then on, hints install by name


def install_extra(extra: str) -> str:
    """The command that installs what an extra of Stormproof brings.

    >>> install_extra("ray")
    "pip install '.[ray]'  (in a checkout of Stormproof)"
    """
    if ON_PYPI:
        return f"pip install 'stormproof[{extra}]'"
    # The extra 'demo' names a distribution that is in the checkout too.
    source = "./networks" if extra == "demo" else f"'.[{extra}]'"
    return f"pip install {source}  (in a checkout of Stormproof)"


def framework(module: str, *, extra: str = "", install: str = "") -> ModuleType:
    """Import an optional framework; if it is missing, the error says how to install it.

    `extra` names the extra of Stormproof that installs it; `install` is the command where no extra does.
    """
    package, command = module.partition(".")[0], install or install_extra(extra)
    try:
        return import_module(module)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError)
        if absent and (error.name is None or f"{module}.".startswith(f"{error.name}.")):
            raise MissingExtra(package, command) from None
        raise InvalidOption(
            f"{package} is installed but cannot be imported: {error}; install what it needs with: {command}"
        ) from error


def load_attribute(path: str) -> Any:
    """The object at `package.module:attribute`."""
    module, _, attribute = path.partition(":")
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.append(str(Path.cwd()))  # last, so that installed modules take precedence
    try:
        thing: Any = import_module(module)
        for part in attribute.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as error:
        raise InvalidOption(f"Cannot load {path!r}: {error}.") from error
    return thing
