"""Stormproof: test detectors and segmenters under image corruption.

Names are loaded on first use: importing the package costs next to nothing and never loads a framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stormproof.api.opened import open_dataset, open_model
    from stormproof.api.results import Scores
    from stormproof.api.running import Run, run
    from stormproof.batches.corrupting import corrupt_batch
    from stormproof.batches.training import CorruptionTransform
    from stormproof.condition import CLEAN, Condition, Suite
    from stormproof.corruptions import apply, corrupt_image
    from stormproof.drawing import draw
    from stormproof.dropin import corrupt, get_corruption_names
    from stormproof.errors import StormproofError
    from stormproof.imagefile import read_image, write_image
    from stormproof.robustness.published import published
    from stormproof.sample import Context, Instances, Prediction, Sample, SemanticMap, Truth

__version__ = "0.1.0"

_HOMES = {
    name: home
    for home, names in {
        "api.opened": ("open_dataset", "open_model"),
        "api.results": ("Scores",),
        "api.running": ("Run", "run"),
        "batches.corrupting": ("corrupt_batch",),
        "batches.training": ("CorruptionTransform",),
        "condition": ("CLEAN", "Condition", "Suite"),
        "corruptions": ("apply", "corrupt_image"),
        "drawing": ("draw",),
        "dropin": ("corrupt", "get_corruption_names"),
        "errors": ("StormproofError",),
        "imagefile": ("read_image", "write_image"),
        "robustness.published": ("published",),
        "sample": ("Context", "Instances", "Prediction", "Sample", "SemanticMap", "Truth"),
    }.items()
    for name in names
}

__all__ = [
    "CLEAN",
    "Condition",
    "Context",
    "CorruptionTransform",
    "Instances",
    "Prediction",
    "Run",
    "Sample",
    "Scores",
    "SemanticMap",
    "StormproofError",
    "Suite",
    "Truth",
    "apply",
    "corrupt",
    "corrupt_batch",
    "corrupt_image",
    "draw",
    "get_corruption_names",
    "open_dataset",
    "open_model",
    "published",
    "read_image",
    "run",
    "write_image",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stormproof' has no attribute {name!r}")
    return getattr(import_module(f"stormproof.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
