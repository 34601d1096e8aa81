"""Detectors that answer with a set: transformers with queries, and torchvision's exports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stormproof.models.candidates import Candidates
from stormproof.models.decoders.arrays import Array, centred, flat, in_pixels, sigmoid, softmax
from stormproof.models.geometry import Size


def detr(outputs: Sequence[Array], size: Size) -> Candidates:
    """DETR: queries×(classes+1) logits, the last class standing for nothing, and centred boxes as
    fractions; a query is what it most likely is."""
    likely = softmax(flat(outputs[0]))[:, :-1]
    corners = in_pixels(centred(flat(outputs[1], 4)), size)
    labels = likely.argmax(axis=1)
    return Candidates(corners, likely[np.arange(len(likely)), labels], labels)


def rtdetr(outputs: Sequence[Array], size: Size, *, logits: bool = True) -> Candidates:
    """RT-DETR, Deformable DETR, D-FINE: queries×classes of independent scores, centred boxes as fractions."""
    scores = flat(outputs[0])
    return Candidates(in_pixels(centred(flat(outputs[1], 4)), size), sigmoid(scores) if logits else scores)


def labelled(outputs: Sequence[Array], size: Size) -> Candidates:
    """Exports that end in labels, boxes x1 y1 x2 y2 in input pixels and scores (RT-DETR's own, D-FINE's)."""
    return Candidates(flat(outputs[1], 4), outputs[2].ravel(), outputs[0].ravel().astype(np.int64))


def torchvision(outputs: Sequence[Array], size: Size) -> Candidates:
    """torchvision's detection models: boxes in input pixels, labels, scores, and perhaps n×1×h×w masks."""
    corners, labels, scores = flat(outputs[0], 4), outputs[1].ravel(), outputs[2].ravel()
    masks = outputs[3].reshape(len(corners), *outputs[3].shape[-2:]) if len(outputs) > 3 else None
    return Candidates(corners, scores, labels.astype(np.int64), masks=masks)
