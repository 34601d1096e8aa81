"""Reading an ONNX file before it is run: which other files it wants, and what its graph shows inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from stormproof.core.errors import ModelError
from stormproof.core.loading import framework


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """`files` hold weights outside the model; `classes` is the number of them where an ArgMax shows it."""

    files: tuple[Path, ...]
    classes: int | None


def inspect_onnx(path: Path) -> OnnxFile:
    """Parse the file without loading weights; refuse one that reads files outside its own folder."""
    onnx = framework("onnx", extra="onnx")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's DecodeError is not importable without protobuf
        raise ModelError(f"{path} is not an ONNX model ({error}).") from None
    names = {location for tensor in _tensors(model) for location in _locations(tensor)}
    return OnnxFile(tuple(confine(path, name) for name in sorted(names)), _arg_max_classes(onnx, model))


def confine(model: Path, location: str) -> Path:
    """The file of external weights at `location`, which must lie in the model's folder.

    A model file may come from anywhere; it must not be able to read, say, a key from the home folder into
    its weights. Links count as where they lead, except that model and weights may be linked from one place.
    """
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    leads_out = (
        posix.is_absolute()
        or windows.is_absolute()
        or windows.drive
        or ".." in {*posix.parts, *windows.parts}
    )
    if leads_out or not location:
        raise ModelError(f"{model} keeps weights in {location!r}, outside its folder; that is refused.")
    target = (model.parent / posix).resolve()
    homes = (model.parent.resolve(), model.resolve().parent)
    if not any(target.is_relative_to(home) for home in homes):
        raise ModelError(
            f"{model} keeps weights in {location!r}, a link that leads outside its folder to {target}."
        )
    if not target.is_file():
        raise ModelError(
            f"{model} keeps weights in {location!r}, which is not there; copy it beside the model."
        )
    return target


def _locations(tensor: Any) -> Iterator[str]:
    for entry in tensor.external_data:
        if entry.key == "location":
            yield entry.value


def _tensors(model: Any) -> Iterator[Any]:
    """Every tensor of a model: weights, constants, and those of graphs and functions inside it."""
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(function.node)
    for training in model.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)


def _graph_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            for graph in (attribute.g, *attribute.graphs):
                yield from _graph_tensors(graph)


def _arg_max_classes(onnx: Any, model: Any) -> int | None:
    """The number of classes a last ArgMax chooses from."""
    outputs = {value.name for value in model.graph.output}
    last = next((n for n in model.graph.node if n.op_type == "ArgMax" and outputs & {*n.output}), None)
    if last is None:
        return None
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # an odd graph only means that the classes must be said
        return None
    shapes = {value.name: value.type.tensor_type.shape.dim for value in graph.value_info}
    axis = next((a.i for a in last.attribute if a.name == "axis"), 0)
    sides = shapes.get(last.input[0], ())
    return sides[axis].dim_value or None if -len(sides) <= axis < len(sides) else None
