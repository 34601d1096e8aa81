"""`world:SPLIT` as a dataset, and the nonsense it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, StormproofError, UnknownName
from stormproof.datasets import open_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.world.classes import OBJECTS, SEMANTIC


def test_a_split_is_a_dataset() -> None:
    world = open_dataset("world:val,size=96x64")
    assert isinstance(world, Dataset)
    assert (len(world), world.size(0), len(SEMANTIC)) == (200, (64, 96), 12)
    assert (world.classes, world.semantic_classes) == (OBJECTS, SEMANTIC)
    assert world.ids[12] == "world-val-000012"
    assert world.ids[-1] == "world-val-000199"
    assert list(world.ids)[:2] == list(world.ids[:2])
    sample = world[12]
    assert sample.id == "world-val-000012"
    assert sample.context.depth is not None
    assert sample.context.camera is not None
    assert sample.context.right is None
    truth = world.truth(12)
    assert truth.panoptic is not None
    assert np.array_equal(truth.panoptic, sample.truth.panoptic)


def test_splits_have_their_sizes() -> None:
    assert len(open_dataset("world:test")) == 500
    train = open_dataset("world:train")
    assert len(train) == 2**31
    assert train.ids[2**31 - 1].startswith("world-train-")
    assert len(open_dataset("world:train,count=17")) == 17
    with pytest.raises(IndexError):
        open_dataset("world:val")[200]


def test_stereo_comes_on_demand() -> None:
    sample = open_dataset("world:val,size=96x64,stereo=true,baseline=0.3")[0]
    assert sample.context.right is not None
    assert sample.context.right.shape == sample.image.shape
    assert sample.context.camera is not None
    assert sample.context.camera.baseline == 0.3
    assert sample.context.disparity is not None
    assert (sample.context.disparity[np.isinf(sample.context.depth)] == 0).all()


def test_fingerprint_tells_truths_apart() -> None:
    specs = ["world:val", "world:test", "world:val,seed=1", "world:val,size=64x64", "world:val,count=3"]
    assert len({open_dataset(spec).fingerprint for spec in specs}) == len(specs)
    assert open_dataset("world:val").fingerprint == open_dataset("world:val").fingerprint


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("world:val,size=0x0", "32 to 4096"),
        ("world:val,size=1000000x1000000", "32 to 4096"),
        ("world:val,size=31x64", "32 to 4096"),
        ("world:val,size=big", "512x320"),
        ("world:val,size=-5x10", "512x320"),
        ("world:val,count=0", "1 to 200"),
        ("world:val,count=201", "1 to 200"),
        ("world:val,count=-1", "1 to 200"),
        ("world:val,baseline=0", "Baseline"),
        ("world:val,baseline=nan", "finite number"),
        ("world:val,sise=3x3", "Did you mean 'size'"),
        ("world:vall", "Did you mean 'val'"),
    ],
)
def test_nonsense_is_refused_with_the_nearest_fix(spec: str, says: str) -> None:
    with pytest.raises((InvalidOption, UnknownName)) as caught:
        open_dataset(spec)
    assert isinstance(caught.value, StormproofError)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
