"""Scenes on disk, laid out as public datasets are, so that whatever reads those reads these."""

from __future__ import annotations

from stormproof.world.writers.export import FORMATS, export

__all__ = ["FORMATS", "export"]
