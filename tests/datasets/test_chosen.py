"""Some images of a dataset, by a list of ids."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stormproof as sp
from helpers import tiny_datasets
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.sample import Sample, Truth
from stormproof.datasets import read_dataset
from stormproof.datasets.attributes import read_attribute
from stormproof.datasets.chosen import with_chosen
from stormproof.datasets.context import ContextFiles, DatasetInClips, DatasetWithContext
from stormproof.datasets.dataset import SampleDataset, abilities
from stormproof.datasets.opened import open_dataset
from stormproof.results.slices import slice_scores


def of_ids(*ids: str) -> SampleDataset:
    pixels = np.zeros((8, 8, 3), np.uint8)
    return SampleDataset.of([Sample(name, pixels, Truth()) for name in ids], classes=("car",))


def listing(tmp_path: Path, text: str) -> str:
    path = tmp_path / "ids.txt"
    path.write_bytes(text.encode())
    return str(path)


def test_listed_images_are_kept_in_the_order_of_the_dataset(tmp_path: Path) -> None:
    whole = of_ids("a", "b", "c c", "d")
    kept = with_chosen(whole, only=listing(tmp_path, "d\r\n\na\r\nc c\r\na\r\n"))
    assert list(kept.ids) == ["a", "c c", "d"]
    assert [kept[k].id for k in range(len(kept))] == ["a", "c c", "d"]
    assert kept.fingerprint != whole.fingerprint
    assert kept.fingerprint == with_chosen(whole, only=listing(tmp_path, "a\nc c\nd")).fingerprint


def test_an_id_with_a_line_break_or_quotes_is_read_as_it_was_written(tmp_path: Path) -> None:
    strange = ('"quoted"', "two\nlines", "ünïcode", " spaced ")
    text = "".join(f"{json.dumps(name) if chr(10) in name else name}\n" for name in strange)
    assert tuple(with_chosen(of_ids(*strange, "x"), only=listing(tmp_path, text)).ids) == strange


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "lists no image"), ("a\nz\n", "lacks: 'z'; ids of this dataset look like 'a'")],
)
def test_a_list_that_fits_no_image_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        with_chosen(of_ids("a", "b"), only=listing(tmp_path, text))


def test_a_list_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(DatasetError, match="not text in UTF-8"):
        with_chosen(of_ids("a"), only=str(path))


def test_a_listed_image_of_a_dataset_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="'a'; it has no images"):
        with_chosen(of_ids(), only=listing(tmp_path, "a"))
    with pytest.raises(InvalidOption, match="no image 'a'; it has no images"):
        open_dataset(of_ids())["a"]


def test_a_list_is_an_attribute_of_images(tmp_path: Path) -> None:
    asked = listing(tmp_path, "a\nc\n")
    made = read_attribute(of_ids("a", "b", "c"), asked, range(3))
    assert made.values == ("listed", "others", "listed")
    with pytest.raises(DatasetError, match="lists none of the 2 images"):
        read_attribute(of_ids("x", "y"), asked, range(2))


def test_a_run_of_listed_images_has_the_predictions_of_the_whole_run(tmp_path: Path) -> None:
    """Pixels follow from the image's id, so a list changes which images are run and nothing else."""
    scene = write_scene(tmp_path / "scene", images=6)
    given = {"conditions": "gaussian_noise@3", "engine": "local", "progress": False}
    model = f"{MODELS}:contrast_boxes"
    whole = sp.run(model, scene, out=tmp_path / "whole", **given)
    ids = [whole.ids[k] for k in (4, 1)]
    images = listing(tmp_path, "\n".join(ids))
    few = sp.run(model, scene, out=tmp_path / "few", images=images, **given)
    again = sp.Run(tmp_path / "few")
    assert sorted(few.ids) == sorted(again.ids) == sorted(ids)
    for name in ids:
        for text, each in few.predictions_of(name).items():
            assert np.array_equal(each.boxes, whole.predictions_of(name)[text].boxes)
            assert np.array_equal(each.scores, whole.predictions_of(name)[text].scores)
    assert again.score().images == 2
    more = sp.run(model, scene, out=tmp_path / "few", images=images, **{**given, "conditions": "fog@1"})
    assert {*more.conditions} == {"clean", "gaussian_noise@3", "fog@1"}
    assert slice_scores(whole, images)["listed"].images == 2


def test_a_spec_takes_a_list_beside_its_other_options(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "scene", images=3)
    name = open_dataset(scene).ids[2]
    assert list(open_dataset(f"{scene},only={listing(tmp_path, name)}").ids) == [name]


def test_what_lvis_searched_for_follows_the_images_that_are_kept(tmp_path: Path) -> None:
    """Without it, part of an LVIS dataset was scored by COCO's rule."""
    whole = read_dataset(tiny_datasets.lvis(tmp_path))
    known = abilities(whole).federated
    last = with_chosen(whole, only=listing(tmp_path, f"{whole.ids[-1]}\n"))
    kept = abilities(last).federated
    assert known is not None
    assert kept is not None
    assert kept.searched.tolist() == known.searched[-1:].tolist()
    assert kept.exhaustive.tolist() == known.exhaustive[-1:].tolist()
    assert kept.frequency == known.frequency


def test_what_lvis_searched_for_is_kept_beside_depth_and_in_clips(tmp_path: Path) -> None:
    whole = read_dataset(tiny_datasets.lvis(tmp_path))
    known = abilities(whole).federated
    with_depth = DatasetWithContext(whole, range(1, len(whole)), ContextFiles({}))
    in_clips = DatasetInClips(whole, range(len(whole)), {})
    assert known is not None
    for dataset, first in ((with_depth, 1), (in_clips, 0)):
        kept = abilities(dataset).federated
        assert kept is not None
        assert kept.searched.tolist() == known.searched[first:].tolist()
