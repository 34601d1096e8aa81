"""What transformers' image processors do, on a device: resize as Pillow does, look up values, pad.

A processor is not asked what it does. On the host it is given every grey level, and noise of an image's size.
Where the device makes the same bits of the noise, it prepares all images of that size. The others are copied
to the host: for processors that crop, for example, or that do not resize by Pillow's bilinear rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.models.geometry import Fit
from stormproof.models.network import split_batches
from stormproof.models.on_device.inputs import place_on_device

Inputs = dict[str, Tensor]
_LEVELS = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)


class _Waiting(NamedTuple):
    """An image on the device, where it goes in the input, and its inputs besides the pixels."""

    image: Tensor
    fit: Fit
    further: Inputs


class DeviceProcessor:
    """Images as a network expects them, on the network's device.

    `process` is a processor of transformers: from an H×W×3 array and options to tensors with a batch axis.
    """

    def __init__(self, process: Callable[..., Mapping[str, Tensor]], device: str) -> None:
        self._process, self._device = process, device
        self._plans: dict[Size, Callable[[Tensor], _Waiting] | None] = {}

    @cached_property
    def levels(self) -> Tensor | None:
        """What grey levels become, 3×256; None if the processor cannot leave out resizing and padding."""
        try:
            values = self._process(_LEVELS, do_resize=False, do_pad=False)["pixel_values"]
        except Exception:  # of transformers: this processor has other options
            return None
        return values.reshape(3, 256).to(self._device) if values.shape == (1, 3, 16, 16) else None

    def batches(self, images: Sequence[Any], most: int) -> Iterator[tuple[list[int], Inputs]]:
        """The places and inputs of adjacent images, arrays or tensors, whose inputs have one size, at most
        `most` at a time. Each is prepared by itself, so that it is not padded to its neighbours' size."""
        prepared = [self._prepare(image) for image in images]
        for group in split_batches([_shape(one) for one in prepared], most):
            yield group, self._join([prepared[i] for i in group])

    def _prepare(self, image: Any) -> _Waiting | Inputs:
        if isinstance(image, np.ndarray):
            return {**self._process(image)}
        size = (image.shape[0], image.shape[1])
        if size not in self._plans:
            self._plans[size] = self._prove(size)
        plan = self._plans[size]
        return plan(image) if plan else {**self._process(image.cpu().numpy())}

    def _join(self, parts: Sequence[_Waiting | Inputs]) -> Inputs:
        waiting = [part for part in parts if isinstance(part, _Waiting)]
        made = [part.further if isinstance(part, _Waiting) else part for part in parts]
        joined = {name: torch.cat([one[name] for one in made]).to(self._device) for name in made[0]}
        return {**joined, "pixel_values": self._pixel_values(waiting)} if waiting else joined

    def _pixel_values(self, parts: Sequence[_Waiting]) -> Tensor:
        assert self.levels is not None
        placed = place_on_device([(part.image, part.fit) for part in parts], 0, "antialias")
        pixels = placed.to(self._device)  # images may lie on another device than the network
        values = torch.stack([own[pixels[..., c].int()] for c, own in enumerate(self.levels)], 1)
        for own, part in zip(values, parts, strict=True):  # zeros are padded after levels were looked up
            own[:, part.fit.inner[0] :], own[:, :, part.fit.inner[1] :] = 0, 0
        return values

    def _prove(self, size: Size) -> Callable[[Tensor], _Waiting] | None:
        """How images of a size are prepared on the device; None if that gives other bits than on the host."""
        if self.levels is None:
            return None
        noise = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
        expected = {**self._process(noise)}
        values, mask = expected.pop("pixel_values"), expected.get("pixel_mask")
        if values.ndim != 4 or values.shape[:2] != (1, 3):
            return None
        canvas = (values.shape[2], values.shape[3])
        inner = canvas if mask is None else (int(mask[0, :, 0].sum()), int(mask[0, 0].sum()))
        further = {name: _compact(value) for name, value in expected.items()}  # kept for every size
        plan = partial(_Waiting, fit=Fit(size, canvas, inner), further=further)
        made = self._pixel_values([plan(torch.from_numpy(noise).to(self._device))])
        return plan if torch.equal(made.cpu(), values) else None


def _compact(values: Tensor) -> Tensor:
    """The same tensor, in the memory of one value if all are equal, as those of most masks are."""
    first = values.flatten()[:1].clone()
    return first.expand(values.shape) if torch.equal(values, first.expand(values.shape)) else values


def _shape(one: _Waiting | Inputs) -> tuple[bool, tuple[int, ...]]:
    """What inputs that are run together have in common."""
    waiting = isinstance(one, _Waiting)
    return waiting, one.fit.canvas if isinstance(one, _Waiting) else tuple(one["pixel_values"].shape)
