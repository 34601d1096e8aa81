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

from pydantic import BaseModel, Field

from stormproof.core.errors import InvalidOption, ModelError, UnknownName, first_few
from stormproof.core.sample import Image, Prediction
from stormproof.core.spec import Spec
from stormproof.core.wrapper import Wrapper
from stormproof.models.card import check_card, read_card
from stormproof.models.classes import resolve_classes
from stormproof.models.model import Model, Precomputed, Unbound, fingerprint
from stormproof.models.network import Network

NAMING = ("card", "classes")  # the options that every kind of model takes, beside rename.CLASS=NAME
_RENAME = "rename."


class NamingCard(BaseModel, extra="forbid", frozen=True):
    """The part of a card that a model which feeds itself can have."""

    name: str | None = None
    classes: str | list[str] | None = None
    rename: dict[str, str] = Field(default_factory=dict)


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
        name, classes, maps = self.name or model.name, *map(self._names, _both(model), [model.name] * 2)
        unknown = next((old for old in self.rename if old not in (*classes, *maps)), None)
        if unknown is not None:
            raise UnknownName(f"class to rename in {name}", unknown, (*classes, *maps))
        if isinstance(model, Network):
            return replace(model, name=name, names=self._renamed(maps or classes))
        own = getattr(model, "with_classes", None)  # of a function that may answer with names
        inner = own(classes) if own and not model.classes and classes else model
        return Named(inner, name, self._renamed(classes), self._renamed(maps))

    def _names(self, own: tuple[str, ...], model: str) -> tuple[str, ...]:
        if self.names is None:
            return own
        if own and self.names and len(self.names) != len(own):
            raise ModelError(
                f"{model} has {len(own)} classes ({first_few(own, 3)}), but {len(self.names)} are given "
                f"({first_few(self.names, 3)}); name as many, in the same order."
            )
        return self.names

    def _renamed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.rename.get(name, name) for name in names)


def _both(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return model.classes, model.semantic_classes


@dataclass(frozen=True, eq=False)
class Named(Wrapper):
    """A model under a name and classes that the user gave."""

    model: Model
    own_name: str
    names: tuple[str, ...]
    map_names: tuple[str, ...]

    @property
    def _inner(self) -> Model:
        return self.model

    @property
    def name(self) -> str:
        return self.own_name

    @property
    def classes(self) -> tuple[str, ...]:
        return self.names

    @property
    def semantic_classes(self) -> tuple[str, ...]:
        return self.map_names

    @property
    def takes_tensors(self) -> bool:
        """Whether images may stay on a device."""
        return getattr(self.model, "takes_tensors", False) is True

    @property
    def fingerprint(self) -> str:
        return fingerprint((), {"model": self.model.fingerprint, "classes": [self.names, self.map_names]})

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
    if not taken:
        return rest, {}, Naming(rename=changes)
    card, near = NamingCard(), None
    if "card" in taken:
        content, place = read_card(None, taken["card"])
        card, near = check_card(NamingCard, content, place), place.parent if place else None
    names = resolve_classes(taken["classes"], None) if "classes" in taken else None
    stated = resolve_classes(card.classes, near) if "classes" not in spec.options else names
    if "classes" in known and stated is not None:  # the opener must know them, and applies them itself
        return rest, {"classes": list(stated)}, Naming(card.name, None, {**card.rename, **changes})
    return rest, {}, Naming(card.name, stated, {**card.rename, **changes})
