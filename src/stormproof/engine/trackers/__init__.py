"""Experiment trackers: one protocol, one file per service, imported only when named."""

from __future__ import annotations

from stormproof.core.errors import UnknownName
from stormproof.core.loading import load_attribute
from stormproof.engine.trackers.tracker import Tracker

TRACKERS = {
    "mlflow": "stormproof.engine.trackers.mlflow:Mlflow",
    "wandb": "stormproof.engine.trackers.wandb:Wandb",
    "tensorboard": "stormproof.engine.trackers.tensorboard:Tensorboard",
}


def open_tracker(name: str) -> Tracker:
    """The tracker of that name; each reads its own environment variables for where to write."""
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS, f"Trackers: {', '.join(TRACKERS)}.")
    return Tracker(name, load_attribute(TRACKERS[name])())
