"""ONNX, so that stylizing needs no torch: layers as graphs, and the sessions that run graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.files import read_bytes
from stormproof.core.loading import framework
from stormproof.style.layers import (
    Conv,
    Decode,
    Encode,
    Field,
    Join,
    Layer,
    Levels,
    MaxPool,
    Run,
    Up,
    Weights,
    convolutions,
    joins,
)

OPSET = 17
STRENGTH = "strength"  # the input that says how far detail has faded


def onnx_graph(
    layers: Sequence[Layer], weights: Weights, *, taps: Sequence[str] = (), half: bool = False
) -> bytes:
    """An ONNX model: float32 N×C×H×W in (`x`) and out (`y`), any height and width.

    The outputs of the convolutions named in `taps` follow `y`. Layers that join other inputs make these
    inputs of the model, and `strength`, a scalar. `half` keeps the weights as float16, which halves the file;
    they are widened when it is loaded, so the arithmetic is float32 either way.
    """
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants = [], []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(value, name))
        return name

    def add(kind: str, inputs: Sequence[str], output: str, **how: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [output], **how))
        return output

    def weight(name: str) -> str:
        if not half:
            return constant(name, np.asarray(weights[name], np.float32))
        kept = constant(f"{name}.half", np.asarray(weights[name], np.float16))
        return add("Cast", [kept], name, to=TensorProto.FLOAT)

    joined = joins(layers)
    if any(isinstance(layer, Conv) and layer.size == 3 for layer in layers):
        constant("border", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    if any(isinstance(layer, Up) for layer in layers):
        constant("twice", np.array([1, 1, 2, 2], np.float32))
    if joined:
        add("Sub", [constant("one", np.array(1, np.float32)), STRENGTH], "rest")
    x = "x"
    for k, layer in enumerate(layers):
        y = "y" if k == len(layers) - 1 else f"t{k}"
        if isinstance(layer, Conv):
            if layer.name in taps:
                y = layer.name
            if layer.size == 3:
                x = add("Pad", [x, "border"], f"{y}.padded", mode="reflect")
            parts = [x, weight(f"{layer.name}.weight"), weight(f"{layer.name}.bias")]
            sums = add("Conv", parts, f"{y}.sums" if layer.relu else y, kernel_shape=[layer.size] * 2)
            x = add("Relu", [sums], y) if layer.relu else sums
        elif isinstance(layer, Join):
            # The weights take the factor, because they are far fewer than the values.
            share = STRENGTH if layer.grows else "rest"
            faded = add("Mul", [weight(f"{layer.name}.weight"), share], f"{layer.name}.faded")
            more = add("Conv", [layer.source, faded], f"{y}.more", kernel_shape=[1, 1])
            x = add("Add", [x, more], y)
        elif isinstance(layer, MaxPool):
            x = add("MaxPool", [x], y, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
        elif layer.smooth:
            rule = {"coordinate_transformation_mode": "half_pixel"}
            x = add("Resize", [x, "", "twice"], y, mode="linear", **rule)
        else:
            # Each output pixel takes the input pixel it lies in.
            rule = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            x = add("Resize", [x, "", "twice"], y, mode="nearest", **rule)
    convs = {conv.name: conv for conv in convolutions(layers)}
    first, last = layers[0], layers[-1]
    assert isinstance(first, Conv)
    assert isinstance(last, Conv)
    outputs = [("y", last.outputs), *((tap, convs[tap].outputs) for tap in taps)]
    kind, sides = TensorProto.FLOAT, ("height", "width")
    graph = helper.make_graph(
        nodes,
        "style",
        [
            helper.make_tensor_value_info("x", kind, ["n", first.inputs, *sides]),
            *(
                helper.make_tensor_value_info(
                    join.source, kind, ["n", join.inputs, *(f"{join.name}_{side}" for side in sides)]
                )
                for join in joined
            ),
            *([helper.make_tensor_value_info(STRENGTH, kind, [])] if joined else []),
        ],
        [helper.make_tensor_value_info(name, kind, ["n", channels, f"{name}_rows", f"{name}_columns"])
         for name, channels in outputs],
        constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    return bytes(model.SerializeToString())


def fingerprint(files: Iterable[Path]) -> str:
    """A hash of the files that make up a network."""
    return hashlib.blake2b(
        b"".join(read_bytes(file, error=ModelError) for file in files), digest_size=16
    ).hexdigest()


def session(model: bytes | Path) -> Any:
    """An ONNX Runtime session on the CPU, with one thread, since several processes share the machine."""
    onnxruntime = framework("onnxruntime", install="pip install onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise ModelError(
            f"{model if isinstance(model, Path) else 'graph'}: cannot be loaded ({error})."
        ) from error


def runner(model: bytes | Path) -> Run:
    """A function that runs a graph with one input and one output."""
    opened = session(model)
    name = opened.get_inputs()[0].name

    def run(batch: Field) -> Field:
        return np.asarray(opened.run(None, {name: batch})[0], np.float32)

    return run


def encoder(model: bytes | Path) -> Encode:
    """A function that runs an encoder's graph."""
    opened = session(model)
    names = [node.name for node in opened.get_outputs()]

    def encode(image: Field) -> tuple[Field, Levels]:
        features, *others = opened.run(None, {"x": image})
        return features, dict(zip(names[1:], others, strict=True))

    return encode


def decoder(model: bytes | Path) -> Decode:
    """A function that runs a decoder's graph with those levels that it joins."""
    opened = session(model)
    joined = [node.name for node in opened.get_inputs() if node.name not in ("x", STRENGTH)]

    def decode(features: Field, levels: Levels, strength: float) -> Field:
        given = {"x": features, **{name: levels[name] for name in joined}}
        if joined:
            given[STRENGTH] = np.array(strength, np.float32)
        return np.asarray(opened.run(None, given)[0], np.float32)

    return decode
