"""LiteRT (TensorFlow Lite) models: `tflite:model.tflite[,card=card.yaml,classes=coco91]`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.loading import framework
from stormproof.core.spec import opens
from stormproof.models.guess import Graph, Tensor, guess_card, outputs_in_words
from stormproof.models.loading import model_file
from stormproof.models.network import Array, Forward, Network, assemble_card, chosen_outputs
from stormproof.models.tflitefile import read_metadata


@opens("tflite")
def open_tflite(
    main: str,
    *,
    card: str | None = None,
    classes: str | None = None,
    decoder: str | None = None,
    threads: int = 1,
    score: float | None = None,
) -> Network:
    """Open a model file; as with ONNX, a card fills in what the graph does not tell."""
    path = model_file(main, "a LiteRT model")
    interpreter = _interpreter(path, threads)
    settings = {"classes": classes, "decoder": decoder, "score": score}
    graph = _graph(interpreter, path)
    whole, names = assemble_card(path, card, guess_card(graph), settings, path.name, outputs_in_words(graph))
    return Network(
        name=whole.name or path.stem,
        card=whole,
        forward=_forward(interpreter, whole.outputs),
        files=(path,),
        names=names,
    )


def probe_tflite(main: str) -> tuple[Graph, Forward]:
    """The outside of a network, and a way to run it on one input, before anything is known of its card."""
    path = model_file(main, "a LiteRT model")
    interpreter = _interpreter(path, 1)
    return _graph(interpreter, path), _forward(interpreter, None)


def _interpreter(path: Path, threads: int) -> Any:
    package = framework("ai_edge_litert.interpreter", extra="litert")
    try:
        interpreter = package.Interpreter(model_path=str(path), num_threads=threads)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"{path}: LiteRT cannot load it ({str(error).splitlines()[0]}).") from None
    return interpreter


def _graph(interpreter: Any, path: Path) -> Graph:
    def read(detail: Any) -> Tensor:
        shape = tuple(int(side) if side > 0 else None for side in detail["shape"])
        return Tensor(detail["name"], shape, np.dtype(detail["dtype"]).name)

    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    return Graph(tuple(map(read, inputs)), tuple(map(read, outputs)), read_metadata(path))


def _forward(interpreter: Any, outputs: Sequence[str] | None) -> Forward:
    """Run the interpreter, for all outputs unless some are named; quantised ones become real numbers."""
    (first, *_) = interpreter.get_input_details()
    details = {detail["name"]: detail for detail in interpreter.get_output_details()}
    wanted = [details[name] for name in chosen_outputs(outputs, list(details))]

    def forward(batch: Array) -> Sequence[Array]:
        interpreter.set_tensor(first["index"], batch)
        interpreter.invoke()
        return [_real(interpreter.get_tensor(detail["index"]), detail) for detail in wanted]

    return forward


def _real(value: Array, detail: Any) -> Array:
    scale, zero = detail["quantization"]
    if not scale or value.dtype.kind == "f":
        return value
    real: Array = (value.astype(np.float32) - zero) * np.float32(scale)
    return real
