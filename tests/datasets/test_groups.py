"""Images that are not independent: which readers know it, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import PIL.Image
import pytest

from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.datasets import read_dataset
from stormproof.datasets.cityscapes import snippets
from stormproof.datasets.dataset import identity_of
from stormproof.datasets.groups import frames_warning, guess_groups
from stormproof.datasets.real_weather import _recording

Build = Callable[..., str]


def image_folder(root: Path, *names: str) -> str:
    root.mkdir()
    for name in names:
        PIL.Image.fromarray(np.zeros((8, 9, 3), np.uint8)).save(root / f"{name}.png")
    return f"images:{root}"


def drives(count: int = 4) -> list[str]:
    return [f"drive{k}_{n:04}" for k in (1, 2) for n in range(0, 30 * count, 30)]


def test_camvid_frames_belong_to_their_recording(tmp_path: Path, trees: ModuleType) -> None:
    names = ("0001TP_006690", "0001TP_006720", "Seq05VD_f00000", "Seq05VD_f00030", "0016E5_00390")
    for name in names:
        trees.save(tmp_path / f"images/{name}.png", trees.make_image())
        trees.save(tmp_path / f"labels/{name}.png", np.zeros(trees.make_image().shape[:2], np.uint8))
    dataset = read_dataset(f"camvid:{tmp_path}")
    assert dataset.groups == {
        "0001TP_006690": "0001TP", "0001TP_006720": "0001TP",
        "Seq05VD_f00000": "Seq05VD", "Seq05VD_f00030": "Seq05VD",
    }  # fmt: skip
    assert [identity_of(dataset, k) for k in range(len(dataset))] == list(dataset.ids)  # the same pixels


def test_acdc_frames_and_references_belong_to_their_recording() -> None:
    names = ("fog/GOPR0475_frame_000041", "fog/GP010475_frame_000310", "clear/GOPR0475_frame_000041")
    assert {_recording(name) for name in names} == {"recording 0475"}
    assert _recording("night/GOPR0351_frame_000159") != _recording(names[0])


def test_one_scene_in_several_fogs_is_one_group(build: Build) -> None:
    dataset = read_dataset(build("foggy-cityscapes"))
    assert set(dataset.groups) == set(dataset.ids)
    assert len({*dataset.groups.values()}) == len(dataset) / 4


def test_cityscapes_frames_of_a_snippet_belong_together() -> None:
    """A drive of an hour has one sequence number in some cities; its labelled frames are far apart."""
    labelled = ["frankfurt_000000_000294", "frankfurt_000000_000576", "lindau_000000_000019"]
    assert snippets(labelled) == {}
    every = [f"aachen_000003_{k:06}" for k in range(30)]
    assert len({*snippets(every).values()}) == 1


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["2011_09_26_drive_0005_sync_0000000109", "2011_09_26_drive_0005_sync_0000000110"], 1),
        (["000042_10", "000042_11"], 1),
        (["000042", "000043"], 0),
    ],
)
def test_groups_follow_the_names_of_kittis_raw_and_stereo_sets(
    tmp_path: Path, trees: ModuleType, names: list[str], groups: int
) -> None:
    for name in names:
        trees.save(tmp_path / f"image_2/{name}.png", trees.make_image())
        trees.save_text(tmp_path / f"label_2/{name}.txt", "Car 0 0 0 1 1 5 5\n")
    assert len({*read_dataset(f"kitti:{tmp_path}").groups.values()}) == groups


def test_names_of_frames_are_recognised() -> None:
    several = guess_groups({name: name for name in drives()})
    assert {*several.values()} == {"drive1_", "drive2_"}
    assert guess_groups({str(k): f"frames/{k:05}" for k in range(9)})
    irregular = ("000000000139", "000000000285", "000000000632", "000000000724")
    for numbered in (irregular, [f"images/{k:06}" for k in range(20)], ["2007_000027", "2007_000032"]):
        assert guess_groups({name: name for name in numbered}) == {}


def test_warns_of_images_that_look_like_frames(tmp_path: Path) -> None:
    frames = read_dataset(image_folder(tmp_path / "a", *drives()))
    warning = frames_warning(frames)
    assert warning is not None
    assert "8 of 8 images look like frames of 2 recordings (a/drive1_0000 …)" in warning
    assert frames_warning(read_dataset(image_folder(tmp_path / "b", *(f"{k:06}" for k in range(8))))) is None
    assert frames_warning(read_dataset("world:test,count=8")) is None


def test_groups_may_be_named_and_change_no_fingerprint(tmp_path: Path) -> None:
    spec = image_folder(tmp_path / "a", *drives())
    table = tmp_path / "groups.csv"
    table.write_text("id,group\n" + "".join(f"{name},town\n" for name in drives()[:3]), encoding="utf-8")
    plain, named, listed = (
        read_dataset(text) for text in (spec, f"{spec},groups=names", f"{spec},groups={table}")
    )
    assert plain.groups == {}
    assert len({*named.groups.values()}) == 2
    assert listed.groups == dict.fromkeys(drives()[:3], "town")
    assert plain.fingerprint == named.fingerprint == listed.fingerprint
    assert named[0].sequence == ""
    with pytest.raises(InvalidOption, match="takes no groups"):
        read_dataset("world:test,count=2,groups=names")


def test_a_dataset_without_images_has_no_groups(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"images": [], "annotations": [], "categories": []}')
    assert read_dataset(f"coco:{tmp_path}/none.json,images={tmp_path},groups=names").groups == {}


def test_refuses_groups_that_cannot_be_read(tmp_path: Path) -> None:
    spec, table = image_folder(tmp_path / "a", "one", "two"), tmp_path / "groups.csv"
    with pytest.raises(InvalidOption, match="names such as 'a/one' do not look like frames"):
        read_dataset(f"{spec},groups=names")
    for text, words in (("name,group\n", "first line 'id,group'"), ("id,group\none\n", "and its group"),
                        ("id,group\nthree,x\n", "lists images that a lacks: 'three'"),
                        ("id,group\none,x\none,y\none,x\n", "line 3: .*a second .*1 more")):  # fmt: skip
        table.write_text(text, encoding="utf-8")
        with pytest.raises(DatasetError, match=words):
            read_dataset(f"{spec},groups={table}")


def test_images_in_an_archive_take_groups_too(tmp_path: Path, build: Build) -> None:
    spec, table = build("tar"), tmp_path / "groups.csv"
    names = read_dataset(spec).ids
    table.write_text("id,group\n" + "".join(f"{name},walk\n" for name in names), encoding="utf-8")
    grouped = read_dataset(f"{spec},groups={table}")
    assert grouped.groups == dict.fromkeys(names, "walk")
    assert grouped.fingerprint == read_dataset(spec).fingerprint
