"""The model and the dataset of a run, opened once per process."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stormproof import datasets, models
from stormproof.core.errors import RunError
from stormproof.core.kernels import start_kernels
from stormproof.core.processes import one_thread, same_folder
from stormproof.corruptions.plugins import load_plugins
from stormproof.datasets.dataset import Dataset
from stormproof.engine.work import Work
from stormproof.models.enhance import enhance_model
from stormproof.models.model import Model, Precomputed, Unbound

open_dataset_once = lru_cache(maxsize=1)(datasets.read_dataset)  # shared by the models of a plan


@dataclass(slots=True, eq=False)
class Pair:
    model: Model | Precomputed
    dataset: Dataset
    called: bool = False  # whether the model has answered: its first call pays for its start


@lru_cache(maxsize=1)
def open_pair(model: str, enhance: tuple[str, ...], data: str) -> Pair:
    """The dataset and the model, which is bound to the dataset if it must know it.

    The last pair is kept: the planning process may also be the one that works.
    """
    dataset = open_dataset_once(data)
    with same_folder():
        opened = models.load_model(model)
    bound = opened.bind(dataset) if isinstance(opened, Unbound) else opened
    return Pair(enhance_model(bound, enhance), dataset)


def forget_pair(*, dataset: bool = False) -> None:
    """Forget the open model, whose state cannot be trusted after an interruption, and perhaps the dataset."""
    open_pair.cache_clear()
    if dataset:
        open_dataset_once.cache_clear()


def pair_for(work: Work) -> Pair:
    """The pair of a run in this process, checked against the plan.

    Everything that a worker keeps in memory is loaded before its first cell, whatever the conditions: a
    worker that lacks the memory fails at once, not hours later.
    """
    one_thread()
    if Path(work.folder).is_dir() and Path.cwd() != Path(work.folder):
        os.chdir(work.folder)
    sys.path[:] = [*sys.path, *(place for place in work.modules if place not in sys.path)]
    load_plugins(work.config.plugin)
    pair = open_pair(work.config.model, work.config.enhance, work.record.dataset.spec)
    for what in ("model", "dataset"):
        planned, here = getattr(work.record, what), getattr(pair, what).fingerprint
        if here != planned.fingerprint:
            raise RunError(
                f"The {what} {planned.spec} has fingerprint {here[:16]} on {platform.node()}, but "
                f"{planned.fingerprint[:16]} where the run was started; give every machine the same files."
            )
    if isinstance(pair.model, Model):
        start_kernels()
    return pair
