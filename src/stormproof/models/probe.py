"""Looking at a network file before it can be opened: inputs, outputs on a real image, a draft of its card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError, StormproofError
from stormproof.core.sample import Image
from stormproof.core.spec import Spec
from stormproof.models.card import InputCard
from stormproof.models.decoders import DECODERS
from stormproof.models.guess import Graph, guess_card, guess_input, recognise, several_at_once
from stormproof.models.litert import probe_tflite
from stormproof.models.network import Array, Forward, plan_input, prepare
from stormproof.models.onnx import probe_onnx

PROBES: dict[str, Callable[[str], tuple[Graph, Forward]]] = {
    "onnx": probe_onnx,
    "tflite": probe_tflite,
}
_USUAL_SIDE = 640


@dataclass(frozen=True, slots=True)
class Output:
    """One output on one image."""

    name: str
    shape: tuple[int, ...]
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Probe:
    """`card` is as much of a card as could be guessed, `why` by what; `problem` is why it was not run."""

    graph: Graph
    card: dict[str, Any]
    why: str
    outputs: tuple[Output, ...]
    problem: str = ""


def probe(spec: Spec, image: Image) -> Probe:
    """What a network file shows of itself, and its outputs on an image fed as its kind usually is."""
    graph, run = PROBES[spec.kind](spec.main)
    try:
        card = guess_card(graph)
        why = recognise(graph, card["input"].get("size"))[1]
    except ModelError as error:
        return Probe(graph, {"input": guess_input(graph)}, "", (), str(error))
    usual = DECODERS[card["decoder"]].usual if "decoder" in card else {"std": 255}
    card["input"] = {"size": (_USUAL_SIDE, _USUAL_SIDE), **usual, **card["input"]}
    if several_at_once(graph):
        return Probe(graph, card, why, (), several_at_once(graph))
    try:
        fed = InputCard.model_validate(card["input"])
        values = run(prepare(image, plan_input(image, fed), fed)[None])
    except StormproofError as error:
        return Probe(graph, card, why, (), str(error))
    except Exception as error:  # each runtime has exceptions of its own
        return Probe(graph, card, why, (), str(error).splitlines()[0])
    names = [tensor.name for tensor in graph.outputs]
    return Probe(graph, card, why, tuple(_output(n, v) for n, v in zip(names, values, strict=True)))


def _output(name: str, value: Array) -> Output:
    numbers = np.asarray(value, np.float64)
    low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)
    return Output(name, numbers.shape, low, high)
