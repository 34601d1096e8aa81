"""Models: one file per framework, opened by a spec string."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from stormproof.datasets.spec import Spec, call, load_attribute
from stormproof.errors import UnknownName
from stormproof.models.model import Model

# kind → where its opener lives; loaded only when named, so that no framework is imported unasked.
ADAPTERS: dict[str, str] = {}


def open_model(text: str) -> Model:
    """Open the model that a spec string names: `kind:main[,key=value…]` or `package.module:attribute`."""
    spec = Spec.parse(text)
    plugins = {point.name: point for point in entry_points(group="stormproof.models")}
    if spec.kind in ADAPTERS:
        return cast(Model, call(load_attribute(ADAPTERS[spec.kind]), spec))
    if spec.kind in plugins:
        return cast(Model, call(plugins[spec.kind].load(), spec))
    raise UnknownName("kind of model", spec.kind, [*ADAPTERS, *plugins], f"Kinds: {', '.join(ADAPTERS)}.")
