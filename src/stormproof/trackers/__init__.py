"""Experiment trackers: one protocol, one file per tracker, imported only when named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from stormproof.engine.run import Watch
from stormproof.errors import UnknownName
from stormproof.spec import load_attribute
from stormproof.store.record import RunRecord
from stormproof.trackers.guard import Guarded

TRACKERS = {
    "mlflow": "stormproof.trackers.mlflow:MlflowTracker",
    "wandb": "stormproof.trackers.wandb:WandbTracker",
    "tensorboard": "stormproof.trackers.tensorboard:TensorboardTracker",
}


class Tracker(Watch, Protocol):
    """A watch over runs that also takes scores."""

    def scored(self, record: RunRecord, numbers: Mapping[str, float]) -> None:
        """Scores by name, such as 'AP/mPC' or 'AP/fog@3'."""
        ...


def open_tracker(name: str) -> Tracker:
    """The tracker of that name; each reads its own environment variables for where to write."""
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS, f"Trackers: {', '.join(TRACKERS)}.")
    return Guarded(name, cast(Tracker, load_attribute(TRACKERS[name])()))


def parameters(record: RunRecord) -> dict[str, str | int]:
    """What trackers file a run under."""
    return {
        "model": record.model.name,
        "model_fingerprint": record.model.fingerprint,
        "dataset": record.dataset.name,
        "dataset_fingerprint": record.dataset.fingerprint,
        "seed": record.seed,
        "images": record.images,
        "conditions": len(record.conditions),
        "enhance": "+".join(record.model.enhance),
        "benchmark": record.benchmark or "",
        **{f"tag.{key}": value for key, value in record.tags.items()},
    }


def title(record: RunRecord) -> str:
    return f"{record.model.name} on {record.dataset.name}"
