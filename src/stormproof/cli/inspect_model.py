"""`stormproof inspect onnx:FILE`: how a network will be run, and its predictions for a few images."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
import yaml

from stormproof.cli import console
from stormproof.core.errors import InvalidOption, OutputError, StormproofError, counted
from stormproof.core.files import write_text
from stormproof.core.imagefile import write_image
from stormproof.core.sample import Prediction, Sample
from stormproof.core.spec import Spec
from stormproof.datasets import open_dataset
from stormproof.models import open_model
from stormproof.models.decoders import DECODERS
from stormproof.models.guess import describe_shape
from stormproof.models.model import Model
from stormproof.models.network import Network
from stormproof.models.sanity_checks import PROBES, Probe, check_predictions, describe_model, probe
from stormproof.tools.drawing import draw

STREET = "world:val,count=3,size=768x480"
_IMAGES = 3
_BEST = 20  # detections drawn per image


def inspect_model(text: str, data: str | None, *, draft: Path | None, tune: bool) -> None:
    """Print how the network will be run; with data, draw its detections on the first images.

    `draft` is where to write its card. `tune` tries the usual inputs on the labels of `data`.
    """
    spec = Spec.parse(text)
    if (draft or tune) and spec.kind not in PROBES:
        raise InvalidOption(
            f"--draft and --tune are for network files ({', '.join(PROBES)}), not {text!r:.80}."
        )
    if tune and data is None:
        raise InvalidOption("--tune needs labelled images: add --data, e.g. --data coco:val.json.")
    dataset = open_dataset(data or STREET)
    samples = [dataset[i] for i in range(min(len(dataset), _IMAGES if data else 1))]
    found = probe(spec, samples[0].image) if spec.kind in PROBES else None
    if found is not None:
        _print_probe(found)
    if found is not None and draft is not None and not tune:
        _write_card(draft, _draft_lines(found), found.card)
    try:
        model = open_model(text)
    except StormproofError as error:
        console.warn(f"it cannot be run yet: {error}")
        raise typer.Exit(1) from None
    console.say(f"run as: {describe_model(model)}")
    if found is not None and found.guessed and not has_card(spec):
        _say_guess(found, text)
    if isinstance(model, Model):
        predictions = model([sample.image for sample in samples])
        for line in check_predictions(model, predictions, [sample.image.shape[:2] for sample in samples]):
            console.warn(line)
        if data and not tune:
            _draw(samples, predictions, model.classes)
    if found is not None and tune and isinstance(model, Network):
        _tune(model, found, str(data), draft or Path(spec.main).with_suffix(".yaml"))


def has_card(spec: Spec) -> bool:
    """Whether a card, rather than a guess, says how to feed a network."""
    return "card" in spec.options or Path(spec.main).with_suffix(".yaml").is_file()


def _say_guess(found: Probe, text: str) -> None:
    console.warn(
        f"how to feed it is a guess ({found.guessed}): the file does not say, and such networks differ. "
        f"Find out on labelled images: stormproof inspect {shlex.quote(text)} --data DATASET --tune"
    )


def _tune(model: Network, found: Probe, data: str, path: Path) -> None:
    from stormproof.datasets.dataset import open_dataset as open_labelled
    from stormproof.tools.tune import input_candidates, tune_input

    if path.exists():
        raise InvalidOption(f"{path} exists already; name another file for the card with --draft FILE.")
    with console.progress("trying inputs", 1 + len(input_candidates(model.card.input)), "inputs") as progress:
        done = tune_input(model, open_labelled(data), step=progress.advance)
    table = console.table(
        f"{done.measure} on {done.images} images (in %), by input",
        ("input",),
        (done.measure, "against the guess"),
    )
    for trial in done.trials:
        lead = "" if trial.gain is None else f"{100 * trial.gain.interval.estimate:+.1f}"
        bold = "bold" if trial is done.chosen else ""
        table.add_row(trial.words, f"{100 * trial.score:.1f}", lead, style=bold)
    console.out.print(table)
    console.say(done.verdict)
    fed = done.chosen.input.model_dump(include={"channels", "mean", "std", "resize", "pad"})
    tuned = {**found.card, "input": {**found.card["input"], **fed}}
    if isinstance(model.card.classes, str | list):
        tuned["classes"] = model.card.classes
    _write_card(path, [f"# Chosen on {done.images} images of {data}: {done.verdict}"], tuned)


def _print_probe(found: Probe) -> None:
    table = console.table("", ("", "name", "shape", "type", "on one image"))
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


def _draft_lines(found: Probe) -> list[str]:
    """Comments of a draft: what to check, and what only a person knows."""
    lines = ["# A draft: what the graph shows, and the defaults for such networks. Check it."]
    if found.why:
        lines.append(f"# The outputs: {found.why}")
    if "decoder" not in found.card:
        lines.append(f"# decoder: one of {', '.join(DECODERS)}")
    if "classes" not in found.card:
        lines.append(
            "# classes: coco80, coco91, voc21, cityscapes19 …, a text file of names, or a list of them;"
        )
        lines.append("#   dataset, as below, means that labels index the dataset's classes.")
    return lines


def _write_card(path: Path, comments: Sequence[str], card: dict[str, Any]) -> None:
    """Write a card; an existing file is never replaced."""
    if path.exists():
        raise OutputError(f"{path} exists already; name another file, or remove it.")
    whole = {**card, **({} if "classes" in card else {"classes": "dataset"})}
    body = yaml.safe_dump(_plain(whole), sort_keys=False, allow_unicode=True)
    write_text(path, "\n".join(comments) + "\n" + body)
    console.say(
        f"card: {path}; a run reads it as card={path}, or by itself beside the network, with its name"
    )


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
    if prediction.panoptic is not None:
        segments = len({*np.unique(prediction.panoptic).tolist()} - {0})
        return (
            f"{counted(segments, 'segment')}, {(prediction.panoptic == 0).mean():.0%} of the pixels in none"
        )
    if prediction.semantic is None:
        return f"{len(prediction)} detections"
    labels, pixels = np.unique(prediction.semantic, return_counts=True)
    shares = ", ".join(f"{label}: {n / pixels.sum():.0%}" for label, n in zip(labels, pixels, strict=True))
    return f"share of each label: {shares}"
