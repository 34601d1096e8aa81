"""The networks that come with the package: trained on the built-in street, opened as `builtin:NAME`.

Each is three files: NAME.onnx, its card NAME.yaml, and NAME.json, the story of its training: settings,
curve, the world's version and the score on clean images of `world:test`. `training/` makes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormproof.core.errors import UnknownName

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Builtin:
    """A network of the package, as its own files tell it."""

    name: str
    task: str  # detection, instance or semantic
    training: str  # standard, stylized, combined …
    parameters: int
    bytes: int
    world: int  # the version of the world it was trained on
    clean: dict[str, float]  # measure → score on world:test
    images: int  # of world:test, that the score was taken on

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.onnx"


_TASKS = {"grid": "detection", "centre": "detection", "masks": "instance", "semantic": "semantic"}


def story(name: str) -> dict[str, Any]:
    """How a network was trained: the whole of NAME.json."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content


def builtins() -> dict[str, Builtin]:
    """Every network of the package by name."""
    return {path.stem: _read(path.stem) for path in sorted(FOLDER.glob("*.onnx"))}


def find_builtin(name: str) -> Builtin:
    """The network of that name.

    >>> find_builtin("street-grid").task
    'detection'
    """
    if not (FOLDER / f"{name}.onnx").is_file() or Path(name).name != name:
        hint = "List them with 'stormproof list models'."
        raise UnknownName("built-in network", name, builtins(), hint)
    return _read(name)


def _read(name: str) -> Builtin:
    told = story(name)
    training, clean = told["training"], told["clean"]
    return Builtin(
        name=name,
        task=_TASKS[training["network"]],
        training=training["kind"],
        parameters=told["parameters"],
        bytes=(FOLDER / f"{name}.onnx").stat().st_size,
        world=told["world"],
        clean=clean["scores"],
        images=clean["images"],
    )
