"""Tags of images: from a CSV file and from OpenLABEL, with clear errors for files that say nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stormproof.core.errors import DatasetError
from stormproof.core.sample import Sample, Truth
from stormproof.datasets.dataset import SampleDataset
from stormproof.datasets.tags import read_openlabel, read_tags, write_openlabel


@pytest.fixture
def data() -> SampleDataset:
    image = np.zeros((8, 8, 3), np.uint8)
    return SampleDataset.of([Sample(name, image, Truth()) for name in ("a", "b")], classes=("car",))


def test_tags_come_from_a_csv_file(tmp_path: Path, data: SampleDataset) -> None:
    path = tmp_path / "tags.csv"
    path.write_text("id,weather\na,rainy\n")
    assert read_tags(data, f"{path}:weather", [0, 1]) == [{"rainy"}, frozenset()]


def test_tags_come_from_openlabel_with_their_values(tmp_path: Path, data: SampleDataset) -> None:
    value = {"num": [{"name": "weatherRainValue", "type": "value", "val": 4}]}
    tags = [{"type": "WeatherRain", "tag_data": value}, {"type": "SceneryZone"}]
    made = write_openlabel(tags, "images/a.png")
    (tmp_path / "a.json").write_text(json.dumps(made))
    assert read_tags(data, str(tmp_path), [0, 1]) == [
        {"WeatherRain", "weatherRainValue=4", "SceneryZone"},
        frozenset(),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "no key 'openlabel'"),
        ({"openlabel": {"metadata": {}, "tags": {}}}, "metadata.tagged_file"),
        ({"openlabel": {"metadata": {"tagged_file": "a.png"}}}, "has no tags"),
        ({"openlabel": {"metadata": {"tagged_file": "a.png"}, "tags": {"0": {}}}}, "tag without a type"),
    ],
)
def test_a_file_that_tags_nothing_is_refused(tmp_path: Path, content: Any, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=said):
        read_openlabel(path)


def test_tags_of_other_images_are_refused(tmp_path: Path, data: SampleDataset) -> None:
    (tmp_path / "x.json").write_text(json.dumps(write_openlabel([{"type": "WeatherRain"}], "other.png")))
    with pytest.raises(DatasetError, match=r"names 'other.png', and images are called 'a'"):
        read_tags(data, str(tmp_path), [0, 1])
