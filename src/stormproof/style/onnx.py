"""ONNX, so that stylizing needs no torch: layers as graphs, and functions that run them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from stormproof.core.errors import ModelError
from stormproof.core.files import read_bytes
from stormproof.core.sessions import open_session
from stormproof.style.layers import (
    Conv,
    Decode,
    Encode,
    Field,
    Join,
    Layer,
    Levels,
    MaxPool,
    Up,
    Weights,
    convolutions,
    joins,
)

OPSET = 17
STRENGTH = "strength"  # the input that says how far detail has faded


class _Graph:
    """The nodes and constants of a graph in the making; `half` keeps weights as float16."""

    def __init__(self, weights: Weights, *, half: bool) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.weights, self.half = weights, half

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(self, kind: str, inputs: Sequence[str], output: str, **how: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **how))
        return output

    def weight(self, name: str) -> str:
        if not self.half:
            return self.constant(name, np.asarray(self.weights[name], np.float32))
        kept = self.constant(f"{name}.half", np.asarray(self.weights[name], np.float16))
        return self.add("Cast", [kept], name, to=TensorProto.FLOAT)

    def layer(self, layer: Layer, x: str, y: str) -> str:
        """Add a layer from x to y."""
        if isinstance(layer, Conv):
            if layer.size == 3:
                x = self.add("Pad", [x, "border"], f"{y}.padded", mode="reflect")
            parts = [x, self.weight(f"{layer.name}.weight"), self.weight(f"{layer.name}.bias")]
            sums = self.add("Conv", parts, f"{y}.sums" if layer.relu else y, kernel_shape=[layer.size] * 2)
            return self.add("Relu", [sums], y) if layer.relu else sums
        if isinstance(layer, Join):
            # The weights take the factor, because they are far fewer than the values.
            share = STRENGTH if layer.grows else "rest"
            faded = self.add("Mul", [self.weight(f"{layer.name}.weight"), share], f"{layer.name}.faded")
            more = self.add("Conv", [layer.source, faded], f"{y}.more", kernel_shape=[1, 1])
            return self.add("Add", [x, more], y)
        if isinstance(layer, MaxPool):
            return self.add("MaxPool", [x], y, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
        if layer.smooth:
            rule = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        else:  # each output pixel takes the input pixel it lies in
            rule = {
                "mode": "nearest",
                "coordinate_transformation_mode": "asymmetric",
                "nearest_mode": "floor",
            }
        return self.add("Resize", [x, "", "twice"], y, **rule)


def onnx_graph(
    layers: Sequence[Layer], weights: Weights, *, taps: Sequence[str] = (), half: bool = False
) -> bytes:
    """An ONNX model: float32 N×C×H×W in (`x`) and out (`y`), any height and width.

    The outputs of the convolutions named in `taps` follow `y`. Layers that join other inputs make these
    inputs of the model, and `strength`, a scalar. `half` keeps the weights as float16, which halves the file;
    they are widened when it is loaded, so the arithmetic is float32 either way.
    """
    made, joined, convs = _Graph(weights, half=half), joins(layers), convolutions(layers)
    if any(conv.size == 3 for conv in convs):
        made.constant("border", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    if any(isinstance(layer, Up) for layer in layers):
        made.constant("twice", np.array([1, 1, 2, 2], np.float32))
    if joined:
        made.add("Sub", [made.constant("one", np.array(1, np.float32)), STRENGTH], "rest")
    x = "x"
    for k, layer in enumerate(layers):
        tapped = isinstance(layer, Conv) and layer.name in taps
        y = layer.name if tapped else "y" if k == len(layers) - 1 else f"t{k}"  # type: ignore[union-attr]
        x = made.layer(layer, x, y)

    def plane(name: str, channels: int, sides: str, words: Sequence[str]) -> Any:
        shape: list[str | int | None] = ["n", channels, *(f"{sides}{word}" for word in words)]
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    sides = ("height", "width")
    inputs = [plane("x", convs[0].inputs, "", sides)]
    inputs += [plane(join.source, join.inputs, f"{join.name}_", sides) for join in joined]
    if joined:
        inputs.append(helper.make_tensor_value_info(STRENGTH, TensorProto.FLOAT, []))
    widths = {"y": convs[-1].outputs} | {conv.name: conv.outputs for conv in convs}
    outputs = [plane(name, widths[name], f"{name}_", ("rows", "columns")) for name in ("y", *taps)]
    graph = helper.make_graph(made.nodes, "style", inputs, outputs, made.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    return bytes(model.SerializeToString())


def fingerprint(files: Iterable[Path]) -> str:
    """A hash of the files that make up a network."""
    return hashlib.blake2b(
        b"".join(read_bytes(file, error=ModelError) for file in files), digest_size=16
    ).hexdigest()


def encoder(model: bytes | Path) -> Encode:
    """A function that runs an encoder's graph."""
    opened = open_session(model)
    names = [node.name for node in opened.get_outputs()]

    def encode(image: Field) -> tuple[Field, Levels]:
        features, *others = opened.run(None, {"x": image})
        return features, dict(zip(names[1:], others, strict=True))

    return encode


def decoder(model: bytes | Path) -> Decode:
    """A function that runs a decoder's graph with those levels that it joins."""
    opened = open_session(model)
    joined = [node.name for node in opened.get_inputs() if node.name not in ("x", STRENGTH)]

    def decode(features: Field, levels: Levels, strength: float) -> Field:
        given = {"x": features, **{name: levels[name] for name in joined}}
        if joined:
            given[STRENGTH] = np.array(strength, np.float32)
        return np.asarray(opened.run(None, given)[0], np.float32)

    return decode
