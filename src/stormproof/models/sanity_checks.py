"""A first look at a model: what its file shows, how it will be run, what looks wrong in its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError, StormproofError, counted
from stormproof.core.forms import Array
from stormproof.core.sample import MAPS, Image, Prediction
from stormproof.core.spec import Spec
from stormproof.models.card import InputCard, check_card
from stormproof.models.decoders import DECODERS, OutputDecoder
from stormproof.models.guess import Graph, batch_problem, guess_card, guess_input, recognise
from stormproof.models.litert import probe_tflite
from stormproof.models.model import Model, Precomputed
from stormproof.models.network import Forward, Network, plan_input, prepare
from stormproof.models.onnx import probe_onnx

PROBES: dict[str, Callable[[str], tuple[Graph, Forward]]] = {"onnx": probe_onnx, "tflite": probe_tflite}
USUAL_SIDE = 640
_FEW = 3  # predicted classes, out of many known ones, that are suspiciously few
_ENOUGH = 20  # detections needed to judge


@dataclass(frozen=True, slots=True)
class Output:
    """One output on one image."""

    name: str
    shape: tuple[int, ...]
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Probe:
    """`card` is the part of a card that could be guessed, `why` how; `problem` is why it was not run.

    `guessed` describes the part of the input that nothing in the file states and that varies in its family.
    """

    graph: Graph
    card: dict[str, Any]
    why: str
    outputs: tuple[Output, ...]
    problem: str = ""
    guessed: str = ""


def probe(spec: Spec, image: Image) -> Probe:
    """What a network file reveals, and its outputs on an image prepared in its family's usual way."""
    graph, run = PROBES[spec.kind](spec.main)
    try:
        card = guess_card(graph)
        why = recognise(graph, card["input"].get("size"))[1]
    except ModelError as error:
        return Probe(graph, {"input": guess_input(graph)}, "", (), str(error))
    decoder = DECODERS[card["decoder"]] if "decoder" in card else None
    usual = decoder.usual if decoder else {"std": 255}
    card["input"] = {"size": (USUAL_SIDE, USUAL_SIDE), **usual, **card["input"]}
    if decoder and decoder.task == "detection":
        card |= {key: value for key, value in asdict(decoder.limits).items() if value is not None}
    if problem := batch_problem(graph):
        return Probe(graph, card, why, (), problem)
    names = [tensor.name for tensor in graph.outputs]
    try:
        fed = check_card(InputCard, card["input"], "input")
        values = run(prepare(image, plan_input(image, fed), fed)[None])
        outputs = tuple(_output(name, value) for name, value in zip(names, values, strict=True))
    except Exception as error:  # each runtime has exceptions of its own
        said = (str(error) or type(error).__name__).splitlines()[0]
        problem = str(error) if isinstance(error, StormproofError) else f"it cannot be run: {said}"
        return Probe(graph, card, why, (), problem)
    return Probe(graph, card, why, outputs, guessed=_describe_guess(graph, fed, decoder))


def _describe_guess(graph: Graph, fed: InputCard, decoder: OutputDecoder | None) -> str:
    """The part of the input that is a guess, in words; empty if the family or the file decides it."""
    if decoder is None or not decoder.varied:
        return ""
    stated = guess_input(graph)
    numbers = "" if "std" in stated or not fed.dtype.startswith("float") else f" {_numbers(fed)}"
    return f"{fed.channels}{numbers}, {fed.resize}"


def _output(name: str, value: Array | list[Array]) -> Output:
    numbers = np.asarray(value, np.float64)
    low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)
    return Output(name, numbers.shape, low, high)


def describe_model(model: Model | Precomputed) -> str:
    """One line: input, decoder, thresholds and classes, as far as the model states them."""
    parts = [*_describe_network(model)] if isinstance(model, Network) else []
    names = (*model.classes, *(n for n in model.semantic_classes if n not in model.classes))
    shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    parts.append(f"{counted(len(names), 'class')} ({shown})" if names else "the dataset's classes")
    return f"{model.name}: {'; '.join(parts)}"


def _describe_network(model: Network) -> tuple[str, ...]:
    card, fed = model.card, model.card.input
    size = f"{fed.size[1]}×{fed.size[0]}" if fed.size else "any size"
    resized = fed.resize if fed.interpolation == "linear" else f"{fed.resize} ({fed.interpolation})"
    given = f"{size} {fed.layout}, {resized}", f"{fed.channels} {_numbers(fed)}"
    if DECODERS[card.decoder].task == "semantic":
        return (f"decoder {card.decoder}", *given)
    limits = card.limits
    nms = "no NMS" if limits.iou is None else f"NMS at IoU {limits.iou:g}"
    thresholds = f"score ≥ {limits.score:g}, {nms}, at most {limits.keep} boxes per image"
    return (f"decoder {card.decoder}", thresholds, *given)


def _numbers(fed: InputCard) -> str:
    """How grey levels become the network's input, in words."""
    if fed.dtype in ("uint8", "int8"):
        return fed.dtype
    if fed.mean == (0, 0, 0) and fed.std == (1, 1, 1):
        return "0 to 255"
    return f"(x − {_short(fed.mean)}) / {_short(fed.std)}"


def _short(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len({*values}) == 1 else "[" + " ".join(f"{v:g}" for v in values) + "]"


def find_faults(
    model: Model | Precomputed, predictions: Sequence[Prediction], sizes: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What looks wrong in predictions for a few ordinary images, with the likely cause; and the part of a
    card that mends it, if one does."""
    values = {int(v) for p in predictions if p.semantic is not None for v in np.unique(p.semantic)}
    if len(values) == 1:
        yield f"every pixel is class {values.pop()}: check mean, std and channels in the card.", {}
    if not model.classes and any({*p.forms} & {*MAPS} for p in predictions):
        return
    boxes = np.concatenate([np.zeros((0, 4)), *(p.boxes for p in predictions)])
    scores = np.concatenate([np.zeros(0), *(p.scores for p in predictions)])
    labels = np.concatenate([np.zeros(0, np.int64), *(p.labels for p in predictions)])
    if not len(boxes):
        yield "nothing was found in any of these images: check mean, std and channels in the card.", {}
        return
    if boxes.max() <= 4 and min(min(size) for size in sizes) > 32:
        words = "all boxes lie within 4 pixels: they are fractions; set options: {fractions: true}."
        yield words, {"options": {"fractions": True}}
    if len(boxes) < _ENOUGH:
        return
    reach = max(
        (p.boxes[:, 2:].max(axis=0) / size[::-1]).max()
        for p, size in zip(predictions, sizes, strict=True)
        if len(p)
    )
    if reach < 0.3 and isinstance(model, Network) and model.card.decoder == "yolov10":
        words = "all boxes lie in the upper left corner: if they are cells of a map, set options: {scale: 4}."
        yield words, {"options": {"scale": 4}}
    if len(model.classes) > 5 and len(np.unique(labels)) < _FEW:
        names = ", ".join(model.classes[i] for i in np.unique(labels) if i < len(model.classes))
        yield f"only {names} in {len(labels)} detections: check classes and label_offset in the card.", {}
    if scores.min() >= 0.2:
        low = f"no score is below {scores.min():.2f}: the network discards low scores, which AP needs too"
        yield f"{low}; export it with a threshold near 0.", {}
    if scores.max() < 0.1:
        yield f"no score is above {scores.max():.2f}: check mean, std and channels in the card.", {}
