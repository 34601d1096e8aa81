"""The pair a run is about, model and dataset: opened once per process and checked against the plan."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stormproof.core.errors import RunError
from stormproof.core.kernels import start_kernels
from stormproof.core.processes import one_thread
from stormproof.corruptions.plugins import load_plugins
from stormproof.datasets import open_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.engine.work import Work
from stormproof.models import open_model
from stormproof.models.enhance import enhanced
from stormproof.models.model import Model, Precomputed


@dataclass(frozen=True, slots=True)
class Pair:
    model: Model | Precomputed
    dataset: Dataset


def settle(folder: str, modules: tuple[str, ...], plugins: tuple[str, ...] = ()) -> None:
    """Make this process see the user's modules and relative paths, with one thread for each library."""
    one_thread()
    if Path(folder).is_dir() and Path.cwd() != Path(folder):
        os.chdir(folder)
    sys.path[:] = [*sys.path, *(place for place in modules if place not in sys.path)]
    load_plugins(plugins)


@lru_cache(maxsize=1)
def open_pair(model: str, enhance: tuple[str, ...], data: str) -> Pair:
    """The dataset, and the model bound to it where its predictions were made beforehand.

    The last pair is kept: the process that plans may be the one that works.
    """
    dataset = open_dataset_once(data)
    opened = enhanced(open_model(model), enhance)
    return Pair(opened.bind(dataset) if isinstance(opened, Precomputed) else opened, dataset)


@lru_cache(maxsize=1)
def open_dataset_once(data: str) -> Dataset:
    return open_dataset(data)  # the same for the next of many models


def _opened(model: str, enhance: tuple[str, ...], data: str, fingerprints: tuple[str, str]) -> Pair:
    pair = open_pair(model, enhance, data)
    found = (pair.model.fingerprint, pair.dataset.fingerprint)
    for what, spec, here, planned in zip(
        ("model", "dataset"), (model, data), found, fingerprints, strict=True
    ):
        if here != planned:
            raise RunError(
                f"The {what} {spec} has fingerprint {here[:16]} on {platform.node()}, but {planned[:16]} "
                "where the run was started; give every machine the same files."
            )
    return pair


def pair_for(work: Work) -> Pair:
    """The pair of this process for a run.

    All that a worker keeps is there before its first cell, whatever the conditions: one without the
    memory for it fails at once, not under the first fog of the night.
    """
    settle(work.folder, work.modules, work.plugins)
    pair = _opened(work.model, work.enhance, work.data, work.fingerprints)
    if isinstance(pair.model, Model):
        start_kernels()
    return pair


def forget_pair(*, dataset: bool = False) -> None:
    """Forget the opened model, whose state cannot be trusted after it was interrupted; and the dataset."""
    open_pair.cache_clear()
    if dataset:
        open_dataset_once.cache_clear()
