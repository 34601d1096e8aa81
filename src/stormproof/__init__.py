"""Stormproof: test detectors and segmenters under image corruption.

Names are loaded on first use: importing the package costs next to nothing and never loads a framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stormproof.core.condition import CLEAN, Condition, Suite
    from stormproof.core.errors import StormproofError
    from stormproof.core.imagefile import read_image, write_image
    from stormproof.core.randomness import Frame
    from stormproof.core.sample import Context, Instances, Prediction, Sample, SemanticMap, Truth
    from stormproof.corruptions import apply, corrupt_image
    from stormproof.corruptions.dropin import corrupt, get_corruption_names, init_as_imagecorruptions
    from stormproof.corruptions.on_device import corrupt_batch
    from stormproof.datasets.opened import open_dataset
    from stormproof.engine.api import run
    from stormproof.integrations.transform import CorruptionTransform
    from stormproof.integrations.watch import watch
    from stormproof.metrics.published import published
    from stormproof.models.opened import open_model
    from stormproof.report.comparison import compare
    from stormproof.report.make import report
    from stormproof.results.run import Run
    from stormproof.results.scores import Scores
    from stormproof.results.verdicts import check
    from stormproof.tools.drawing import draw

__version__ = "0.1.0"

_HOMES = {
    name: home
    for home, names in {
        "datasets.opened": ("open_dataset",),
        "models.opened": ("open_model",),
        "results.run": ("Run",),
        "results.scores": ("Scores",),
        "engine.api": ("run",),
        "report.comparison": ("compare",),
        "report.make": ("report",),
        "results.verdicts": ("check",),
        "corruptions.on_device": ("corrupt_batch",),
        "integrations.transform": ("CorruptionTransform",),
        "integrations.watch": ("watch",),
        "core.condition": ("CLEAN", "Condition", "Suite"),
        "corruptions": ("apply", "corrupt_image"),
        "tools.drawing": ("draw",),
        "corruptions.dropin": ("corrupt", "get_corruption_names", "init_as_imagecorruptions"),
        "core.errors": ("StormproofError",),
        "core.imagefile": ("read_image", "write_image"),
        "core.randomness": ("Frame",),
        "metrics.published": ("published",),
        "core.sample": ("Context", "Instances", "Prediction", "Sample", "SemanticMap", "Truth"),
    }.items()
    for name in names
}

__all__ = [
    "CLEAN",
    "Condition",
    "Context",
    "CorruptionTransform",
    "Frame",
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
    "check",
    "compare",
    "corrupt",
    "corrupt_batch",
    "corrupt_image",
    "draw",
    "get_corruption_names",
    "init_as_imagecorruptions",
    "open_dataset",
    "open_model",
    "published",
    "read_image",
    "report",
    "run",
    "watch",
    "write_image",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stormproof' has no attribute {name!r}")
    return getattr(import_module(f"stormproof.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
