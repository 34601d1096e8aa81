"""Flicker, fragments and jitter against counting by hand, track by track."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from stormproof.core.randomness import Frame
from stormproof.core.sample import Instances, Prediction
from stormproof.metrics.calibration import Tuned
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import metrics_of
from stormproof.metrics.records import DetectionTruth, lay_out
from stormproof.metrics.stability import steps

CLASSES = ("car", "person")
NAMES = ("flicker", "fragments", "jitter", "centre error", "shape error", "found")
(STABILITY,) = metrics_of("clips")


def cell(truths: dict[str, Instances], found: dict[str, Prediction], frames: dict[str, Frame]) -> Objects:
    truth = DetectionTruth.of(truths.items(), CLASSES)
    clip, step = steps([frames.get(name) for name in truth.ids])
    truth = replace(truth, clip=clip, step=step)
    return Objects(truth, lay_out(found, truth))


def scored(objects: Objects, weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    rows = np.ones((1, len(objects.truth.ids)), np.uint8) if weights is None else weights
    return dict(STABILITY.score(objects, rows).numbers)


def clip_of(found: str, shifts: tuple[float, ...] = (), *, clip: str = "x") -> tuple[dict, dict, dict]:
    """A car of 20×10 px that moves 5 px per frame; '1' marks frames where a shifted box finds it."""
    truths, predictions, frames = {}, {}, {}
    for k, there in enumerate(found):
        name = f"{clip}{k}"
        box = np.array([5.0 * k, 10, 5 * k + 20, 20])
        truths[name] = Instances([box], [0], tracks=[3])
        shift = shifts[k] if shifts else 0.0
        moved = [box + np.array([shift, 0, shift, 0])] if there == "1" else np.zeros((0, 4))
        predictions[name] = Prediction(moved, np.full(len(moved), 0.9), np.zeros(len(moved), np.int64))
        frames[name] = Frame(name, clip, k / 10)
    return truths, predictions, frames


def joined(*clips: tuple[dict, dict, dict]) -> Objects:
    return cell(*({k: v for part in parts for k, v in part.items()} for parts in zip(*clips, strict=True)))


@pytest.mark.parametrize(
    ("found", "flicker", "fragments", "share"),
    [
        ("111111", 0, 0, 1),
        ("110011", 2 / 5, 1, 4 / 6),
        ("010101", 5 / 5, 2, 3 / 6),
        ("001110", 2 / 5, 0, 3 / 6),  # found late and lost for good: no interruption
        ("101101", 4 / 5, 2, 4 / 6),
    ],
)
def test_flicker_and_fragments_by_hand(found: str, flicker: float, fragments: float, share: float) -> None:
    numbers = scored(joined(clip_of(found)))
    assert numbers["flicker"][0] == pytest.approx(flicker)
    assert numbers["fragments"][0] == pytest.approx(fragments)
    assert numbers["found"][0] == pytest.approx(share)


def test_jitter_is_the_change_of_the_error_and_not_the_motion() -> None:
    steady = scored(joined(clip_of("1111", (3, 3, 3, 3))))
    assert steady["jitter"][0] == pytest.approx(0)
    assert steady["centre error"][0] == pytest.approx(0)
    shaken = scored(joined(clip_of("1111", (0, 2, 0, 2))))
    assert shaken["jitter"][0] == pytest.approx(2 / 20)
    assert shaken["centre error"][0] == pytest.approx(np.std([0, 0.1, 0, 0.1]))
    assert shaken["shape error"][0] == pytest.approx(0)
    broken = scored(joined(clip_of("1101", (0, 2, 0, 2))))
    assert broken["jitter"][0] == pytest.approx(2 / 20)  # only the first pair is found twice


def test_scale_and_ratio_by_hand() -> None:
    truths, predictions, frames = clip_of("11")
    box = truths["x1"].boxes[0]
    wide = np.array([[box[0] - 2, box[1], box[2] + 2, box[3]]])  # 24 × 10 instead of 20 × 10
    predictions["x1"] = Prediction(wide, [0.9], [0])
    numbers = scored(cell(truths, predictions, frames))
    assert numbers["shape error"][0] == pytest.approx(np.std([1, np.sqrt(1.2)]) + np.std([1, 1.2]))
    assert numbers["jitter"][0] == pytest.approx(0)


def test_a_weight_equals_repeated_clips() -> None:
    both = joined(clip_of("110011", clip="x"), clip_of("111111", clip="y"))
    images = np.repeat(np.array([[1, 1], [1, 0], [0, 1], [2, 1]], np.uint8), 6, axis=1)
    numbers = scored(both, images)
    assert numbers["flicker"] == pytest.approx([2 / 10, 2 / 5, 0, 4 / 15])
    assert numbers["fragments"] == pytest.approx([1 / 2, 1, 0, 2 / 3])


def test_frames_are_ordered_by_time() -> None:
    """In the order of the file, the car would be found and missed alternately."""
    truths, predictions, frames = clip_of("110011")
    shuffled = {name: truths[name] for name in ("x0", "x2", "x1", "x3", "x4", "x5")}
    numbers = scored(cell(shuffled, predictions, frames))
    assert numbers["flicker"][0] == pytest.approx(2 / 5)
    assert numbers["fragments"][0] == 1


def test_tracks_end_where_objects_do_not_count() -> None:
    truths, predictions, frames = clip_of("101111")
    truths["x1"] = Instances(truths["x1"].boxes, [0], ignore=[True], tracks=[3])
    numbers = scored(cell(truths, predictions, frames))
    assert numbers["flicker"][0] == 0  # x1 does not count, so neither do the pairs it is in
    assert numbers["found"][0] == 1


def test_frames_without_an_object_interrupt_its_track() -> None:
    """Found, hidden for a frame, missed: that is no pair of frames, so nothing flickers or shifts."""
    truths, predictions, frames = clip_of("1.0111", (0, 0, 0, 0, 2, 0))
    truths["x1"] = Instances(np.zeros((0, 4)), np.zeros(0, np.int64), tracks=np.zeros(0, np.int64))
    numbers = scored(cell(truths, predictions, frames))
    assert numbers["flicker"][0] == pytest.approx(1 / 3)  # pairs 2-3, 3-4 and 4-5: missed, then found
    assert numbers["fragments"][0] == 0  # found before the gap, in another track
    assert numbers["jitter"][0] == pytest.approx(2 / 20)


def test_a_class_that_changes_is_missed_and_low_scores_do_not_count() -> None:
    truths, predictions, frames = clip_of("111")
    predictions["x1"] = Prediction(predictions["x1"].boxes, [0.9], [1])
    assert scored(cell(truths, predictions, frames))["flicker"][0] == 1
    clean = joined(clip_of("111"))
    weak = {
        name: Prediction(p.boxes, [0.9 if name != "x1" else 0.2], [0])
        for name, p in clip_of("111")[1].items()
    }
    corrupted = cell(truths, weak, frames)
    tuned = Objects(corrupted.truth, corrupted.found, tuned=Tuned(clean.located, clean.touching))
    assert scored(tuned)["flicker"][0] == 1


def test_only_clips_with_tracks_are_scored() -> None:
    truths, predictions, frames = clip_of("111")
    assert "clips" in cell(truths, predictions, frames).kinds
    assert "clips" not in cell(truths, predictions, {}).kinds
    untracked = {name: Instances(o.boxes, o.labels) for name, o in truths.items()}
    assert "clips" not in cell(untracked, predictions, frames).kinds


def test_random_tracks_equal_a_plain_count() -> None:
    rng = np.random.default_rng(0)
    clips = [
        clip_of("".join(rng.choice(["0", "1"], 9, p=[0.3, 0.7])), tuple(rng.uniform(-2, 2, 9)), clip=f"c{k}-")
        for k in range(6)
    ]
    numbers = scored(joined(*clips))
    changes = pairs = lost = 0
    shifts, errors = [], []
    for truths, predictions, _ in clips:
        seen = [len(predictions[name]) for name in truths]
        offsets = [
            predictions[name].boxes[0, 0] - truths[name].boxes[0, 0] if there else None
            for name, there in zip(truths, seen, strict=True)
        ]
        changes += sum(a != b for a, b in pairwise(seen))
        pairs += len(seen) - 1
        runs = "".join(map(str, seen)).split("0")
        lost += max(sum(bool(run) for run in runs) - 1, 0)
        both = pairwise(offsets)
        shifts += [abs(a - b) / 20 for a, b in both if a is not None and b is not None]
        held = [offset / 20 for offset in offsets if offset is not None]
        errors += [np.std(held)] if len(held) > 1 else []
    assert numbers["flicker"][0] == pytest.approx(changes / pairs)
    assert numbers["fragments"][0] == pytest.approx(lost / len(clips))
    assert numbers["jitter"][0] == pytest.approx(np.mean(shifts))
    assert numbers["centre error"][0] == pytest.approx(np.mean(errors))
    assert {*numbers} == {*NAMES}
