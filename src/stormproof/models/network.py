"""A network with its card: images in, predictions out. Each adapter supplies the function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from stormproof.core.errors import CardChange, ModelError, StormproofError
from stormproof.core.forms import Array
from stormproof.core.prediction_batch import JoinedBoxes
from stormproof.core.sample import Image, Ints, Prediction, as_rgb
from stormproof.models.candidates import Candidates, to_prediction, to_semantic
from stormproof.models.card import Card, InputCard
from stormproof.models.classes import BACKGROUND, normalise
from stormproof.models.decoders import DECODERS, OutputDecoder
from stormproof.models.decoding import Unreadable
from stormproof.models.geometry import ON_DEVICE, Fit, place, plan_fit
from stormproof.models.model import fingerprint

# From a batch as the network expects it to its outputs in the decoder's order, each with a batch axis.
Outputs = Sequence[Array | list[Array]]
Forward = Callable[[Any], Outputs]
EVERY = 1 << 16  # images at a time: as many as there are
# What NumPy and OpenCV raise when outputs do not have the shapes that a decoder expects.
_MISFITS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, cv2.error)


@dataclass(frozen=True, eq=False)
class Network:
    """A model with a card, run by ONNX Runtime, torch or LiteRT.

    `names` are the class names. Images are run `batch` at a time; with 1, a prediction cannot depend on which
    images share its batch. A network that `takes_list` is given images of any sizes together.
    """

    name: str
    card: Card
    forward: Forward
    files: tuple[Path, ...]
    names: tuple[str, ...]
    batch: int = 1
    in_torch: bool = False  # whether `forward` accepts tensors on a device as well as arrays
    takes_list: bool = False

    @property
    def takes_tensors(self) -> bool:
        """Whether images may stay on a device, where they are resized as on the host, byte for byte."""
        card = self.card.input
        return self.in_torch and (card.resize == "none" or card.interpolation in ON_DEVICE)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.names if self._decoder.task == "detection" else ()

    @property
    def semantic_classes(self) -> tuple[str, ...]:
        return self.names if self._decoder.task == "semantic" else ()

    @property
    def semantic_task(self) -> bool:
        return self._decoder.task == "semantic"

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.files, {"card": self.card.model_dump(mode="json"), "classes": self.names})

    @cached_property
    def _background(self) -> tuple[int, ...]:
        """The labels that mean background."""
        return tuple(i for i, name in enumerate(self.names) if normalise(name) in BACKGROUND - {""})

    @property
    def _decoder(self) -> OutputDecoder:
        return DECODERS[self.card.decoder]

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        predictions: list[Prediction] = []
        fits = [plan_input(image, self.card.input) for image in images]
        on_host = all(isinstance(image, np.ndarray) for image in images)
        # Decodes boxes where the outputs lie, or returns the outputs.
        run: Callable[..., Any] | None = None if on_host else getattr(self.forward, "boxes", None)
        for group in split_batches([None if self.takes_list else fit.canvas for fit in fits], self.batch):
            pairs = [(images[i], fits[i]) for i in group]
            each = [self._stack([pair])[0] for pair in pairs] if self.takes_list else self._stack(pairs)
            found = run(each, [fits[i] for i in group], self._background) if run else self.forward(each)
            if isinstance(found, JoinedBoxes):
                self._check_labels(found.labels)
                if len(found) == len(images):
                    return found
                predictions += found
            else:
                predictions += (self._decode(found, row, fits[i]) for row, i in enumerate(group))
        return predictions

    def _stack(self, pairs: Sequence[tuple[Image, Fit]]) -> Any:
        if self.takes_tensors and not isinstance(pairs[0][0], np.ndarray):
            from stormproof.models.on_device.inputs import prepare_on_device

            return prepare_on_device(pairs, self.card.input)
        return np.stack([prepare(*pair, self.card.input) for pair in pairs])

    def count_classes(self, image: Image) -> int | None:
        """How many classes the network scores; None if its outputs for an image do not show it."""
        fit = plan_input(image, self.card.input)
        mine = _of_image(self.forward(self._stack([(image, fit)])), 0)
        try:
            found = self._decoder.function(mine, fit.canvas, **self.card.options)
        except (StormproofError, *_MISFITS):
            return None
        if isinstance(found, Candidates):
            return None if found.labels is not None else found.scores.shape[1] + self.card.label_offset
        return len(found) if found.ndim == 3 else None

    def _decode(self, outputs: Outputs, row: int, fit: Fit) -> Prediction:
        """The prediction for one image of a batch."""
        decoder, card = self._decoder, self.card
        mine = _of_image(outputs, row)
        try:
            with np.errstate(all="ignore"):  # overflow is reported below, in words
                found = decoder.function(mine, fit.canvas, **card.options)
                if decoder.task == "semantic":
                    return to_semantic(found, fit)
                prediction = to_prediction(
                    found, fit, card.limits, offset=card.label_offset, background=self._background
                )
        except StormproofError:
            raise
        except _MISFITS as error:
            shapes = ", ".join("×".join(map(str, output.shape)) for output in mine)
            reason = f" ({error})" if isinstance(error, Unreadable) else ""
            raise ModelError(
                f"{self.name}: decoder {card.decoder!r} cannot read outputs of shape {shapes}{reason}; it "
                f"expects {', '.join(decoder.outputs)}. Choose another decoder, or list the outputs in this "
                "order in the card."
            ) from error
        self._check_labels(prediction.labels)
        return prediction

    def _check_labels(self, labels: Ints) -> None:
        top = int(labels.max(initial=0))
        if self.names and top >= len(self.names):
            coco = len(self.names) == 80 and top < 91
            fix = (
                "use classes=coco91, as COCO's own numbers go up to 90" if coco else "name all with classes="
            )
            said = f"{self.name} predicted label {top}, but names only {len(self.names)} classes; {fix}"
            change = {"classes": "coco91"} if coco else {}
            raise CardChange(f"{said}, or set label_offset in the card.", change)


def _of_image(outputs: Outputs, row: int) -> list[Array]:
    """The outputs for one image of a batch."""
    return [
        output[row] if isinstance(output, list) or output.ndim > 1 else output.ravel()[row : row + 1]
        for output in outputs
    ]


def usual_batch(batch: int | None, device: str) -> int:
    """Images at a time, unless stated: one on the CPU, where more are no faster, else all that there are."""
    return batch or (1 if device == "cpu" else EVERY)


def split_batches(sizes: Sequence[object], most: int) -> Iterator[list[int]]:
    """Positions of adjacent images whose inputs have the same size, at most `most` at a time."""
    for _, group in groupby(range(len(sizes)), key=lambda i: sizes[i]):
        members = list(group)
        yield from (members[i : i + most] for i in range(0, len(members), most))


def plan_input(image: Image, card: InputCard) -> Fit:
    """Where an image goes in the network's input."""
    size = (image.shape[0], image.shape[1])
    return plan_fit(size, card.size or size, card.resize, card.align, card.multiple, card.rounding)


def prepare(image: Image, fit: Fit, card: InputCard) -> Array:
    """An image as the network expects it, resized, ordered and normalised: one item of a batch."""
    pixels: Array = place(as_rgb(image), fit, card.pad, card.interpolation)
    if card.channels == "BGR":
        pixels = pixels[..., ::-1]
    if card.dtype == "int8":
        pixels = (pixels.astype(np.int16) - 128).astype(np.int8)
    elif card.dtype != "uint8":
        mean, std = np.array(card.mean, np.float32), np.array(card.std, np.float32)
        pixels = (pixels.astype(np.float32) - mean) / std
        pixels = pixels.astype(card.dtype)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) if card.layout == "NCHW" else pixels)
