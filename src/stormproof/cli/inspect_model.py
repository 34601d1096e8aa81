"""`stormproof inspect onnx:FILE`: how a network will be run, and its predictions for a few images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.table import Table

from stormproof.cli import console
from stormproof.core.errors import StormproofError
from stormproof.core.files import write_text
from stormproof.core.imagefile import write_image
from stormproof.core.sample import Prediction, Sample
from stormproof.core.spec import Spec
from stormproof.datasets import open_dataset
from stormproof.models import open_model
from stormproof.models.guess import describe_shape
from stormproof.models.model import Model
from stormproof.models.sanity_checks import PROBES, Probe, check_predictions, describe_model, probe
from stormproof.tools.drawing import draw

STREET = "world:val,count=3,size=768x480"
_IMAGES = 3
_BEST = 20  # detections drawn per image


def inspect_model(text: str, data: str | None) -> None:
    """Print how the network will be run; write a draft card and, with data, images with its detections."""
    dataset = open_dataset(data or STREET)
    samples = [dataset[i] for i in range(min(len(dataset), _IMAGES if data else 1))]
    spec = Spec.parse(text)
    if spec.kind in PROBES:
        found = probe(spec, samples[0].image)
        _print_probe(found)
        _write_draft(found, Path(f"{Path(spec.main).stem}.draft.yaml"))
    try:
        model = open_model(text)
    except StormproofError as error:
        console.warn(f"it cannot be run yet: {error}")
        return
    console.say(f"run as: {describe_model(model)}")
    if isinstance(model, Model):
        predictions = model([sample.image for sample in samples])
        for line in check_predictions(model, predictions, [sample.image.shape[:2] for sample in samples]):
            console.warn(line)
        if data:
            _draw(samples, predictions, model.classes)


def _print_probe(found: Probe) -> None:
    table = Table("", "name", "shape", "type", "on one image", title_justify="left")
    ranges = {output.name: output for output in found.outputs}
    for noun, tensors in (("input", found.graph.inputs), ("output", found.graph.outputs)):
        for tensor in tensors:
            seen = ranges.get(tensor.name) if noun == "output" else None
            shown = f"{describe_shape(seen.shape)}, {seen.low:.4g} to {seen.high:.4g}" if seen else ""
            table.add_row(noun, tensor.name, describe_shape(tensor.shape), tensor.dtype, shown)
    console.out.print(table)
    if found.problem:
        console.warn(found.problem)
    if "decoder" in found.card:
        console.say(f"decoder: {found.card['decoder']}, recognised by its outputs. {found.why}")
    elif not found.problem:
        console.say("decoder: the outputs fit no known family; write decoder: in the card")


def _write_draft(found: Probe, path: Path) -> None:
    """The card as far as it was guessed; an existing file is left alone."""
    if path.exists():
        console.note(f"{path} exists already and was not changed.")
        return
    lines = [
        "# A draft: what the graph shows, and the defaults for such networks. Check it. Then rename it to",
        "# lie beside the model, or name it with card=.",
        *([f"# The outputs: {found.why}"] if found.why else []),
        *(f"# {name}: write it here" for name in ("decoder", "classes") if name not in found.card),
    ]
    body = yaml.safe_dump(_plain(found.card), sort_keys=False, allow_unicode=True)
    write_text(path, "\n".join(lines) + "\n" + body)
    console.say(f"draft card: {path}")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _draw(samples: Sequence[Sample], predictions: Sequence[Prediction], classes: Sequence[str]) -> None:
    """The best detections on each image, or the label map over it, as a PNG in this folder."""
    for sample, prediction in zip(samples, predictions, strict=True):
        path = Path(f"inspect-{Path(sample.id).name}.png")
        weakest = float(np.sort(prediction.scores)[-_BEST:].min(initial=1))
        drawn = draw(replace(sample, classes=tuple(classes)), prediction, score=weakest)
        write_image(path, np.asarray(drawn))
        console.say(f"drawn: {path} ({_summary(prediction)})")


def _summary(prediction: Prediction) -> str:
    if prediction.semantic is None:
        return f"{len(prediction)} detections"
    labels, pixels = np.unique(prediction.semantic, return_counts=True)
    shares = ", ".join(f"{label}: {n / pixels.sum():.0%}" for label, n in zip(labels, pixels, strict=True))
    return f"share of each label: {shares}"
