"""A model opened from Python: from a spec, or from any callable from images to predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stormproof.core.errors import InvalidOption, counted
from stormproof.core.sample import Image, Prediction
from stormproof.core.wrapper import Wrapper
from stormproof.models import load_model
from stormproof.models.model import Model, Precomputed
from stormproof.models.python import function_model


@dataclass(frozen=True, repr=False, eq=False)
class OpenedModel(Wrapper):
    """A model; call it with images. `spec` is None for a model made in Python."""

    spec: str | None
    model: Model | Precomputed

    @property
    def _inner(self) -> Model | Precomputed:
        return self.model

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        """One prediction per image, in the model's own labels."""
        if isinstance(self.model, Precomputed):
            raise InvalidOption(f"{self.name} holds precomputed predictions; it cannot be called.")
        return [*self.model(images)]

    def __repr__(self) -> str:
        count = len(self.classes or self.semantic_classes)
        return f"<model {self.name}: {counted(count, 'class') if count else 'classes of the dataset'}>"


def open_model(
    source: str | Model | Callable[[Sequence[Image]], Any],
    *,
    classes: Sequence[str] = (),
    name: str | None = None,
) -> OpenedModel:
    """Open a model from a spec such as 'onnx:mine.onnx', or wrap any callable from images to predictions.

    The callable receives a list of H×W×3 RGB images and returns, for each, a `Prediction`, a dict with boxes,
    scores, labels and optionally masks (N×H×W), or an H×W map of classes. `classes` names its labels; without
    names, labels index the dataset's classes.
    """
    if isinstance(source, OpenedModel):
        return source
    if isinstance(source, str):
        if classes or name:
            raise InvalidOption(
                "classes= and name= apply to functions; give a spec its options, or use a card."
            )
        return OpenedModel(source, load_model(source))
    if isinstance(source, Model | Precomputed) and not classes and name is None:
        return OpenedModel(None, source)
    return OpenedModel(None, function_model(source, name=name, classes=classes))
