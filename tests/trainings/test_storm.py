"""The storm's numbers are the package's, and sensitivities to people are those of its clean scenes."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stormproof.core.sample import Instances, Prediction  # noqa: E402
from stormproof.metrics.inputs import Objects  # noqa: E402
from stormproof.metrics.records import DetectionTruth, lay_out  # noqa: E402
from stormproof.world.classes import OBJECTS, PERSON  # noqa: E402
from training import storm  # noqa: E402

IDS = tuple(f"{k}.png" for k in range(12))


def objects(noise: float) -> Objects:
    """People and cars found with `noise` pixels of error, each with a score, beside false ones."""
    rng = np.random.default_rng(int(noise))
    truths, found = {}, {}
    for name in IDS:
        corners = rng.uniform(0, 300, (4, 2))
        boxes = np.hstack([corners, corners + rng.uniform(20, 60, (4, 2))])
        labels = np.array([PERSON, PERSON, 2, 2])
        truths[name] = Instances(boxes, labels)
        moved = boxes + rng.normal(0, noise, boxes.shape)
        moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)
        extra = moved + 150
        found[name] = Prediction(
            np.vstack([moved, extra]), rng.uniform(0.05, 1, 8), np.concatenate([labels, labels])
        )
    truth = DetectionTruth.of(truths.items(), OBJECTS)
    return Objects(truth, lay_out(found, truth), person=PERSON)


def test_numbers_are_those_of_the_metrics() -> None:
    clean, worse = objects(2), objects(9)
    rows = np.concatenate(
        [np.ones((1, len(IDS)), np.uint8), np.random.default_rng(1).integers(0, 3, (5, len(IDS)), np.uint8)]
    )
    assert clean.people is not None
    judged = storm._judged(worse, clean.people, rows)
    whole = Objects(worse.truth, worse.found, person=PERSON, clean=clean.people).scored(rows)
    for measure in storm.MEASURES["grid"]:
        np.testing.assert_array_equal(judged.numbers[measure], whole.numbers[measure])
    at_own = storm._judged(worse, worse.people, rows).numbers["ADR"]
    assert (at_own != judged.numbers["ADR"]).any()


def test_sensitivities_come_from_clean_scenes_even_if_they_are_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"clean": objects(2), "fog@3": objects(9)}
    seen: list[str] = []

    def predicted(network: object, images: object, *_: object) -> Objects:
        return given[seen[-1]]

    def corrupted(images: torch.Tensor, condition: str, **_: object) -> torch.Tensor:
        seen.append(condition)
        return images

    monkeypatch.setattr(storm, "corrupt_batch", corrupted)
    monkeypatch.setattr(storm, "_boxes", predicted)
    monkeypatch.setattr(storm, "_networks", lambda *_: {"one": ("grid", torch.nn.Identity(), "")})
    size = (len(IDS), 4, 4)
    truth = tuple(Instances(np.empty((0, 4)), np.empty(0, np.int64)) for _ in IDS)
    scenes = storm.TestSet(
        IDS, np.zeros((*size, 3), np.uint8), np.ones(size, np.float32), np.zeros(size, np.uint8), truth
    )
    found = storm.storm([], ["fog@3"], scenes, replicates=50)
    assert list(found) == [("one", "fog@3")]
    rows = np.ones((1, len(IDS)), np.uint8)
    expected = storm._judged(given["fog@3"], given["clean"].people, rows).numbers["ADR"][0]
    assert found["one", "fog@3"]["ADR"][0][0] == pytest.approx(expected)


def test_labels_move_with_a_distorted_image() -> None:
    labels = np.tile(np.arange(48, dtype=np.uint8) % 12, (1, 32, 1))
    images = np.zeros((1, 32, 48, 3), np.uint8)
    scenes = storm.TestSet(("a.png",), images, np.ones((1, 32, 48), np.float32), labels, ())
    assert storm._moved("fog@3", scenes) is labels
    moved = storm._moved("geometric_distortion@5", scenes)
    assert (moved[0, 0, 0], moved[0, 16, 24]) == (255, labels[0, 16, 24])
    assert (moved != labels).mean() > 0.1
