"""A mask or map of another size than its image is refused, whichever model gave it."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.errors import InvalidPrediction
from stormproof.core.sample import RLE, Prediction
from stormproof.engine.stages.encode import check_prediction


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (Prediction(semantic=np.zeros((3, 3), np.uint8)), r"label map is uint8 \(3, 3\)"),
        (Prediction([[0, 0, 1, 1]], [1], [0], (RLE.from_mask(np.ones((2, 2))),)), r"mask has size \(2, 2\)"),
    ],
)
def test_predictions_have_the_size_of_their_image(said: Prediction, complaint: str) -> None:
    with pytest.raises(InvalidPrediction, match=complaint):
        check_prediction(said, (4, 6), 1, 1)
