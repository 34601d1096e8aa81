"""Attributes of images and distances of objects: bounds, order, and what is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import RLE, Instances, Sample, Truth
from stormproof.datasets.attributes import read_attribute, with_distances
from stormproof.datasets.dataset import SampleDataset


def images(count: int, objects: dict[int, Instances] | None = None) -> SampleDataset:
    pixels = np.zeros((8, 8, 3), np.uint8)
    held = objects or {}
    return SampleDataset.of(
        [Sample(f"{k}", pixels, Truth(held.get(k))) for k in range(count)], classes=("car",)
    )


def by_table(tmp_path: Path, values: list[str]) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
    path = tmp_path / "table.csv"
    path.write_text("id,what\n" + "".join(f"{k},{value}\n" for k, value in enumerate(values)))
    found = read_attribute(images(len(values)), str(path), range(len(values)))
    return found.values, found.slices


def test_an_image_on_the_bound_of_a_third_belongs_to_the_lower_third(tmp_path: Path) -> None:
    """Of 0 to 9 the bounds are 3 and 6."""
    values, slices = by_table(tmp_path, [str(k) for k in range(10)])
    assert values == ("low",) * 4 + ("middle",) * 3 + ("high",) * 3
    assert slices == ("low", "middle", "high")


@pytest.mark.parametrize("asked", ["ids.txt", "table.csv", "brightness"])
def test_says_that_no_image_can_be_read(asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.txt").write_text("0\n")
    (tmp_path / "table.csv").write_text("id,what\n0,a\n")
    with pytest.raises(InvalidOption, match=f"can be read, so none has the attribute '{asked}'"):
        read_attribute(images(1), asked, [])


def test_few_distinct_numbers_are_one_slice_each_in_ascending_order(tmp_path: Path) -> None:
    values, slices = by_table(tmp_path, ["10", "9", "100", "none", "9", "-1"])
    assert slices == ("-1", "9", "10", "100", "none")
    assert values == ("10", "9", "100", "none", "9", "-1")


def test_crowds_and_ignored_objects_are_not_counted() -> None:
    box = [0, 0, 4, 4]
    held = {
        k: Instances([box] * 6, [0] * 6, crowd=[n >= k for n in range(6)] if k % 2 else None,
                     ignore=None if k % 2 else [n >= k for n in range(6)])
        for k in range(7)
    }  # fmt: skip
    found = read_attribute(images(7, held), "count", range(7))
    # Image k has k objects that count, so the bounds are 2 and 4.
    assert found.values == ("low",) * 3 + ("middle",) * 2 + ("high",) * 2


def test_the_distance_of_an_object_is_the_median_of_its_pixels() -> None:
    """Five pixels of it are at 10 m, four of the background at 90 m; sky and unknown depth do not count."""
    depth = np.full((4, 4), 500, np.float32)
    depth[1:, 1:] = [[10, 10, 90], [10, 90, 90], [10, 10, 90]]
    depth[0, 1:] = np.inf
    depth[1:, 0] = np.nan
    box = Instances([[0, 0, 4, 4]], [0])
    mask = np.zeros((4, 4), bool)
    mask[1:, 1:] = True
    masked = Instances([[1, 1, 4, 4]], [0], (RLE.from_mask(mask),))
    assert with_distances(masked, depth).distance.tolist() == [10.0]
    assert with_distances(box, depth).distance.tolist() == [pytest.approx(50.0)], "between 10 and 90, of ten"
    beyond = Instances([[-1, 0, 4, 4], [0, -2, 4, 6]], [0, 0])  # as boxes that the frame cuts off may be
    assert with_distances(beyond, depth).distance.tolist() == [pytest.approx(50.0)] * 2
    stated = Instances([[0, 0, 4, 4]], [0], distance=[7.0])
    assert with_distances(stated, depth).distance.tolist() == [7.0]
