"""How runs and scores show themselves in a notebook: by functions of `report`, found when first needed."""

from __future__ import annotations

from typing import Any

from stormproof.core.extensions import ExtensionPoint
from stormproof.core.registry import Registry

_POINT = ExtensionPoint("stormproof.displays", "display", "displays", "a module that shows runs", "plugin.md")
DISPLAYS: Registry[Any] = Registry(_POINT, "stormproof.report")
