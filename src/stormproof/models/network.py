"""A network with its card: images in, predictions out. Each adapter says how its network is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import ModelError, StormproofError, UnknownName
from stormproof.core.sample import Image, Prediction, as_rgb
from stormproof.models.candidates import to_prediction, to_semantic
from stormproof.models.card import Card, InputCard, complete_card, read_card
from stormproof.models.decoders import DECODERS, Decoder
from stormproof.models.fingerprint import fingerprint
from stormproof.models.geometry import Fit, place, plan_fit
from stormproof.models.vocabulary import NOTHING, normalised, resolve_classes

Array = npt.NDArray[Any]
# A batch as the network wants it → its outputs in the order the decoder wants them, each with a batch axis.
Forward = Callable[[Any], Sequence[Array]]


@dataclass(frozen=True, eq=False)
class Network:
    """One of the adapters that need a card: ONNX Runtime, TorchScript, LiteRT.

    `names` are the class names. Images are run `batch` at a time; at 1, the default, a prediction cannot
    depend on which images happen to share its batch.
    """

    name: str
    card: Card
    forward: Forward
    files: tuple[Path, ...]
    names: tuple[str, ...]
    batch: int = 1
    in_torch: bool = False  # whether `forward` takes tensors on a device as well as arrays

    @property
    def takes_tensors(self) -> bool:
        """Whether images may stay on a device: resizing, with its rounding, is the host's."""
        return self.in_torch and self.card.input.resize == "none" and self.card.input.multiple == 1

    @property
    def classes(self) -> tuple[str, ...]:
        return self.names if self._decoder.task == "detection" else ()

    @property
    def semantic_classes(self) -> tuple[str, ...]:
        return self.names if self._decoder.task == "semantic" else ()

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.files, {"card": self.card.model_dump(mode="json"), "classes": self.names})

    @cached_property
    def _nothing(self) -> tuple[int, ...]:
        """The labels of background."""
        return tuple(i for i, name in enumerate(self.names) if normalised(name) in NOTHING - {""})

    def _check_labels(self, said: Prediction) -> None:
        top = int(said.labels.max(initial=0))
        if self.names and top >= len(self.names):
            more = (
                "; COCO's own numbers run to 90: classes=coco91" if len(self.names) == 80 and top < 91 else ""
            )
            raise ModelError(
                f"{self.name} gave label {top}, but names {len(self.names)} classes{more}, "
                "or set label_offset in the card."
            )

    @property
    def _decoder(self) -> Decoder:
        return DECODERS[self.card.decoder]

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        predictions: list[Prediction] = []
        fits = [plan_input(image, self.card.input) for image in images]
        for group in _batches(fits, self.batch):
            outputs = self.forward(self._stacked([images[i] for i in group], [fits[i] for i in group]))
            predictions.extend(self._read(outputs, row, fits[i]) for row, i in enumerate(group))
        return predictions

    def _stacked(self, images: Sequence[Image], fits: Sequence[Fit]) -> Any:
        if self.takes_tensors and not isinstance(images[0], np.ndarray):
            from stormproof.models.torch import prepare_on_device

            return prepare_on_device(images, self.card.input)
        return np.stack([prepare(*pair, self.card.input) for pair in zip(images, fits, strict=True)])

    def _read(self, outputs: Sequence[Array], row: int, fit: Fit) -> Prediction:
        """The prediction for one image of a batch."""
        decoder = self._decoder
        mine = [_row(output, row) for output in outputs]
        try:
            found = decoder.function(mine, fit.canvas, **self.card.options)
            if decoder.task == "semantic":
                return to_semantic(found, fit)
            said = to_prediction(
                found, fit, self.card.limits, offset=self.card.label_offset, nothing=self._nothing
            )
            self._check_labels(said)
            return said
        except StormproofError:
            raise
        except (ValueError, IndexError, TypeError) as error:
            shapes = ", ".join(str(output.shape) for output in mine)
            raise ModelError(
                f"{self.name}: decoder {self.card.decoder!r} cannot read outputs {shapes} ({error}); "
                f"it wants {', '.join(decoder.wants)}. Choose another decoder or order outputs in the card."
            ) from error


def _row(output: Array, row: int) -> Array:
    """One image's part of an output."""
    return output[row] if output.ndim > 1 else output[row : row + 1]


def _batches(fits: Sequence[Fit], most: int) -> Iterator[list[int]]:
    """Positions of neighbouring images whose inputs have one size, at most `most` together."""
    for _, group in groupby(range(len(fits)), key=lambda i: fits[i].canvas):
        members = list(group)
        yield from (members[i : i + most] for i in range(0, len(members), most))


def plan_input(image: Image, card: InputCard) -> Fit:
    """Where an image goes in the network's input."""
    size = (image.shape[0], image.shape[1])
    return plan_fit(size, card.size or size, card.resize, card.align, card.multiple, card.rounding)


def prepare(image: Image, fit: Fit, card: InputCard) -> Array:
    """An image as the network wants it: placed, ordered, normalised; one item of a batch."""
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


def assemble_card(
    file: Path | None,
    card: str | None,
    guess: Mapping[str, Any],
    settings: Mapping[str, Any],
    name: str,
    outputs: str = "",
) -> tuple[Card, tuple[str, ...]]:
    """A network's card and class names: the spec's settings over the card file's over what was guessed.

    `card` names the card file, else it lies beside the network's `file`; `name` is the network's in
    errors, and `outputs` are its outputs in words.
    """
    given, place = read_card(file, card)
    given |= {key: value for key, value in settings.items() if value is not None}
    whole = complete_card(guess, given, place or file or name, outputs)
    if whole.decoder == "efficientdet-rows" and whole.classes == "coco80":
        raise ModelError(f"{name}: EfficientDet gives COCO's own numbers, up to 90; write classes=coco91.")
    # A text file of classes lies beside the card that names it; the spec's own is where it says.
    near = place.parent if place and settings.get("classes") is None else None
    return whole, _class_names(whole, near, name)


def chosen_outputs(asked: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    """The outputs that a card asks for, which the graph must have; all of them where it asks for none."""
    missing = [name for name in asked or () if name not in known]
    if missing:
        raise ModelError(f"outputs: {missing} are not in the graph, which has {list(known)}.")
    return asked or known


def _class_names(card: Card, near: Path | None, name: str) -> tuple[str, ...]:
    """The class names, which the card or the graph must state, with some renamed as the card says.

    Several may get one name: then what the dataset does not tell apart counts as one.
    """
    names = resolve_classes(card.classes, near)
    if names is None:
        plane = ", for one plane of scores [background, person], say" if card.decoder == "logits" else ""
        raise ModelError(
            f"{name}: the graph does not tell its classes; add ,classes=coco80 (or coco91, voc21, "
            f"cityscapes19, a text file) or write classes: in the card{plane}; classes=dataset says that its "
            "labels are the dataset's."
        )
    for old in card.rename:
        if old not in names:
            raise UnknownName(f"class to rename in the card of {name}", old, names)
    return tuple(card.rename.get(old, old) for old in names)
