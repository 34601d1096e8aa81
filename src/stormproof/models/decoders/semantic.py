"""Semantic segmentation: a plane of classes, or a plane of scores for each class."""

from __future__ import annotations

from collections.abc import Sequence

from stormproof.models.decoders.arrays import Array
from stormproof.models.geometry import Size


def logits(outputs: Sequence[Array], size: Size, *, channels_last: bool = False) -> Array:
    """Scores c×h×w (or h×w×c), at any resolution; they are resized before the best class is taken."""
    scores = outputs[0]
    return scores.transpose(2, 0, 1) if channels_last else scores


def argmax(outputs: Sequence[Array], size: Size) -> Array:
    """A map h×w (or with an axis of length one) of class numbers."""
    plane = outputs[0]
    return plane.reshape([side for side in plane.shape if side != 1] if plane.ndim > 2 else plane.shape)
