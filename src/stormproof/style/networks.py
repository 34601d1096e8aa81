"""Style networks by name: `built-in`, `adain:ENCODER,decoder=FILE`, `magenta:PREDICT,transform=FILE`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from stormproof.core.errors import InvalidOption, ModelError, UnknownName
from stormproof.core.loading import framework
from stormproof.core.sample import Image
from stormproof.core.sessions import open_session
from stormproof.core.spec import Spec
from stormproof.models import builtin
from stormproof.style import onnx
from stormproof.style.adain import AdaIN
from stormproof.style.layers import (
    BUILTIN_DECODER,
    BUILTIN_ENCODER,
    DISTILLED_DECODER,
    DISTILLED_ENCODER,
    VGG_DECODER,
    VGG_ENCODER,
    Field,
    Layer,
    Weights,
    convolutions,
    joins,
    level_names,
    weight_shapes,
)
from stormproof.style.recipe import BUILT_IN

_PAIRS = {"VGG-19": (VGG_ENCODER, VGG_DECODER), "distilled VGG-19": (DISTILLED_ENCODER, DISTILLED_DECODER)}


def folder() -> Path:
    """Where the built-in pair is: in the distribution of the built-in networks."""
    return builtin.folder() / "style"


def adain_from(
    name: str, encoder: tuple[Sequence[Layer], Weights], decoder: tuple[Sequence[Layer], Weights]
) -> AdaIN:
    """AdaIN over layers and weights, as ONNX graphs."""
    total = hashlib.blake2b(digest_size=16)
    for layers, weights in (encoder, decoder):
        for key in sorted(weight_shapes(layers)):
            total.update(np.ascontiguousarray(weights[key], np.float32).tobytes())
    taps = level_names(encoder[0], _joined(decoder[0]))
    graphs = onnx.onnx_graph(*encoder, taps=taps), onnx.onnx_graph(*decoder)
    return _adain(name, encoder[0], decoder[0], graphs, total.hexdigest())


def _adain(
    name: str, encoder: Sequence[Layer], decoder: Sequence[Layer], graphs: Sequence[bytes | Path], digest: str
) -> AdaIN:
    first, second = onnx.encoder(graphs[0]), onnx.decoder(graphs[1])
    return AdaIN(name, first, second, digest, convolutions(encoder)[-1].outputs, _joined(decoder))


def _joined(decoder: Sequence[Layer]) -> tuple[str, ...]:
    return tuple(join.source for join in joins(decoder))


def read_weights(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a torch state dict; nothing in the file is executed."""
    torch = framework("torch", extra="torch")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InvalidOption(f"{path}: no such weights file; check the path.") from None
    except Exception as error:
        raise ModelError(f"{path}: not a plain state dict of torch ({str(error).splitlines()[0]}).") from None
    state = state.get("model", state) if isinstance(state, Mapping) else {}
    arrays = {str(key): value.numpy() for key, value in state.items() if isinstance(value, torch.Tensor)}
    if not arrays:
        raise ModelError(f"{path}: contains no weights; give a state dict.")
    return arrays


def _fits(layers: Sequence[Layer], weights: Weights) -> bool:
    # Longer files are fine: the original encoder's goes on to relu5_4.
    return all(key in weights and weights[key].shape == shape for key, shape in weight_shapes(layers).items())


def open_adain(main: str, *, decoder: str) -> AdaIN:
    """The original VGG-19 pair or a distilled one, recognised by the shapes of its weights."""
    first, second = read_weights(main), read_weights(decoder)
    for name, (encoder_layers, decoder_layers) in _PAIRS.items():
        if _fits(encoder_layers, first):
            if not _fits(decoder_layers, second):
                raise ModelError(f"{decoder}: is not the decoder of {main}, which is a {name}.")
            return adain_from(name, (encoder_layers, first), (decoder_layers, second))
    raise ModelError(f"{main}: the weights fit no known encoder ({', '.join(_PAIRS)}).")


def open_built_in(place: Path | None = None) -> AdaIN:
    """The pair that comes with the package, or another of its shape in a folder."""
    files = [(place or folder()) / f"{part}.onnx" for part in ("encoder", "decoder")]
    return _adain(BUILT_IN, BUILTIN_ENCODER, BUILTIN_DECODER, files, onnx.fingerprint(files))


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    planes: Field
    own: Field
    size: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Magenta:
    """Magenta's style transfer (ghiasi2017): one graph encodes a style as a vector, one paints with it.

    α blends vectors, from the content's own (which nearly reconstructs the content) to the style's. Images
    are resized to the sides their graphs were exported for, and back.
    """

    name: str
    predict: Any
    transform: Any
    fingerprint: str

    def encode_content(self, image: Image) -> Content:
        planes = _resize(image, _sides(self.transform))
        return Content(planes, self.encode_style(image), (image.shape[0], image.shape[1]))

    def encode_style(self, image: Image) -> Field:
        return _run(self.predict, _resize(image, _sides(self.predict)))

    def load_style(self, path: Path) -> Field:
        raise InvalidOption(f"{path}: {self.name} has no saved statistics; give style images.")

    def paint(self, content: Content, style: Field, alpha: float) -> Image:
        vector = (np.float32(1 - alpha) * content.own + np.float32(alpha) * style).astype(np.float32)
        painted = _run(self.transform, content.planes, vector)[0]
        height, width = content.size
        back = cv2.resize(painted, (width, height), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.clip(np.rint(back * 255), 0, 255), np.uint8)


def _sides(opened: Any) -> tuple[int, int]:
    """The image height and width that a graph takes; 384 per side if it takes any."""
    _, height, width, _ = opened.get_inputs()[0].shape
    return (height, width) if isinstance(height, int) else (384, 384)


def _resize(image: Image, size: tuple[int, int]) -> Field:
    method = cv2.INTER_AREA if min(image.shape[:2]) > min(size) else cv2.INTER_LINEAR
    small = cv2.resize(image, size[::-1], interpolation=method)
    return np.asarray(small, np.float32)[None] / np.float32(255)


def _run(opened: Any, *given: Field) -> Field:
    names = [node.name for node in opened.get_inputs()]
    return np.asarray(opened.run(None, dict(zip(names, given, strict=True)))[0], np.float32)


def open_magenta(main: str, *, transform: str) -> Magenta:
    """Open both graphs: `main` predicts the style's vector, `transform` paints."""
    files = [Path(main), Path(transform)]
    for file in files:
        if not file.is_file():
            raise InvalidOption(f"{file}: no such model file; check the path.")
    predict, paint = map(open_session, files)
    if len(predict.get_inputs()) != 1 or len(paint.get_inputs()) != 2:
        raise ModelError(
            f"{main}, {transform}: give the predicting graph first, then transform=PAINTING GRAPH."
        )
    return Magenta("magenta", predict, paint, onnx.fingerprint(files))


# Either encodes a content image and a style once each, then paints the content in the style at any α.
StyleNetwork = AdaIN | Magenta
_OPENERS: Mapping[str, Callable[..., StyleNetwork]] = {"adain": open_adain, "magenta": open_magenta}


@lru_cache(maxsize=2)
def open_network(text: str = BUILT_IN) -> StyleNetwork:
    """The network that a string names, opened once per process."""
    if text == BUILT_IN:
        return open_built_in()
    kind = text.partition(":")[0]
    if kind not in _OPENERS:
        known = (BUILT_IN, *_OPENERS)
        raise UnknownName("style network", kind, known, f"Networks: {', '.join(known)}.")
    spec, opener = Spec.parse(text), _OPENERS[kind]
    return opener(spec.main, **spec.arguments(opener)[0])
