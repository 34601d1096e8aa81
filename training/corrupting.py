"""Corrupted images of a pool's scenes: another array beside the clean one, for a training to mix in."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

from stormproof.core.condition import Condition
from stormproof.corruptions import apply
from stormproof.world.samples import render
from training.pool import array, read


def corrupt(folder: Path, condition: str) -> Path:
    """Write every scene of a pool under a condition, as an array named after the condition."""
    pool = read(folder)
    name = str(Condition.parse(condition))
    array(folder, pool, name, "w+")
    workers = os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(workers) as processes:
        processes.starmap(_work, [(folder, name, w, workers) for w in range(workers)])
    return folder / f"{name}.raw"


def _work(folder: Path, name: str, worker: int, workers: int) -> None:
    """Render each scene again, because some corruptions need its depth, and corrupt it."""
    pool, condition = read(folder), Condition.parse(name)
    images = array(folder, pool, name, "r+")
    for index in range(worker, pool.count, workers):
        sample = render(pool.seed, pool.split, index, width=pool.width, height=pool.height).sample
        images[index] = apply(sample, condition, seed=pool.seed).image
