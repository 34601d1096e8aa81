"""`stormproof inspect onnx:FILE`: what a network is taken for, and what it says about a few images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.table import Table

from stormproof.cli import console
from stormproof.core.errors import StormproofError
from stormproof.core.files import write_text
from stormproof.core.imagefile import write_image
from stormproof.core.sample import Image, Prediction, Sample, as_rgb
from stormproof.core.spec import Spec
from stormproof.datasets import open_dataset
from stormproof.models import open_model
from stormproof.models.model import Model
from stormproof.models.sanity_checks import PROBES, Probe, check_predictions, describe_model, probe

STREET = "world:val,count=3,size=768x480"
_IMAGES = 3
_BEST = 20  # detections drawn per image


def inspect_model(text: str, data: str | None) -> None:
    """Print what the network is taken for; write a draft card and, with data, drawn detections."""
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
    console.say(f"taken for: {describe_model(model)}")
    if isinstance(model, Model):
        said = model([sample.image for sample in samples])
        for line in check_predictions(model, said, [sample.image.shape[:2] for sample in samples]):
            console.warn(line)
        if data:
            _draw(samples, said, model.classes)


def _print_probe(found: Probe) -> None:
    table = Table("", "name", "shape", "type", "on one image", title_justify="left")
    ranges = {output.name: output for output in found.outputs}
    for noun, tensors in (("input", found.graph.inputs), ("output", found.graph.outputs)):
        for tensor in tensors:
            shape = "×".join("?" if side is None else str(side) for side in tensor.shape)
            seen = ranges.get(tensor.name) if noun == "output" else None
            shown = f"{'×'.join(map(str, seen.shape))}, {seen.low:.4g} to {seen.high:.4g}" if seen else ""
            table.add_row(noun, tensor.name, shape, tensor.dtype, shown)
    console.out.print(table)
    if found.problem:
        console.warn(found.problem)
    if "decoder" in found.card:
        console.say(f"decoder: {found.card['decoder']}, recognised by its outputs. {found.why}")
    elif not found.problem:
        console.say("decoder: the outputs fit no family that is known; write decoder: in the card")


def _write_draft(found: Probe, path: Path) -> None:
    """The card as far as it was guessed; one that is there already is left alone."""
    if path.exists():
        console.note(f"{path} is there already and stays as it is.")
        return
    lines = [
        "# A draft: what the graph shows, and what is usual for such networks. Check it, rename it to stand",
        "# beside the model, or name it with card=.",
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


def _draw(samples: Sequence[Sample], said: Sequence[Prediction], classes: Sequence[str]) -> None:
    """The best detections on each image, or the label map over it, as a PNG in this folder."""
    for sample, prediction in zip(samples, said, strict=True):
        path = Path(f"inspect-{Path(sample.id).name}.png")
        write_image(path, _drawn(as_rgb(sample.image), prediction, classes))
        console.say(f"drawn: {path} ({_said(prediction)})")


def _said(prediction: Prediction) -> str:
    if prediction.semantic is None:
        return f"{len(prediction)} detections"
    labels, pixels = np.unique(prediction.semantic, return_counts=True)
    shares = ", ".join(f"{label}: {n / pixels.sum():.0%}" for label, n in zip(labels, pixels, strict=True))
    return f"share of each label: {shares}"


def _drawn(image: Image, said: Prediction, classes: Sequence[str]) -> Image:
    import cv2

    canvas = image.copy()
    if said.semantic is not None:
        colours = np.random.default_rng(3).integers(40, 255, (int(said.semantic.max()) + 1, 3), np.uint8)
        canvas = ((canvas.astype(np.uint16) + colours[said.semantic]) // 2).astype(np.uint8)
    for i in np.argsort(-said.scores)[:_BEST][::-1]:
        x1, y1, x2, y2 = (round(v) for v in said.boxes[i].tolist())
        name = classes[said.labels[i]] if said.labels[i] < len(classes) else str(said.labels[i])
        shade = int(255 * min(1.0, 0.4 + said.scores[i]))
        cv2.rectangle(canvas, (x1, y1), (x2, y2), (shade, 60, 40), 2)
        text = f"{name.encode('ascii', 'replace').decode()} {said.scores[i]:.2f}"
        cv2.putText(canvas, text, (x1 + 2, max(12, y1 - 4)), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 0), 1)
    return canvas
