"""torch modules that return dictionaries of boxes, scores and labels, as torchvision's detectors do.

They need no card: they are given RGB images from 0 to 1, 3×H×W, and answer in pixels of that image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidPrediction
from stormproof.core.identity import blake2b
from stormproof.core.loading import framework
from stormproof.core.sample import Image, as_rgb
from stormproof.models.predictions import PREDICTION_KEYS, as_array, read_prediction

_PROBE = np.full((96, 128, 3), 128, np.uint8)


class TorchDetector:
    """A module as a function from images to dictionaries.

    It is called with a list of one image, as torchvision's detectors are, or with a batch of one if it
    refuses that; the first call that it answers decides. The module may have attributes `classes` and `name`.
    """

    def __init__(self, net: Any, device: str | None = None) -> None:
        self.net, self.device = net.eval(), device
        self.name = str(getattr(net, "name", type(net).__name__))
        self.classes = tuple(map(str, getattr(net, "classes", None) or ()))
        self._calls: tuple[Any, ...] = (lambda image: [image], lambda image: image[None])

    @property
    def fingerprint(self) -> str:
        """A hash of the module's weights and of its structure in words."""
        total = blake2b(repr(self.net).encode(), digest_size=16)
        for name, value in self.net.state_dict().items():
            total.update(name.encode() + b"\0" + np.ascontiguousarray(as_array(value)).tobytes())
        return total.hexdigest()

    def __call__(self, images: Sequence[Image]) -> list[Any]:
        return [self._predict(image) for image in images]

    def _predict(self, image: Image) -> Any:
        torch = framework("torch", extra="torch")
        pixels = torch.from_numpy(np.array(as_rgb(image))).permute(2, 0, 1).contiguous().float() / 255
        pixels = pixels.to(self.device or next((w.device for w in self.net.parameters()), "cpu"))
        for call in self._calls[:-1]:
            try:
                answer = self._answer(torch, call(pixels))
            except (TypeError, AttributeError, RuntimeError, ValueError, IndexError):
                continue
            self._calls = (call,)
            return answer
        return self._answer(torch, self._calls[-1](pixels))

    def _answer(self, torch: Any, given: Any) -> Any:
        with torch.inference_mode():
            return first_detections(self.net(given), self.name)


def first_detections(answer: Any, name: str) -> dict[str, Any]:
    """The dictionary of the only image, without a batch axis and keys that are no part of a prediction."""
    match answer:
        case [Mapping(), [Mapping() as found, *_]]:  # scripted torchvision detectors return losses first
            answer = found
        case [Mapping() as found]:
            answer = found
    if not isinstance(answer, Mapping) or not {*answer} & {"boxes", "masks", "semantic"}:
        raise InvalidPrediction(
            f"{name} returned {type(answer).__name__}, not a dictionary of boxes, scores and labels; write a "
            "card with its decoder, and open it as torch:package.module:factory,card=FILE."
        )
    found = {key: answer[key] for key in PREDICTION_KEYS if key in answer}
    if getattr(found.get("boxes"), "ndim", 2) == 3:
        found = {key: value[0] for key, value in found.items()}
    if "labels" not in found and "scores" in found:  # a detector of one class
        found["labels"] = np.zeros(len(found["scores"]), np.int64)
    return found


def returns_predictions(net: Any, device: str | None = None) -> bool:
    """Whether a module answers a grey image with a dictionary of predictions."""
    detector = TorchDetector(net, device)
    try:
        read_prediction(detector([_PROBE])[0], (96, 128), detector.name, detector.classes)
    except InvalidPrediction as error:
        return "names no classes" in str(error)  # labels that are names, which classes= will give
    except Exception:  # of the module's own code: it wants another input
        return False
    return True
