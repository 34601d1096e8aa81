"""Filling pools with scenes of the street, on all cores. Needs NumPy and Numba only."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stormproof.core.sample import Instances
from stormproof.world.plan import scenes_of
from stormproof.world.samples import render
from training.pool import CLEAN, COLUMNS, OBJECTS, Pool, array, create, ready


def fill(folders: Sequence[Path], pools: Sequence[Pool]) -> None:
    """Render pools one after another; each can be read while it grows."""
    for folder, pool in zip(folders, pools, strict=True):
        create(folder, pool)
    # Compile before the fork, so that it happens once.
    render(0, "val", 0, width=pools[0].width, height=pools[0].height)
    for pool in pools:
        if pool.scenario:  # found once, for all workers
            scenes_of(pool.scenario, pool.seed, pool.split, pool.count)
    context = multiprocessing.get_context("fork")
    for folder, pool in zip(folders, pools, strict=True):
        started = time.monotonic()
        workers = [context.Process(target=_work, args=(folder, pool, w)) for w in range(pool.workers)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds = time.monotonic() - started
        print(f"{pool.split}: {ready(folder, pool)} scenes in {seconds:.0f} s", flush=True)


def _work(folder: Path, pool: Pool, worker: int) -> None:
    images, semantic, instance, objects, done = (
        array(folder, pool, name, "r+") for name in (CLEAN, "semantic", "instance", "objects", "done")
    )
    scenes = scenes_of(pool.scenario, pool.seed, pool.split, pool.count) if pool.scenario else None
    for index in range(worker, pool.count, pool.workers):
        number = scenes[index] if scenes else index
        rendered = render(pool.seed, pool.split, number, width=pool.width, height=pool.height)
        sample = rendered.sample
        assert sample.truth.instances is not None
        assert sample.truth.semantic is not None
        images[index] = sample.image
        semantic[index] = sample.truth.semantic.labels
        objects[index], renumbered = table(sample.truth.instances)
        instance[index] = renumbered[rendered.instance]
        done[worker] += 1


def table(instances: Instances) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]:
    """The largest objects as rows; and for each number in the instance map, 1 + its row, or 0."""
    rows = np.zeros((OBJECTS, COLUMNS), np.int16)
    order = np.argsort(-instances.area, kind="stable")[:OBJECTS]
    count = len(order)
    rows[:count, :4] = instances.boxes[order]
    rows[:count, 4] = instances.labels[order]
    rows[:count, 5] = np.where(instances.ignore[order], -1, 1)
    renumbered = np.zeros(len(instances) + 1, np.uint8)
    renumbered[order + 1] = np.arange(1, count + 1)
    return rows, renumbered
