"""Corrupt: from a decoded image and a condition to a cell for the model, on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage
from stormproof.core.imagefile import read_image
from stormproof.core.sample import Image, Truth
from stormproof.corruptions import apply, truth_under
from stormproof.datasets.copies import read_copy
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.image_files import size_and_digest
from stormproof.engine.failures import Failure
from stormproof.engine.stages import DecodedImage, PreparedCell
from stormproof.engine.work import Times
from stormproof.metrics.quality import change


class Corruptor:
    """Makes corrupted images, or reads copies of them that `stormproof corrupt` made."""

    def __init__(self, dataset: Dataset, *, seed: int, copies: str | None, times: Times) -> None:
        self._dataset, self._seed, self._times = dataset, seed, times
        self._copies = None if copies is None else Path(copies)

    def __call__(self, decoded: DecodedImage, condition: Condition) -> PreparedCell | Failure:
        """A cell that the model may modify: never the sample's own image, which others are made from."""
        start, sample, dataset = perf_counter(), decoded.sample, self._dataset
        names = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
        try:
            if self._copies is not None and not condition.is_clean:
                return self._from_copy(self._copies, decoded, condition)
            corrupted = apply(sample, condition, seed=self._seed, **names)
            image, truth = corrupted.image, corrupted.truth
            if np.may_share_memory(image, sample.image):
                image = image.copy()
            return _cell(decoded, condition, image, lambda: truth, decoded.content)
        except Exception as error:
            return Failure.of(error, decoded.index, sample.id, condition, "corruption")
        finally:
            self._times.corrupt += perf_counter() - start

    def _from_copy(self, copies: Path, decoded: DecodedImage, condition: Condition) -> PreparedCell:
        """A stored corrupted copy of an image, with the truth under its condition."""
        sample = decoded.sample
        path, content = read_copy(copies, self._dataset, decoded.index, condition)
        image, size = read_image(content, str(path)), (sample.image.shape[0], sample.image.shape[1])
        if image.shape[:2] != size:
            raise InvalidImage(f"{path} is {image.shape[:2]} (height, width), its original {size}.")
        truth = partial(truth_under, sample.truth, size, condition, seed=self._seed, image_id=sample.frame)
        return _cell(decoded, condition, image, truth, size_and_digest(content))


def _cell(
    decoded: DecodedImage, condition: Condition, image: Image, truth: Callable[[], Truth], content: str
) -> PreparedCell:
    clean = decoded.sample.image
    moved = change(clean, image) if image.shape == clean.shape else None
    size = image.shape[0], image.shape[1]
    return PreparedCell(
        decoded.index, decoded.sample.id, condition, image, size, truth, content, lambda: moved
    )
