"""Meeting a network: what it was taken for, in one line, and what looks wrong about what it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stormproof.core.sample import Prediction
from stormproof.models.model import Model, Precomputed
from stormproof.models.network import Network

_FEW = 3  # classes seen, of many known, that are suspiciously few
_MANY = 20  # detections that are enough to tell


def taken_for(model: Model | Precomputed) -> str:
    """One line: decoder, size, normalisation, classes, as far as the model tells."""
    parts = [_input(model)] if isinstance(model, Network) else []
    names = (*model.classes, *(n for n in model.semantic_classes if n not in model.classes))
    shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    noun = "class" if len(names) == 1 else "classes"
    parts.append(f"{len(names)} {noun} ({shown})" if names else "labels as the dataset has them")
    return f"{model.name}: {'; '.join(parts)}"


def _input(model: Network) -> str:
    card, fed = model.card, model.card.input
    size = f"{fed.size[1]}×{fed.size[0]}" if fed.size else "any size"
    numbers = f"(x − {_short(fed.mean)}) / {_short(fed.std)}"
    if fed.dtype in ("uint8", "int8"):
        numbers = fed.dtype
    elif fed.mean == (0, 0, 0) and fed.std == (1, 1, 1):
        numbers = "0 to 255"
    return f"decoder {card.decoder}; {size} {fed.layout}, {fed.resize}; {fed.channels} {numbers}"


def _short(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len({*values}) == 1 else "[" + " ".join(f"{v:g}" for v in values) + "]"


def suspicions(
    model: Model | Precomputed, said: Sequence[Prediction], sizes: Sequence[tuple[int, int]]
) -> list[str]:
    """What looks wrong in predictions for a few ordinary images, each with the likely cause."""
    found = _of_maps(said)
    if not model.classes and any(p.semantic is not None for p in said):
        return found
    boxes = np.concatenate([np.zeros((0, 4)), *(p.boxes for p in said)])
    scores = np.concatenate([np.zeros(0), *(p.scores for p in said)])
    labels = np.concatenate([np.zeros(0, np.int64), *(p.labels for p in said)])
    if not len(boxes):
        return [*found, "nothing was found in any of these images: check mean, std and channels in the card."]
    if boxes.max() <= 4 and min(min(size) for size in sizes) > 32:
        found.append("all boxes lie within 4 pixels: they are fractions; set options: {fractions: true}.")
    if len(boxes) >= _MANY and len(model.classes) > 5 and len(np.unique(labels)) < _FEW:
        names = ", ".join(model.classes[i] for i in np.unique(labels) if i < len(model.classes))
        found.append(
            f"only {names} among {len(labels)} detections: check classes and label_offset in the card."
        )
    if len(boxes) >= _MANY and scores.min() >= 0.2:
        found.append(
            f"no score is below {scores.min():.2f}: the network cuts its scores, and AP needs the low "
            "ones too; export it with a threshold near 0."
        )
    if len(boxes) >= _MANY and scores.max() < 0.1:
        found.append(f"no score is above {scores.max():.2f}: check mean, std and channels in the card.")
    return found


def _of_maps(said: Sequence[Prediction]) -> list[str]:
    maps = [p.semantic for p in said if p.semantic is not None]
    values = {int(v) for plane in maps for v in np.unique(plane)}
    if maps and len(values) == 1:
        return [f"every pixel is class {values.pop()}: check mean, std and channels in the card."]
    return []
