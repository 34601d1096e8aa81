"""Semantic segmentation: a map of classes, or a plane of scores for each class."""

from __future__ import annotations

from collections.abc import Sequence

from stormproof.core.errors import ModelError
from stormproof.models.decoders.arrays import Array
from stormproof.models.geometry import Size


def logits(
    outputs: Sequence[Array], size: Size, *, channels_last: bool = False, probabilities: bool = False
) -> Array:
    """Scores c×h×w (or h×w×c), at any resolution; they are resized before the best class is taken.

    A single plane separates foreground from background: above 0, or above ½ if it holds `probabilities`.
    """
    scores = outputs[0].transpose(2, 0, 1) if channels_last else outputs[0]
    if len(scores) > 1:
        return scores
    if probabilities:
        return scores - 0.5
    if scores.min() >= 0 and scores.max() <= 1:
        raise ModelError(
            "The single plane of scores lies within 0 to 1, so it holds probabilities: set "
            "options: {probabilities: true} in the card."
        )
    return scores


def argmax(outputs: Sequence[Array], size: Size) -> Array:
    """A map h×w (or with an axis of length one) of class numbers."""
    plane = outputs[0]
    return plane.reshape([side for side in plane.shape if side != 1] if plane.ndim > 2 else plane.shape)
