"""The built-in street: rendered scenes whose truth is exact, because it comes from the geometry."""

from __future__ import annotations

from stormproof.world.classes import OBJECTS, SEMANTIC
from stormproof.world.samples import SPLITS, VERSION, render

__all__ = ["OBJECTS", "SEMANTIC", "SPLITS", "VERSION", "render"]
