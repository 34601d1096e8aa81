"""The joints of the street's people: in their masks, in COCO's order, seen by the camera of the pixels."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof import open_dataset
from stormproof.core.joints import COCO_JOINTS
from stormproof.core.sample import Instances
from stormproof.world.classes import OBJECTS
from stormproof.world.models import people

SPEC = "world:val,count=12,size=640x400"
PLACE = {name: k for k, name in enumerate(COCO_JOINTS)}


@pytest.fixture(scope="module")
def shown() -> list[Instances]:
    dataset = open_dataset(f"{SPEC},joints=true")
    truths = [dataset.truth(i).instances for i in range(len(dataset))]
    return [objects for objects in truths if objects is not None]


def test_visible_joints_lie_in_the_mask_of_their_person(shown: list[Instances]) -> None:
    visible = inside = 0
    for objects in shown:
        assert objects.masks is not None
        for points, mask in zip(objects.data["points"], objects.masks, strict=True):
            plane = mask.to_mask()
            for x, y, _ in points[points[:, 2] == 2]:
                assert plane[int(y), int(x)]
                visible += 1
            inside += int((points[:, 2] == 1).sum())
    assert visible > 40
    assert inside > 0  # some joints are hidden, by others or by the person's own body


def test_only_people_of_some_size_have_joints(shown: list[Instances]) -> None:
    for objects in shown:
        labelled = (objects.data["points"][..., 2] > 0).any(axis=1)
        assert all(OBJECTS[label] == "person" for label in objects.labels[labelled])
        assert (objects.area[labelled] >= 32**2).all()


def test_heads_are_above_feet_and_left_is_the_persons_own(shown: list[Instances]) -> None:
    for objects in shown:
        for points in objects.data["points"]:
            at = {name: points[k] for name, k in PLACE.items() if points[k, 2] > 0}
            if "left_shoulder" in at and "left_ankle" in at:
                assert at["left_shoulder"][1] < at["left_ankle"][1]
    for mesh in (people.walker(3), people.rider(1)):
        joints = np.array(mesh.places)
        left, right = (joints[PLACE[f"{side}_shoulder"]] for side in ("left", "right"))
        assert left[0] < 0 < right[0]  # models look along +y, with x to their right
        assert joints[PLACE["nose"], 1] > joints[PLACE["left_ear"], 1]


def test_joints_are_asked_for(shown: list[Instances]) -> None:
    plain = open_dataset(SPEC)
    first = plain.truth(0).instances
    assert first is not None
    assert not first.data
    np.testing.assert_array_equal(first.boxes, shown[0].boxes)
    assert plain.fingerprint != open_dataset(f"{SPEC},joints=true").fingerprint
    sample = open_dataset(f"{SPEC},joints=true")[1].truth.instances
    assert sample is not None
    np.testing.assert_array_equal(sample.data["points"], shown[1].data["points"])
