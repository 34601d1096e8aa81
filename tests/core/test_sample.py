"""Samples, truth and predictions are checked once, when they are made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as coco_mask

from stormproof.core.errors import InvalidImage, InvalidPrediction, InvalidTruth
from stormproof.core.sample import (
    RLE,
    Context,
    Instances,
    Prediction,
    Sample,
    SemanticMap,
    Truth,
    check_image,
)


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ([[1, 2]], "numpy array"),
        (np.zeros((4, 4, 3), np.float32), "uint8, not float32"),
        (np.zeros((4, 4, 3), np.uint16), "uint8, not uint16"),
        (np.zeros((4, 4, 3), bool), "uint8, not bool"),
        (np.zeros((4, 4, 4), np.uint8), "alpha"),
        (np.zeros((4, 4, 2), np.uint8), "H×W×3"),
        (np.zeros(4, np.uint8), "H×W×3"),
        (np.zeros((0, 4, 3), np.uint8), "empty"),
        (np.zeros((4, 0), np.uint8), "empty"),
    ],
)
def test_refuses_arrays_that_are_no_image(image: object, says: str) -> None:
    with pytest.raises(InvalidImage, match=says):
        check_image(image)


@given(arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))))
def test_rle_equals_pycocotools(mask: np.ndarray) -> None:
    rle = RLE.from_mask(mask)
    assert (rle.to_mask() == mask).all()
    assert rle.area == mask.sum()
    uncompressed = {"size": list(rle.size), "counts": rle.counts.tolist()}
    theirs = coco_mask.decode(coco_mask.frPyObjects(uncompressed, *rle.size))
    assert (theirs.astype(bool) == mask).all()


def test_rle_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(InvalidTruth, match=r"9 pixels.*4×4 has 16"):
        RLE((4, 4), np.array([4, 5]))


def test_missing_fields_are_filled_in() -> None:
    mask = RLE.from_mask(np.eye(4, dtype=bool))
    plain = Instances([[0, 0, 3, 2]], [1])
    assert plain.area.tolist() == [6]
    assert plain.crowd.tolist() == [False]
    assert np.isnan(plain.occlusion).all()
    assert Instances([[0, 0, 4, 4]], [1], masks=(mask,)).area.tolist() == [4]
    assert len(Instances(np.zeros((0, 4)), [])) == 0


@pytest.mark.parametrize("box", [[0, 0, np.nan, 1], [2, 0, 1, 1], [0, 3, 1, 1], [0, 0, np.inf, 1]])
def test_impossible_boxes_are_refused(box: list[float]) -> None:
    with pytest.raises(InvalidTruth, match="Box 1"):
        Instances([[0, 0, 1, 1], box], [0, 0])


def test_lengths_must_agree() -> None:
    with pytest.raises(InvalidTruth, match="labels"):
        Instances([[0, 0, 1, 1]], [0, 1])
    with pytest.raises(InvalidTruth, match="1 boxes but 0 masks"):
        Instances([[0, 0, 1, 1]], [0], masks=())


@pytest.mark.parametrize("score", [np.nan, -0.1, 1.1])
def test_scores_must_be_probabilities(score: float) -> None:
    with pytest.raises(InvalidPrediction, match=r"Score 0 .*\[0, 1\]"):
        Prediction([[0, 0, 1, 1]], [score], [0])


def test_maps_must_have_the_images_size() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    with pytest.raises(InvalidTruth, match=r"'a'.*semantic map is \(4, 5\)"):
        Sample("a", image, Truth(semantic=SemanticMap(np.zeros((4, 5), np.uint8))))
    with pytest.raises(InvalidTruth, match="depth map"):
        Sample("a", image, context=Context(depth=np.zeros((6, 4), np.float32)))
    with pytest.raises(InvalidTruth, match="uint8 or uint16"):
        SemanticMap(np.zeros((4, 5), np.int32))  # type: ignore[arg-type]


def test_scores_just_above_one_are_rounded_to_one() -> None:
    scores = np.array([np.float32(1) + np.finfo(np.float32).eps, 0.5])
    said = Prediction(np.array([[0.0, 0, 1, 1]] * 2), scores, np.zeros(2, int))
    assert said.scores.tolist() == [1.0, 0.5]
    with pytest.raises(InvalidPrediction, match=r"must lie in \[0, 1\]"):
        Prediction(np.array([[0.0, 0, 1, 1]]), np.array([1.001]), np.zeros(1, int))


@pytest.mark.parametrize("ignore", [-1, 256])
def test_an_ignore_value_must_fit_the_map(ignore: int) -> None:
    with pytest.raises(InvalidTruth, match="does not fit a uint8"):
        SemanticMap(np.zeros((2, 2), np.uint8), ignore)


def test_a_prediction_keeps_its_own_copy_of_every_array() -> None:
    runs, given = np.array([1, 3], np.uint32), {
        "boxes": np.array([[0.0, 0, 2, 2]]), "scores": np.array([0.5]), "labels": np.array([1]),
        "semantic": np.ones((2, 2), np.uint8), "sides": np.array([[2.0, 2]]),
        "confidence": np.full((1, 1), 0.5, np.float32), "panoptic": np.full((2, 2), 65536, np.int32),
    }  # fmt: skip
    held = Prediction(**given, masks=(RLE((2, 2), runs),))
    before = {name: getattr(held, name).tolist() for name in given}
    for array in (*given.values(), runs):
        array[...] = 0
    assert {name: getattr(held, name).tolist() for name in given} == before
    assert held.masks is not None
    assert held.masks[0].counts.tolist() == [1, 3]


@pytest.mark.parametrize("kind", [Prediction, Instances])
@pytest.mark.parametrize("shape", [(4, 2), (2, 5), (2, 2, 2), (8,)])
def test_refuses_boxes_of_another_shape_instead_of_reshaping_them(kind: type, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"Boxes have shape .*they must be n×4"):
        kind(np.zeros(shape), *([np.zeros(2)] if kind is Prediction else []), np.zeros(2, np.int64))
