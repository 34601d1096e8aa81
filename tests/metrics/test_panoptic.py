"""PQ, SQ and RQ: small cases by hand, and random maps against hotcoco's port of panopticapi, and against
panopticapi itself where it is installed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hotcoco import panoptic as hotcoco

from stormproof.core.errors import InvalidTruth
from stormproof.core.imagefile import write_image
from stormproof.core.sample import SEGMENTS, SemanticMap, Truth, panoptic_map
from stormproof.datasets.panoptic import paint_segments
from stormproof.metrics.inputs import Segments
from stormproof.metrics.panoptic import image_errors, match_segments, overlaps

THINGS = np.array([True, True, False, False])
CLASSES = ("person", "car", "road", "sky")


def cell(pairs: list[tuple[Truth, np.ndarray]], labels: list[int] | None = None) -> Segments:
    found = [overlaps(truth, predicted) for truth, predicted in pairs]
    image = np.repeat(np.arange(len(pairs)), [len(one[0]) for one in found])
    columns = tuple(np.concatenate([one[k] for one in found]) for k in range(3))
    own = np.arange(4) if labels is None else np.array(labels)
    table = match_segments(image, columns, labels=own, things=THINGS, images=len(pairs))
    return Segments(table, CLASSES, tuple(range(4)), THINGS)


def scores(segments: Segments) -> dict[str, float]:
    found = segments.scored(np.ones((1, len(segments.table))))
    return {name: float(values[0]) for name, values in found.numbers.items()}


def truth_of(ids: list[list[int]], classes: dict[int, int], crowds: tuple[int, ...] = ()) -> Truth:
    plane = np.array(ids, np.int32)
    semantic = np.vectorize(lambda k: classes.get(k, 255))(plane).astype(np.uint8)
    return Truth(semantic=SemanticMap(semantic), panoptic=plane, crowds=crowds)


def test_pq_sq_and_rq_by_hand() -> None:
    """A person found with IoU 3/4, a missed car, a false person on the road, road with 4 of 6 pixels."""
    truth = truth_of([[1, 1, 1, 1], [2, 2, 3, 3], [3, 3, 3, 3]], {1: 0, 2: 1, 3: 2})
    said = panoptic_map(np.array([[1, 1, 1, 0], [0, 0, 5, 5], [3, 3, 3, 3]]), {1: 0, 5: 0, 3: 2})
    segments = cell([(truth, said)])
    assert segments.table[0].tolist() == [
        [0.75, 0, 4 / 6, 0],  # sum of IoU
        [1, 0, 1, 0],  # matched
        [1, 0, 0, 0],  # imagined
        [0, 1, 0, 0],  # missed
    ]
    found = scores(segments)
    assert found["PQ things"] == pytest.approx((0.75 / 1.5 + 0) / 2)
    assert found["SQ things"] == pytest.approx((0.75 + 0) / 2)  # a class without a match counts as 0
    assert found["RQ things"] == pytest.approx((1 / 1.5 + 0) / 2)
    assert found["PQ stuff"] == pytest.approx(4 / 6)
    assert found["PQ"] == pytest.approx((0.5 + 0 + 4 / 6) / 3)  # nobody speaks of the sky
    assert image_errors(segments) == pytest.approx([1 - found["PQ"]])
    parts = segments.scored(np.ones((1, 1))).parts
    assert {*parts} == {*found}
    assert parts["SQ things"].tolist() == [[0.75, 0]]


def test_stuff_may_be_a_crowd_too() -> None:
    truth = truth_of([[5, 5, 5, 6]], {5: 2, 6: 3}, crowds=(5,))
    said = panoptic_map(np.array([[1, 1, 1, 2]]), {1: 2, 2: 3})
    assert cell([(truth, said)]).table[0, 1:].sum(axis=1).tolist() == [1, 0, 0]  # only the other one counts


def test_an_iou_of_one_half_does_not_match_and_void_is_left_out_of_the_union() -> None:
    said = panoptic_map(np.array([[1, 1, 1, 1]]), {1: 0})
    assert scores(cell([(truth_of([[7, 7, 8, 8]], {7: 0, 8: 1}), said)]))["RQ things"] == 0  # IoU 1/2
    found = scores(cell([(truth_of([[7, 7, 0, 0]], {7: 0}), said)]))
    assert found["PQ things"] == 1  # the two pixels beyond the object have no truth


def test_crowds_are_neither_missed_nor_matched_and_excuse_their_class() -> None:
    truth = truth_of([[9, 9, 9, 9, 0, 4]], {9: 0, 4: 1}, crowds=(9,))
    person = panoptic_map(np.array([[1, 1, 2, 2, 2, 0]]), {1: 0, 2: 0})
    assert cell([(truth, person)]).table[0].tolist() == [[0] * 4, [0] * 4, [0] * 4, [0, 1, 0, 0]]
    car = panoptic_map(np.array([[1, 1, 0, 0, 0, 0]]), {1: 1})
    assert cell([(truth, car)]).table[0, 2].tolist() == [0, 1, 0, 0]  # people do not excuse a car


def test_stuff_is_one_segment() -> None:
    truth = truth_of([[3, 3, 3, 3]], {3: 2})
    said = panoptic_map(np.array([[1, 1, 2, 2]]), {1: 2, 2: 2})
    assert scores(cell([(truth, said)]))["PQ stuff"] == 1


def test_classes_of_the_model_are_translated() -> None:
    """The model's classes 0 and 1 are both the dataset's person; the dataset lacks its class 2."""
    truth = truth_of([[5, 5, 6, 6, 7, 7]], {5: 0, 6: 0, 7: 2})
    said = panoptic_map(np.array([[1, 1, 2, 2, 3, 3]]), {1: 0, 2: 1, 3: 2})
    table = cell([(truth, said)], labels=[0, 0, -1]).table[0]
    assert table.tolist() == [[2, 0, 0, 0], [2, 0, 0, 0], [0] * 4, [0, 0, 1, 0]]


def test_a_weight_equals_repeated_images() -> None:
    rng = np.random.default_rng(3)
    segments = cell([random_pair(rng) for _ in range(6)])
    weights = rng.integers(0, 3, (5, 6))
    found = segments.scored(weights)
    for row, times in enumerate(weights):
        again = segments.repeated(times).scored(np.ones((1, int(times.sum()))))
        for name, values in found.numbers.items():
            assert values[row] == pytest.approx(float(again.numbers[name][0]), abs=1e-12, nan_ok=True)


def test_a_segment_of_two_classes_is_refused() -> None:
    truth = Truth(semantic=SemanticMap(np.array([[0, 1]], np.uint8)), panoptic=np.array([[7, 7]], np.int32))
    with pytest.raises(InvalidTruth, match=r"a\.png: segment 7 .* classes \[0, 1\]"):
        overlaps(truth, np.zeros((1, 2), np.int32), name="a.png")


def random_pair(rng: np.random.Generator) -> tuple[Truth, np.ndarray]:
    """Blocks of segments with void and a crowd; the prediction is a heavily modified copy of the truth."""
    ids = np.kron(rng.integers(0, 9, (8, 10)), np.ones((5, 5), int))
    classes = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 2, 7: 3, 8: 0}
    truth = truth_of(ids.tolist(), classes, crowds=(8,))
    said = np.where(rng.random(ids.shape) < 0.2, rng.integers(0, 9, ids.shape), ids)
    said[rng.random(ids.shape) < 0.1] = 0
    swapped = {**classes, int(rng.integers(1, 6)): int(rng.integers(0, 2)), 9: 1}
    return truth, panoptic_map(said, swapped)


def write(path: Path, images: list[tuple[np.ndarray, dict[int, int]]], crowds: tuple[int, ...] = ()) -> str:
    """A COCO panoptic file and its PNGs, as panopticapi reads them."""
    rows = []
    for k, (ids, labels) in enumerate(images):
        write_image(path / f"{k}.png", paint_segments(ids))
        areas = dict(zip(*np.unique(ids, return_counts=True), strict=True))
        segments = [{"id": number, "category_id": labels[number] + 1, "area": int(area),
                     "iscrowd": int(number in crowds)}
                    for number, area in ((int(n), a) for n, a in areas.items()) if number]  # fmt: skip
        rows.append({"image_id": k + 1, "file_name": f"{k}.png", "segments_info": segments})
    content = {
        "images": [{"id": k + 1, "file_name": f"{k}.png", "height": 40, "width": 50}
                   for k in range(len(rows))],
        "annotations": rows,
        "categories": [{"id": k + 1, "name": name, "isthing": int(THINGS[k]), "color": [k, k, k]}
                       for k, name in enumerate(CLASSES)],
    }  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(content))
    return str(path.with_suffix(".json"))


def test_equals_panopticapi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty random images, none with two segments of the same class of stuff."""
    rng = np.random.default_rng(0)
    pairs = [random_pair(rng) for _ in range(20)]
    for name in ("truth", "said"):
        (tmp_path / name).mkdir()
    true = write(
        tmp_path / "truth",
        [(t.panoptic, {k: int(t.semantic.labels[t.panoptic == k][0]) for k in range(1, 9) if k in t.panoptic})
         for t, _ in pairs],
        crowds=(8,),
    )  # fmt: skip
    said = []
    for _, predicted in pairs:
        numbers, places = np.unique(predicted, return_inverse=True)
        labels = {k: int(n) // SEGMENTS - 1 for k, n in enumerate(numbers) if n}
        said.append((np.where(predicted == 0, 0, places.reshape(predicted.shape)), labels))
    guessed = write(tmp_path / "said", said)
    mine = scores(cell(pairs))
    assert 0.05 < mine["PQ"] < 0.95
    oracles = {"hotcoco": hotcoco.pq_compute(true, guessed)}
    try:
        from panopticapi.evaluation import pq_compute

        oracles["panopticapi"] = pq_compute(true, guessed)
    except ImportError:
        pass  # it is not on PyPI
    capsys.readouterr()
    for theirs in oracles.values():
        for group, words in (("All", ""), ("Things", " things"), ("Stuff", " stuff")):
            for kind in ("pq", "sq", "rq"):
                assert mine[f"{kind.upper()}{words}"] == pytest.approx(theirs[group][kind], abs=1e-12)
