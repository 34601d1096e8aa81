"""A network's input, made where the images lie; the same values as from `place` and `prepare`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from stormproof.imaging.gpu.resizing import ResizedSide, fit_images
from stormproof.models.card import InputCard
from stormproof.models.geometry import Fit


def place_on_device(pairs: Sequence[tuple[Tensor, Fit]], pad: int, interpolation: str) -> Tensor:
    """H×W×3 images of any sizes, resized and padded as planned: N×H×W×3."""
    sides = [
        (ResizedSide(*(side[0] for side in own)), ResizedSide(*(side[1] for side in own)))
        for own in ((fit.image, fit.inner, fit.offset, fit.canvas) for _, fit in pairs)
    ]
    return fit_images([image for image, _ in pairs], sides, interpolation, pad)


def prepare_on_device(pairs: Sequence[tuple[Tensor, Fit]], card: InputCard) -> Tensor:
    """H×W×3 tensors as the network expects them."""
    rule = card.interpolation if card.resize != "none" else "nearest"
    (first, fit), *others = pairs
    as_it_is = not others and fit.image == fit.inner == fit.canvas
    pixels = first[None] if as_it_is else place_on_device(pairs, card.pad, rule)
    if card.channels == "BGR":
        pixels = pixels.flip(-1)
    if card.dtype == "int8":
        pixels = (pixels.to(torch.int16) - 128).to(torch.int8)
    elif card.dtype != "uint8":
        mean, std = (_constant(numbers, pixels.device) for numbers in (card.mean, card.std))
        pixels = ((pixels.float() - mean) / std).to(getattr(torch, card.dtype))
    return (pixels.permute(0, 3, 1, 2) if card.layout == "NCHW" else pixels).contiguous()


@cache
def _constant(numbers: Any, device: torch.device) -> Tensor:
    """Numbers on a device; copying them there again would wait for all that it has to do."""
    return torch.tensor(numbers, device=device)
