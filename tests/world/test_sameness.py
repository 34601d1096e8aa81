"""The same bytes on every machine, in every order, in any number of processes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.processes import worker_pool
from stormproof.world.samples import render
from stormproof.world.scene import camera_at, compose

GOLDEN = Path(__file__).with_name("golden.json")
CASES = [
    (0, "val", 0, 512, 320),
    (0, "val", 1, 512, 320),
    (0, "test", 499, 512, 320),
    (7, "train", 123456789, 256, 256),
    (0, "val", 5, 1024, 512),
    (0, "test", 20, 321, 97),
    (12345, "val", 199, 64, 48),
    (0, "train", 0, 512, 320),
]


def digest(case: tuple[int, str, int, int, int]) -> dict[str, str]:
    """SHA-256 of the image and of all truth."""
    seed, split, index, width, height = case
    rendered = render(seed, split, index, width=width, height=height, stereo=index == 1)
    truth, context = rendered.sample.truth, rendered.sample.context
    assert truth.instances is not None
    assert truth.panoptic is not None
    assert truth.semantic is not None
    assert context.depth is not None
    parts = [
        truth.instances.boxes,
        truth.instances.labels,
        truth.panoptic,
        truth.semantic.labels,
        context.depth,
        truth.instances.occlusion,
        truth.instances.truncation,
    ]
    whole = hashlib.sha256()
    for part in parts:
        whole.update(np.ascontiguousarray(part).tobytes())
    images = rendered.sample.image.tobytes() + (b"" if context.right is None else context.right.tobytes())
    return {"image": hashlib.sha256(images).hexdigest(), "truth": whole.hexdigest()}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hashes_equal_the_golden_ones(case: tuple[int, str, int, int, int]) -> None:
    assert digest(case) == json.loads(GOLDEN.read_text())[str(case)]


def test_the_order_of_rendering_changes_no_byte() -> None:
    forwards = [digest(case) for case in CASES[:3]]
    assert [digest(case) for case in reversed(CASES[:3])] == forwards[::-1]


@pytest.mark.slow
def test_the_number_of_processes_changes_no_byte() -> None:
    with worker_pool(2) as pool:
        assert list(pool.map(digest, CASES[:4])) == [digest(case) for case in CASES[:4]]


def test_a_scene_is_one_place_at_every_size() -> None:
    plan = compose(0, "val", 3).plan
    small, large = camera_at(plan, 512, 320), camera_at(plan, 1024, 640)
    assert np.array_equal(small[:12], large[:12])
    assert large[12] == 2 * small[12]
    one, two = (render(0, "val", 3, width=k * 256, height=k * 160).sample for k in (1, 2))
    assert one.context.depth is not None
    assert two.context.depth is not None
    seen, again = one.context.depth, two.context.depth[::2, ::2]
    both = np.isfinite(seen) & np.isfinite(again)
    assert np.median(np.abs(seen[both] - again[both]) / seen[both]) < 0.02


def test_splits_and_seeds_are_different_worlds() -> None:
    images = {
        render(seed, split, index, width=64, height=48).sample.image.tobytes()
        for seed in (0, 1)
        for split in ("train", "val", "test")
        for index in range(3)
    }
    assert len(images) == 18


if __name__ == "__main__":  # python tests/world/test_sameness.py renews the hashes after an intended change
    GOLDEN.write_text(json.dumps({str(case): digest(case) for case in CASES}, indent=1) + "\n")
