"""Corrupted images of a pool's scenes: another array beside the clean one, for a training to mix in."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import torch

from stormproof.core.condition import Condition
from training.pool import CLEAN, array, read, wait_for

AT_ONCE = 100


def corrupt(folder: Path, condition: str, device: torch.device, limit: int = 0) -> Path:
    """Write every scene of a pool, or the first `limit`, under a condition, as an array named after it.

    On a GPU, only conditions that need no depth. The pixels are the same on every device.
    """
    pool = read(folder)
    name = str(Condition.parse(condition))
    array(folder, pool, name, "w+")
    count = min(limit or pool.count, pool.count)
    if device.type == "cuda":
        _on_device(folder, name, device, count)
    else:
        workers = os.cpu_count() or 1
        with multiprocessing.get_context("spawn").Pool(workers) as processes:
            processes.starmap(_work, [(folder, name, count, w, workers) for w in range(workers)])
    return folder / f"{name}.raw"


def _work(folder: Path, name: str, count: int, worker: int, workers: int) -> None:
    """Render each scene again, because some corruptions need its depth, and corrupt it."""
    from stormproof.corruptions import apply
    from stormproof.world.samples import render

    pool, condition = read(folder), Condition.parse(name)
    images = array(folder, pool, name, "r+")
    for index in range(worker, count, workers):
        sample = render(pool.seed, pool.split, index, width=pool.width, height=pool.height).sample
        images[index] = apply(sample, condition, seed=pool.seed).image


def _on_device(folder: Path, name: str, device: torch.device, count: int) -> None:
    """Corrupt the scenes as they lie in the pool. Needs no OpenCV."""
    from stormproof import corrupt_batch
    from stormproof.world.samples import scene_id

    pool = read(folder)
    clean, images = array(folder, pool, CLEAN, "r"), array(folder, pool, name, "r+")
    for start in range(0, count, AT_ONCE):
        rows = range(start, min(start + AT_ONCE, count))
        wait_for(folder, pool, rows.stop)
        batch = torch.from_numpy(np.array(clean[rows.start : rows.stop])).to(device).permute(0, 3, 1, 2)
        ids = [scene_id(pool.split, index) for index in rows]
        made = corrupt_batch(batch.contiguous(), name, ids=ids, seed=pool.seed)
        images[rows.start : rows.stop] = made.permute(0, 2, 3, 1).cpu().numpy()
