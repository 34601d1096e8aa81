"""The networks that we train and publish: `builtin:street-centre[,threads=2,score=0.3]`.

They were trained on the built-in street by `training/`. Each is three files of the package
`stormproof_networks`, which is a distribution of its own: NAME.onnx, its card NAME.yaml, and NAME.json, the
record of its training: settings, curve, the world's version and the score on clean images of `world:test`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stormproof.core.errors import MissingExtra, UnknownName
from stormproof.core.loading import install_extra
from stormproof.models.model import ADAPTERS
from stormproof.models.network import Network
from stormproof.models.onnx import open_onnx

_TASKS = {"grid": "detection", "centre": "detection", "masks": "instance", "semantic": "semantic"}


@ADAPTERS.declare("builtin")
def open_builtin(
    main: str,
    *,
    threads: int = 1,
    batch: int | None = None,
    device: str = "cpu",
    score: float | None = None,
    iou: float | None = None,
    keep: int | None = None,
) -> Network:
    """Open a network by its name; everything else is as for any ONNX file."""
    path = find_builtin(main).path
    return open_onnx(str(path), threads=threads, batch=batch, device=device, score=score, iou=iou, keep=keep)


def folder() -> Path:
    """The folder of the networks; their package is not imported."""
    package = find_spec("stormproof_networks")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra("stormproof-networks", install_extra("demo"))
    return Path(package.submodule_search_locations[0])


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in network, as its own files describe it."""

    name: str
    task: str  # detection, instance or semantic
    training: str  # standard, stylized, combined …
    parameters: int
    bytes: int
    world: int  # the version of the world it was trained on
    clean: dict[str, float]  # measure → score on world:test
    images: int  # of world:test that the score is based on

    @property
    def path(self) -> Path:
        return folder() / f"{self.name}.onnx"


def builtins() -> dict[str, Builtin]:
    """Every built-in network by name."""
    return {path.stem: _read(path.stem) for path in sorted(folder().glob("*.onnx"))}


def find_builtin(name: str) -> Builtin:
    """The network of that name.

    >>> find_builtin("street-grid").task
    'detection'
    """
    if not (folder() / f"{name}.onnx").is_file() or Path(name).name != name:
        hint = "List them with 'stormproof list models'."
        raise UnknownName("built-in network", name, builtins(), hint)
    return _read(name)


def training_record(name: str) -> dict[str, Any]:
    """How a network was trained: the content of NAME.json."""
    content: dict[str, Any] = json.loads((folder() / f"{name}.json").read_text(encoding="utf-8"))
    return content


def _read(name: str) -> Builtin:
    record = training_record(name)
    training, clean = record["training"], record["clean"]
    return Builtin(
        name=name,
        task=_TASKS[training["network"]],
        training=training["kind"],
        parameters=record["parameters"],
        bytes=(folder() / f"{name}.onnx").stat().st_size,
        world=record["world"],
        clean=clean["scores"],
        images=clean["images"],
    )
