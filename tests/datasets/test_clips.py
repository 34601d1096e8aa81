"""Frames of clips: which sequence they belong to, when they were taken, and which objects are the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stormproof.core.errors import DatasetError, InvalidOption, UnknownName
from stormproof.core.randomness import Frame
from stormproof.core.sample import Camera, Context, Instances, Sample, Truth
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import SampleDataset, identity_of

Build = Callable[..., str]


def test_a_csv_file_makes_clips_of_any_dataset(build: Build, tmp_path: Path) -> None:
    spec = build("kitti")
    table = tmp_path / "clips.csv"
    table.write_text("id,sequence,time\n000001, drive , 0.4\n", encoding="utf-8")
    plain, dataset = read_dataset(spec), read_dataset(f"{spec},sequences={table}")
    assert dataset.frames == {"000001": Frame("000001", "drive", 0.4)}
    assert (dataset[1].sequence, dataset[1].time) == ("drive", 0.4)
    assert (dataset[0].sequence, dataset[0].time) == ("", 0.0)
    assert [identity_of(dataset, i) for i in (0, 1)] == ["000000", Frame("000001", "drive", 0.4)]
    assert dataset.fingerprint != plain.fingerprint
    assert (dataset[1].image == plain[1].image).all()
    table.write_text("id,sequence,time\n000001,drive,0.5\n", encoding="utf-8")
    assert read_dataset(f"{spec},sequences={table}").fingerprint != dataset.fingerprint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,time\n000001,0.4\n", "needs the first line 'id,sequence,time', not 'id,time'"),
        ("id,sequence,time\n000001,drive\n", "line 2.*'000001,drive' must be an image id, a sequence and"),
        ("id,sequence,time\n000001,drive,soon\n", "a time in seconds"),
        ("id,sequence,time\n000001,drive,nan\n", "a time in seconds"),
        ("id,sequence,time\n000001,a,0\n000001,a,1\n", "line 3.*lists '000001' a second time"),
        ("id,sequence,time\n7,a,0\n", "lacks: '7'; ids of this dataset look like '000000'"),
        ("", "needs the first line"),
    ],
)
def test_refuses_tables_that_cannot_be_read(build: Build, tmp_path: Path, text: str, words: str) -> None:
    table = tmp_path / "clips.csv"
    table.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=words):
        read_dataset(f"{build('kitti')},sequences={table}")


def test_reads_the_clips_of_kitti_tracking(build: Build) -> None:
    spec = build("kitti-tracking")
    dataset = read_dataset(spec)
    assert dataset.ids == ("0000/000000", "0000/000001", "0000/000002", "0001/000000")
    assert dataset.frames["0000/000002"] == Frame("0000/000002", "0000", 0.2)
    first, later = dataset.truth(0).instances, dataset.truth(2).instances
    counting = ~first.ignore
    assert first.tracks[counting].tolist() == [7, 9]
    assert [dataset.classes[k] for k in first.labels[counting]] == ["Car", "Person_sitting"]
    assert (first.tracks[first.ignore] == -1).all()
    assert later.tracks.tolist() == [7]
    assert len(dataset.truth(1).instances) == len(dataset.truth(3).instances) == 0
    assert read_dataset(f"{spec},sequence=0001").ids == ("0001/000000",)
    with pytest.raises(DatasetError, match="0002"):
        read_dataset(f"{spec},sequence=0002")


def test_reads_bdds_frames_of_a_video(tmp_path: Path, trees: ModuleType) -> None:
    box = {"x1": 1, "y1": 2, "x2": 9, "y2": 12}
    for video, count in (("v1", 2), ("v2", 1)):
        frames = [
            {
                "name": f"{video}-{k}.jpg", "videoName": video, "frameIndex": k,
                "labels": [{"id": f"0000{k + 3}", "category": "car", "box2d": box}],
            }
            for k in range(count)
        ]  # fmt: skip
        trees.save_text(tmp_path / f"labels/{video}.json", json.dumps(frames))
        for frame in frames:
            trees.save(tmp_path / f"images/{video}/{frame['name']}", trees.make_image())
    dataset = read_dataset(f"bdd:{tmp_path}/labels,images={tmp_path}/images")
    assert dict(dataset.frames) == {"v1-0": Frame("v1-0", "v1", 0.0), "v1-1": Frame("v1-1", "v1", 0.2)}
    assert [dataset.truth(k).instances.tracks.tolist() for k in range(3)] == [[3], [4], [3]]
    assert dataset[2].sequence == ""  # a video's only frame
    trees.save_text(tmp_path / "out.json", json.dumps([frames[0] | {"videoName": "../images/v1"}]))
    with pytest.raises(DatasetError, match=r"videoName '\.\./images/v1' must be a path"):
        read_dataset(f"bdd:{tmp_path}/out.json,images={tmp_path}/images")


def test_detection_labels_of_bdd_are_single_images(build: Build) -> None:
    assert read_dataset(build("bdd")).frames == {}


def test_samples_in_memory_may_be_frames() -> None:
    image = np.zeros((8, 9, 3), np.uint8)
    objects = Truth(Instances([[1, 1, 5, 5]], [0], tracks=[4]))
    single = SampleDataset.of([Sample("a", image, objects)])
    frames = SampleDataset.of([Sample("a", image, objects, sequence="drive", time=1.5)])
    assert single.frames == {}
    assert frames.frames == {"a": Frame("a", "drive", 1.5)}
    assert single.fingerprint != frames.fingerprint
    untracked = SampleDataset.of([Sample("a", image, Truth(Instances([[1, 1, 5, 5]], [0])))])
    assert single.fingerprint == untracked.fingerprint  # what runs recorded before there were tracks


def test_the_fingerprint_of_samples_covers_all_that_decides_scores_and_pixels() -> None:
    image, box = np.zeros((8, 9, 3), np.uint8), [[1, 1, 5, 5]]
    samples = [
        Sample("a", image, Truth(Instances(box, [0], **stated)), Context(camera=camera))
        for camera in (None, Camera(10, 10, 4, 4))
        for stated in ({}, {"area": [3]}, {"occlusion": [0.5]}, {"truncation": [0.5]}, {"distance": [7]})
    ]
    assert len({SampleDataset.of([one]).fingerprint for one in samples}) == len(samples)
    whole, same = (
        Sample("a", image, context=Context(camera=Camera(*map(kind, (10, 10, 4, 4)))))
        for kind in (int, np.float32)
    )
    assert SampleDataset.of([whole]).fingerprint == SampleDataset.of([same]).fingerprint


def test_the_world_moves() -> None:
    dataset = read_dataset("world:test,clips=2,frames=3,size=96x64")
    assert len(dataset) == 6
    assert dataset.ids[4] == "world-test-000001-0001"
    assert dataset.frames[dataset.ids[4]] == Frame(dataset.ids[4], "world-test-000001", 0.1)
    still = read_dataset("world:test,count=2,size=96x64")
    assert (dataset[3].image == still[1].image).all()  # a clip begins as the scene that stands still
    assert (dataset[3].image != dataset[4].image).any()
    assert dataset.fingerprint != still.fingerprint
    assert still.frames == {}
    before, after = (dataset.truth(k).instances for k in (3, 4))
    both = set(before.tracks.tolist()) & set(after.tracks.tolist())
    assert len(both) > 3
    for track in both:
        one, other = before.tracks == track, after.tracks == track
        assert before.labels[one] == after.labels[other]


@pytest.mark.parametrize(
    ("options", "words"),
    [("clips=2,frames=1", "2 to 40 frames"), ("clips=2,count=3", "give one of them"), ("clips=0", "Count 0")],
)
def test_refuses_clips_that_the_world_cannot_show(options: str, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        read_dataset(f"world:test,{options}")


def test_suggests_the_nearest_option() -> None:
    with pytest.raises(UnknownName, match="sequences"):
        read_dataset("coco:none.json,sequence=a.csv")
