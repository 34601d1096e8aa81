"""`world:SPLIT` as a dataset, and the nonsense it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, StormproofError, UnknownName
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.world.classes import OBJECTS, SEMANTIC
from stormproof.world.plan import DISTRICTS, SCENARIOS
from stormproof.world.samples import render, scene_id
from stormproof.world.scene import compose


def test_a_split_is_a_dataset() -> None:
    world = read_dataset("world:val,size=96x64")
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
    assert len(read_dataset("world:test")) == 500
    train = read_dataset("world:train")
    assert len(train) == 2**31
    assert train.ids[2**31 - 1].startswith("world-train-")
    assert len(read_dataset("world:train,count=17")) == 17
    with pytest.raises(IndexError):
        read_dataset("world:val")[200]


def test_stereo_pairs_are_rendered_on_demand() -> None:
    sample = read_dataset("world:val,size=96x64,stereo=true,baseline=0.3")[0]
    assert sample.context.right is not None
    assert sample.context.right.shape == sample.image.shape
    assert sample.context.camera is not None
    assert sample.context.camera.baseline == 0.3
    assert sample.context.disparity is not None
    assert (sample.context.disparity[np.isinf(sample.context.depth)] == 0).all()


def test_a_scenario_takes_the_scenes_of_its_kind() -> None:
    """Against the plans of the scenes, one by one."""
    town = ("centre", "terrace", "avenue", "towers")
    found = {name: read_dataset(f"world:val,scenario={name},count=6,size=64x48") for name in SCENARIOS}
    for name, world in found.items():
        numbers = [int(text.removeprefix("world-val-")) for text in world.ids]
        kinds = []
        for index in range(numbers[-1] + 1):
            plan = compose(0, "val", index, shadows=False).plan
            in_town = [district in [DISTRICTS[each] for each in town] for district in (plan.left, plan.right)]
            x, y, up = plan.light.sun
            low = up / np.hypot(x, y) < 0.5
            kinds.append(all(in_town) and not low if name == "town-by-day" else not any(in_town) and low)
        assert numbers == np.flatnonzero(kinds).tolist()
    dusk = found["outskirts-at-dusk"]
    assert int(dusk.ids[5][-6:]) >= 12  # scenes of other kinds are left out
    assert dusk[5].id == dusk.ids[5] == scene_id("val", dusk.scenes[5])
    assert np.array_equal(dusk[5].image, render(0, "val", dusk.scenes[5], width=64, height=48).sample.image)
    truth = dusk.truth(5).instances
    assert truth is not None
    assert dusk[5].truth.instances is not None
    assert np.array_equal(truth.boxes, dusk[5].truth.instances.boxes)


def test_fingerprint_tells_truths_apart() -> None:
    specs = [
        "world:val", "world:test", "world:val,seed=1", "world:val,size=64x64", "world:val,count=3",
        "world:val,count=3,scenario=town-by-day",
    ]  # fmt: skip
    assert len({read_dataset(spec).fingerprint for spec in specs}) == len(specs)
    assert read_dataset("world:val").fingerprint == read_dataset("world:val").fingerprint


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("world:val,scenario=town-by-day", "give the number of scenes as count="),
        ("world:val,scenario=town,count=3", "Unknown scenario of the world 'town'"),
        ("world:val,scenario=town-by-day,clips=3", "no clips="),
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
def test_refuses_nonsense_with_the_nearest_fix(spec: str, says: str) -> None:
    with pytest.raises((InvalidOption, UnknownName)) as caught:
        read_dataset(spec)
    assert isinstance(caught.value, StormproofError)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
