"""The confusion matrix equals a NumPy count exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.sample import SemanticMap
from stormproof.metrics.inputs import Maps
from stormproof.metrics.metric import mean_of_known
from stormproof.metrics.semantic import count_pixels, image_errors, iou_of, true_iou


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 21),
    st.integers(1, 40),
    st.integers(1, 9),
    st.sampled_from([np.uint8, np.uint16]),
    st.integers(0, 2**32 - 1),
)
def test_equals_a_numpy_count(classes, height, width, dtype, seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, (height, width)).astype(dtype)
    truth[rng.random(truth.shape) < 0.2] = 255
    said = rng.integers(0, classes, (height, width)).astype(np.uint8)
    counts = count_pixels(SemanticMap(truth), said, classes=classes)
    valid = truth != 255
    count = np.zeros((classes, classes), int)
    np.add.at(count, (truth[valid], said[valid]), 1)
    assert (counts == count).all()
    union = [(valid & ((truth == k) | (said == k))).sum() for k in range(classes)]
    hits = [(valid & (truth == k) & (said == k)).sum() for k in range(classes)]
    expected = [h / u if u else np.nan for h, u in zip(hits, union, strict=True)]
    assert iou_of(counts).tolist() == pytest.approx(expected, abs=0, rel=0, nan_ok=True)
    in_truth = [value for k, value in enumerate(expected) if (truth == k).any()]
    assert mean_of_known(true_iou(counts)) == pytest.approx(
        np.mean(in_truth) if in_truth else np.nan, nan_ok=True
    )


def test_any_ignore_value_is_left_out():
    truth = SemanticMap(np.array([[0, 7, 1]], np.uint8), ignore=0)
    counts = count_pixels(SemanticMap(truth.labels, ignore=7), np.array([[0, 1, 1]], np.uint8), classes=2)
    assert counts.tolist() == [[1, 0], [0, 1]]


def test_a_prediction_of_the_ignore_value_is_refused_unless_the_truth_is_ignored():
    truth = SemanticMap(np.array([[0, 255]], np.uint8))
    assert count_pixels(truth, np.array([[0, 255]], np.uint8), classes=2).sum() == 1
    message = r"street\.png: the prediction contains class 255, but there are 2 classes"
    with pytest.raises(InvalidPrediction, match=message):
        count_pixels(truth, np.array([[255, 0]], np.uint8), classes=2, name="street.png")


def test_invalid_maps_are_refused():
    truth = SemanticMap(np.array([[0, 9]], np.uint8))
    with pytest.raises(InvalidTruth, match="contains class 9, but there are 2 classes"):
        count_pixels(truth, np.zeros((1, 2), np.uint8), classes=2)
    with pytest.raises(InvalidPrediction, match=r"\(2, 1\).*\(1, 2\)"):
        count_pixels(truth, np.zeros((2, 1), np.uint8), classes=2)
    with pytest.raises(InvalidPrediction, match="float32"):
        count_pixels(truth, np.zeros((1, 2), np.float32), classes=2)


def four_pixels(said: list[int]) -> Maps:
    """An image of four pixels, three of class a and one of class b, and what is predicted for them."""
    pairs, pixels = np.unique([[0, 0, 0, 1], said], axis=1, return_counts=True)
    image = np.zeros(len(pixels), np.int64)
    return Maps.of(image, *pairs, pixels, images=1, classes=("a", "b", "c"), kept=(0, 1, 2))


def test_the_error_of_an_image_is_over_the_classes_it_shows():
    """A class that is only predicted takes pixels from others but is not a class of the image."""
    maps = four_pixels([0, 0, 2, 1])
    assert image_errors(maps).tolist() == [pytest.approx(1 - (2 / 3 + 1) / 2)]
    # Scored over some classes, an image is as wrong as it is in these.
    assert image_errors(replace(maps, kept=(0,))).tolist() == [pytest.approx(1 - 2 / 3)]
    assert np.isnan(image_errors(replace(maps, kept=(2,)))).tolist() == [True]


def test_miou_is_over_the_same_classes_however_confused_a_model_is():
    """A class that only the prediction shows lowers the IoU of others and is no class of its own."""
    right, confused = (
        four_pixels(said).scored(np.ones((1, 1))).scores for said in ([0, 0, 0, 1], [0, 0, 2, 1])
    )
    assert right["mIoU"] == 1
    assert confused["mIoU"] == pytest.approx((2 / 3 + 1) / 2)
    assert confused["mIoU any"] == pytest.approx((2 / 3 + 1 + 0) / 3)
