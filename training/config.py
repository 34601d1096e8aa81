"""The settings of a training: a TOML file, checked when read."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True, slots=True)
class Source:
    """Where training images come from: an array of the pool, and its share of each batch.

    The array `images` is clean. Any other array holds the same scenes with other pixels: stylized, or
    corrupted (`python -m training corrupt`).
    """

    array: str = "images"
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Augment:
    """How training images are augmented: probabilities and ranges. Zoom above 1 enlarges a crop."""

    flip: float = 0.5
    zoomed: float = 0.5
    zoom: tuple[float, float] = (0.8, 1.6)
    brightness: float = 0.2
    contrast: float = 0.2
    saturation: float = 0.3
    hue: float = 0.04  # gain of each channel
    mix: str = ""  # cutout, augmix or oamix (training/mixing.py); empty for none


@dataclass(frozen=True, slots=True)
class Training:
    """One training of one network."""

    name: str
    network: str  # a name in networks.NETWORKS
    options: dict[str, Any] = field(default_factory=dict)  # of the network
    kind: str = "standard"  # the papers' name for the training: standard, stylized, combined …
    seed: int = 0
    batch: int = 48
    rate: float = 2e-3
    decay: float = 0.03
    ema: float = 0.998
    share: float = 1.0  # of the seconds given to all trainings
    scenes: int = 0  # of the pool, at most; 0 for all
    images: tuple[Source, ...] = (Source(),)
    adversarial: float = 0.0  # grey levels of a gradient-sign step on half of every batch; 0 for none
    augment: Augment = field(default_factory=Augment)


Made = TypeVar("Made", Source, Augment, Training)


def load(name: str) -> Training:
    """A training by the name of its file in `configs/`, or by a path."""
    path = Path(name) if name.endswith(".toml") else CONFIGS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in CONFIGS.glob("*.toml")))
        raise FileNotFoundError(f"No training {name!r}: {path} does not exist. Trainings: {known}.")
    content = tomllib.loads(path.read_text())
    content.setdefault("name", path.stem)
    content["images"] = tuple(_make(Source, s, path) for s in content.get("images", [{}]))
    content["augment"] = _make(Augment, content.get("augment", {}), path)
    return _make(Training, content, path)


def _make(kind: type[Made], content: dict[str, Any], path: Path) -> Made:
    """Make a dataclass from settings; unknown names are errors."""
    known = [f.name for f in fields(kind)]
    for key in content:
        if key not in known:
            raise ValueError(f"{path}: unknown setting {key!r}; settings here: {', '.join(known)}.")
    settings: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in content.items()}
    return kind(**settings)
