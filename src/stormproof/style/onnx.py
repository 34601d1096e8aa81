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
from stormproof.style.layers import Conv, Field, Layer, Pool, Run, Weights

OPSET = 17


def onnx_graph(layers: Sequence[Layer], weights: Weights, *, half: bool = False) -> bytes:
    """An ONNX model: float32 N×C×H×W in (`x`) and out (`y`), any height and width.

    `half` keeps the weights as float16, which halves the file; they are widened when it is loaded, so
    the arithmetic is float32 either way.
    """
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants = [], []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(value, name))
        return name

    def weight(name: str) -> str:
        if not half:
            return constant(name, np.asarray(weights[name], np.float32))
        kept = constant(f"{name}.half", np.asarray(weights[name], np.float16))
        nodes.append(helper.make_node("Cast", [kept], [name], to=TensorProto.FLOAT))
        return name

    if any(isinstance(layer, Conv) and layer.size == 3 for layer in layers):
        constant("border", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    if any(not isinstance(layer, Conv | Pool) for layer in layers):
        constant("twice", np.array([1, 1, 2, 2], np.float32))
    x = "x"
    for k, layer in enumerate(layers):
        y = "y" if k == len(layers) - 1 else f"t{k}"
        if isinstance(layer, Conv):
            if layer.size == 3:
                nodes.append(helper.make_node("Pad", [x, "border"], [f"{y}.padded"], mode="reflect"))
                x = f"{y}.padded"
            sums = f"{y}.sums" if layer.relu else y
            parts = [x, weight(f"{layer.name}.weight"), weight(f"{layer.name}.bias")]
            nodes.append(helper.make_node("Conv", parts, [sums], kernel_shape=[layer.size] * 2))
            if layer.relu:
                nodes.append(helper.make_node("Relu", [sums], [y]))
        elif isinstance(layer, Pool):
            nodes.append(
                helper.make_node("MaxPool", [x], [y], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
            )
        else:
            # Each output pixel takes the input pixel it lies in.
            rule = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            nodes.append(helper.make_node("Resize", [x, "", "twice"], [y], mode="nearest", **rule))
        x = y
    first, last = layers[0], layers[-1]
    assert isinstance(first, Conv)
    assert isinstance(last, Conv)
    graph = helper.make_graph(
        nodes,
        "style",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", first.inputs, "height", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", last.outputs, "rows", "columns"])],
        constants,
    )
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
