"""OpenCV's pedestrian detector, on photographs and on images it cannot search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.datasets import read_dataset
from stormproof.models import load_model


@pytest.mark.parametrize("spec", ["hog", "hog:", "hog:people", "hog:,margin=0.2", "hog:daimler"])
def test_opens_by_every_spelling(spec: str) -> None:
    model = load_model(spec)
    assert model.classes == ("person",)
    assert len(model([np.zeros((30, 200, 3), np.uint8)])[0]) == 0  # lower than its window
    assert len(model([np.zeros((200, 200), np.uint8)])[0]) == 0


def test_settings_are_part_of_the_identity() -> None:
    prints = {load_model(spec).fingerprint for spec in ("hog", "hog:daimler", "hog:people,margin=0.1")}
    assert len(prints) == 3
    with pytest.raises(UnknownName, match="people"):
        load_model("hog:poeple")


@pytest.mark.parametrize("option", ["step=-8", "step=0", "scale=1", "scale=0.5"])
def test_a_search_that_never_moves_or_grows_is_refused(option: str) -> None:
    with pytest.raises(InvalidOption, match="step must be at least 1, and scale above 1"):
        load_model(f"hog:people,{option}")


def test_finds_people_in_photographs(shared: Path) -> None:
    data = read_dataset(f"coco:{shared}/data/coco/instances_val2017.json,masks=false")
    model = load_model("hog")
    person = data.classes.index("person")
    hits = 0
    for i in range(40):
        truth = data.truth(i).instances
        assert truth is not None
        tall = truth.boxes[
            (truth.labels == person) & ~truth.crowd & (truth.boxes[:, 3] - truth.boxes[:, 1] > 150)
        ]
        if not len(tall):
            continue
        (found,) = model([data[i].image])
        assert (found.scores >= 0.5).all()
        for box in found.boxes:
            corner, far = np.maximum(tall[:, :2], box[:2]), np.minimum(tall[:, 2:], box[2:])
            shared_area = np.clip(far - corner, 0, None).prod(axis=1)
            union = (tall[:, 2:] - tall[:, :2]).prod(axis=1) + (box[2:] - box[:2]).prod() - shared_area
            hits += bool((shared_area / union > 0.4).any())
    assert hits >= 3
