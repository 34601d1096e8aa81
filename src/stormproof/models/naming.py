"""`card=` and `classes=` for models that feed themselves: Ultralytics, Python code, a server and so on; and
`rename.CLASS=NAME` for every model.

Kinds with a card of their own (onnx, tflite, torch) read more from it. For all others it says what the model
is called and what its labels mean:

    name: my-yolo
    classes: [cat, dog]       # or a vocabulary, or a text file beside the card
    rename: {cat: kitten}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stormproof.core.errors import InvalidOption, ModelError, first_few
from stormproof.core.sample import Image, Prediction
from stormproof.core.spec import Spec
from stormproof.models.card import NamingCard, check_card, read_card, rename_classes
from stormproof.models.classes import resolve_classes
from stormproof.models.model import Model, Precomputed, Unbound, fingerprint
from stormproof.models.network import Network

NAMING = ("card", "classes")  # the options that every kind of model takes, beside rename.CLASS=NAME
_RENAME = "rename."


@dataclass(frozen=True, eq=False)
class Naming:
    """What a spec says about a model's name and classes; `names` is None where it says nothing of them."""

    name: str | None = None
    names: tuple[str, ...] | None = None
    rename: Mapping[str, str] = field(default_factory=dict)

    def apply(self, model: Model | Precomputed) -> Model | Precomputed:
        """The model under these names; the model itself if there are none."""
        if self.name is None and self.names is None and not self.rename:
            return model
        if isinstance(model, Precomputed | Unbound):
            fix = "name its classes with classes=, if its kind takes it"
            raise InvalidOption(
                f"{model.name}: card= and rename. are for models that images alone are given to; {fix}."
            )
        name = self.name or model.name
        classes, maps = (self._names(own, model.name) for own in (model.classes, model.semantic_classes))
        renamed = rename_classes((*classes, *maps), self.rename, name)
        of_objects, of_maps = renamed[: len(classes)], renamed[len(classes) :]
        if isinstance(model, Network):
            return replace(model, name=name, names=of_maps or of_objects)
        own = getattr(model, "with_classes", None)  # of a function that may answer with names
        inner = own(classes) if own and not model.classes and classes else model
        return Named(inner, name, of_objects, of_maps)

    def _names(self, own: tuple[str, ...], model: str) -> tuple[str, ...]:
        if self.names is None:
            return own
        if own and self.names and len(self.names) != len(own):
            raise ModelError(
                f"{model} has {len(own)} classes ({first_few(own, 3)}), but {len(self.names)} are given "
                f"({first_few(self.names, 3)}); name as many, in the same order."
            )
        return self.names


@dataclass(frozen=True, eq=False)
class Named:
    """A model under a name and classes that the user gave."""

    model: Model
    name: str
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...]

    @property
    def takes_tensors(self) -> bool:
        """Whether images may stay on a device."""
        return getattr(self.model, "takes_tensors", False) is True

    @property
    def fingerprint(self) -> str:
        names = [self.classes, self.semantic_classes]
        return fingerprint((), {"model": self.model.fingerprint, "classes": names})

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        return self.model(images)


def take_naming(spec: Spec, known: Mapping[str, Any]) -> tuple[Spec, dict[str, Any], Naming]:
    """The spec without the naming that its opener has no options for, what the opener is given instead, and
    the naming to apply to the model.

    `known` are the options that the opener declares.
    """
    taken = {key: spec.options[key] for key in NAMING if key in spec.options and key not in known}
    changes = {k.removeprefix(_RENAME): v for k, v in spec.options.items() if k.startswith(_RENAME)}
    kept = {k: v for k, v in spec.options.items() if k not in taken and not k.startswith(_RENAME)}
    rest = Spec(spec.kind, spec.main, kept)
    card, near = NamingCard(), None
    if "card" in taken:
        content, place = read_card(None, taken["card"])
        card, near = check_card(NamingCard, content, place), place.parent if place else None
    given = "classes" in spec.options
    stated = resolve_classes(taken.get("classes"), None) if given else resolve_classes(card.classes, near)
    rename = {**card.rename, **changes}
    if "classes" in known and stated is not None:  # the opener must know them, and applies them itself
        return rest, {"classes": list(stated)}, Naming(card.name, None, rename)
    return rest, {}, Naming(card.name, stated, rename)
