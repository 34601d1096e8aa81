"""`stormproof inspect onnx:FILE`: how a network will be run, and its predictions for a few images."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from stormproof.cli import console
from stormproof.core.errors import CardChange, InvalidOption, OutputError, StormproofError, counted
from stormproof.core.files import write_text
from stormproof.core.imagefile import write_image
from stormproof.core.sample import Prediction, Sample
from stormproof.core.spec import Spec
from stormproof.core.table import Entry, Table, styled
from stormproof.datasets import read_dataset
from stormproof.models import load_model
from stormproof.models.decoders import DECODERS
from stormproof.models.guess import describe_shape
from stormproof.models.model import Model
from stormproof.models.sanity_checks import PROBES, Probe, describe_model, find_faults, probe
from stormproof.tools.drawing import draw

if TYPE_CHECKING:
    from stormproof.tools.tune import Tuning

STREET = "world:val,count=3,size=768x480"
_IMAGES = 3
_RUNTIME = ("threads", "batch", "device")  # options of a spec that a card cannot hold
_BEST = 20  # detections drawn per image


def inspect_model(text: str, data: str | None, *, fix: Path | None, tune: bool) -> None:
    """Print how the network will be run; with data, draw its detections on the first images.

    `fix` is where to write a card to which every hint is applied. `tune` tries the usual inputs on the labels
    of `data`.
    """
    spec = Spec.parse(text)
    if (fix or tune) and spec.kind not in PROBES:
        raise InvalidOption(
            f"--fix and --tune are for network files ({', '.join(PROBES)}), not {text!r:.80}."
        )
    if tune and data is None:
        raise InvalidOption("--tune needs labelled images: add --data, e.g. --data coco:val.json.")
    if fix is not None and fix.exists():
        raise OutputError(f"{fix} exists already; name another file for the card, or remove it.")
    dataset = read_dataset(data or STREET)
    samples = [dataset[i] for i in range(min(len(dataset), _IMAGES if data else 1))]
    probed = probe(spec, samples[0].image) if spec.kind in PROBES else None
    if probed is not None:
        _print_probe(probed)
        if fix is not None or tune:
            _fix(spec, probed, samples, data, fix, tune=tune)
            return
    try:
        model = load_model(text)
    except StormproofError as error:
        console.warn(f"it cannot be run yet: {error}")
        if probed is not None and "decoder" in probed.card:
            console.note(f"Write a card that runs: stormproof inspect {shlex.quote(text)} --fix CARD.yaml")
        raise typer.Exit(1) from None
    console.say(f"run as: {describe_model(model)}")
    if probed is not None and probed.guessed and not has_card(spec):
        _say_guess(probed, text)
    if isinstance(model, Model):
        predictions = _predict(model, samples, text)
        if data:
            _draw(samples, predictions, model.classes)


def _predict(model: Model, samples: Sequence[Sample], text: str) -> Sequence[Prediction]:
    """Predictions for some images; what looks wrong in them is printed."""
    try:
        predictions = model([sample.image for sample in samples])
    except CardChange as error:
        console.warn(f"it cannot be run yet: {error}")
        console.note(f"Write a card that runs: stormproof inspect {shlex.quote(text)} --fix CARD.yaml")
        raise typer.Exit(1) from None
    for line, _ in find_faults(model, predictions, [sample.image.shape[:2] for sample in samples]):
        console.warn(line)
    return predictions


def has_card(spec: Spec) -> bool:
    """Whether a card, rather than a guess, says how to feed a network."""
    return "card" in spec.options or Path(spec.main).with_suffix(".yaml").is_file()


def _say_guess(probed: Probe, text: str) -> None:
    console.warn(
        f"how to feed it is a guess ({probed.guessed}): the file does not say, and such networks differ. "
        f"Find out on labelled images: stormproof inspect {shlex.quote(text)} --data DATASET --fix CARD.yaml"
    )


def _fix(
    spec: Spec, probed: Probe, samples: Sequence[Sample], data: str | None, path: Path | None, *, tune: bool
) -> None:
    """Apply every hint, print what was changed, and write the card where asked."""
    from stormproof.datasets.opened import open_dataset as open_labelled
    from stormproof.tools.fix import draft_values, fix_network

    labelled = open_labelled(data) if data else None
    if labelled is not None and not (labelled.classes or labelled.semantic_classes):
        labelled = None
    tune = tune or (labelled is not None and bool(probed.guessed) and not has_card(spec))
    images = [sample.image for sample in samples]
    try:
        done = fix_network(spec, probed, images, labelled, tune=tune, watch=console.progress)
    except StormproofError as error:
        console.warn(f"it cannot be fixed: {error}")
        if path is not None and not probed.problem:
            _write_card(path, _draft_lines(probed), draft_values(spec, probed))
            console.note("That card is a draft, which does not run: complete it.")
        raise typer.Exit(1) from None
    if done.tuning is not None:
        _print_tuning(done.tuning)
    for line in done.changes:
        console.say(f"fixed: {line}")
    for line in done.doubts:
        console.warn(line)
    if path is None:
        console.note("Nothing was written: --fix CARD.yaml writes the card.")
        return
    chosen = done.tuning and f"Input chosen on {done.tuning.images} images of {data}: {done.tuning.verdict}"
    lines = [*([chosen] if chosen else []), *done.changes, *(f"Not sure: {line}" for line in done.doubts)]
    _write_card(path, [f"# {line}" for line in lines], done.card())
    _try_card(spec, path, samples, data)


def _try_card(spec: Spec, path: Path, samples: Sequence[Sample], data: str | None) -> None:
    """Open the network with the card that was written, as a run will, and print what still looks wrong."""
    kept = {key: value for key, value in spec.options.items() if key in _RUNTIME}
    text = str(Spec(spec.kind, spec.main, {"card": str(path), **kept}))
    model = load_model(text)
    console.say(f"run as: {describe_model(model)}")
    if isinstance(model, Model):
        _predict(model, samples, text)
    console.say(
        f"run it with: stormproof run --model {shlex.quote(text)} --data {shlex.quote(data or 'DATASET')} "
        f"--conditions imagenet-c --out runs/{Path(spec.main).stem}"
    )


def _print_tuning(done: Tuning) -> None:
    rows: list[Sequence[Entry]] = []
    for trial in done.trials:
        lead = "" if trial.gain is None else f"{100 * trial.gain.interval.estimate:+.1f}"
        row: list[Entry] = [trial.words, f"{100 * trial.score:.1f}", lead]
        rows.append(styled(row, "bold") if trial is done.chosen else row)
    title = f"{done.measure} on {done.images} images (in %), by input"
    console.print_table(Table("tuning", title, ("input", done.measure, "against the guess"), rows))
    console.say(done.verdict)


def _print_probe(probed: Probe) -> None:
    rows = []
    ranges = {output.name: output for output in probed.outputs}
    for noun, tensors in (("input", probed.graph.inputs), ("output", probed.graph.outputs)):
        for tensor in tensors:
            seen = ranges.get(tensor.name) if noun == "output" else None
            shown = f"{describe_shape(seen.shape)}, {seen.low:.4g} to {seen.high:.4g}" if seen else ""
            rows.append((noun, tensor.name, describe_shape(tensor.shape), tensor.dtype, shown))
    console.print_table(Table("tensors", "", ("", "name", "shape", "type", "on one image"), rows))
    if probed.problem:
        console.warn(probed.problem)
    if "decoder" in probed.card:
        console.say(f"decoder: {probed.card['decoder']}, recognised by its outputs. {probed.why}")
    elif not probed.problem:
        console.say("decoder: the outputs fit no known family; write decoder: in the card")


def _draft_lines(probed: Probe) -> list[str]:
    """Comments of a draft: what to complete, and what only a person knows."""
    lines = ["# A draft: what the graph shows, and the defaults for such networks. Complete it."]
    if probed.why:
        lines.append(f"# The outputs: {probed.why}")
    if "decoder" not in probed.card:
        lines.append(f"# decoder: one of {', '.join(DECODERS)}")
    if "classes" not in probed.card:
        lines.append(
            "# classes: coco80, coco91, voc21, cityscapes19 …, a text file of names, or a list of them;"
        )
        lines.append("#   dataset, as below, means that labels index the dataset's classes.")
    return lines


def _write_card(path: Path, comments: Sequence[str], card: Mapping[str, Any]) -> None:
    from stormproof.tools.fix import card_text

    write_text(path, "".join(f"{line}\n" for line in comments) + card_text(card))
    console.say(
        f"card: {path}; a run reads it as card={path}, or by itself beside the network, with its name"
    )


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
        return counted(len(prediction), "detection")
    labels, pixels = np.unique(prediction.semantic, return_counts=True)
    shares = ", ".join(f"{label}: {n / pixels.sum():.0%}" for label, n in zip(labels, pixels, strict=True))
    return f"share of each label: {shares}"
