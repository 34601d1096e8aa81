"""LiteRT on a real flat buffer: a one-operator network that takes the arg-max over colour channels."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import ModelError
from stormproof.models import load_model
from stormproof.models.litert import read_metadata

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="needs the extra 'litert'")
from ai_edge_litert import schema_py_generated as schema  # noqa: E402

SIDE = 16


def write_arg_max(path: Path, described: bytes = b"") -> Path:
    """A .tflite file: float NHWC image in, index of its strongest channel out; `described`: its metadata."""
    import flatbuffers

    def tensor(name: str, shape: list[int], kind: int, buffer: int) -> schema.TensorT:
        made = schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name, shape, kind, buffer
        return made

    axis = schema.BufferT()
    axis.data = np.frombuffer(np.array([3], np.int32).tobytes(), np.uint8)
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.ARG_MAX
    options = schema.ArgMaxOptionsT()
    options.outputType = schema.TensorType.INT32
    operator = schema.OperatorT()
    operator.inputs, operator.outputs = [0, 1], [2]
    operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.ArgMaxOptions, options
    graph = schema.SubGraphT()
    graph.tensors = [
        tensor("image", [1, SIDE, SIDE, 3], schema.TensorType.FLOAT32, 0),
        tensor("axis", [1], schema.TensorType.INT32, 1),
        tensor("map", [1, SIDE, SIDE], schema.TensorType.INT32, 0),
    ]
    graph.inputs, graph.outputs, graph.operators = [0], [2], [operator]
    model = schema.ModelT()
    model.version, model.operatorCodes, model.subgraphs = 3, [code], [graph]
    model.buffers = [schema.BufferT(), axis]
    if described:
        entry, buffer = schema.MetadataT(), schema.BufferT()
        entry.name, entry.buffer, buffer.data = "TFLITE_METADATA", 2, np.frombuffer(described, np.uint8)
        model.metadata = [entry]
        model.buffers.append(buffer)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def test_a_network_is_guessed_and_run(tmp_path: Path) -> None:
    path = write_arg_max(tmp_path / "net.tflite")
    (tmp_path / "names.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "net.yaml").write_text("classes: names.txt\n")
    model = load_model(f"tflite:{path}")
    assert model.semantic_classes == ("red", "green", "blue")
    image = np.zeros((40, 60, 3), np.uint8)
    image[:, :30, 1], image[:, 30:, 2] = 255, 255
    (found,) = model([image])
    assert found.semantic is not None
    assert found.semantic.shape == (40, 60)
    assert {*found.semantic[:, :26].ravel()} == {1}
    assert {*found.semantic[:, 34:].ravel()} == {2}


def description(mean: list[float], std: list[float]) -> bytes:
    """ModelMetadata with one subgraph, one input and its normalisation, by metadata_schema.fbs."""
    import flatbuffers

    build = flatbuffers.Builder(256)

    def floats(values: list[float]) -> int:
        return int(build.CreateNumpyVector(np.array(values, np.float32)))

    def table(fields: int, values: dict[int, int]) -> int:
        build.StartObject(fields)
        for slot, offset in values.items():
            build.PrependUOffsetTRelativeSlot(slot, offset, 0)
        return int(build.EndObject())

    def one(child: int) -> int:
        build.StartVector(4, 1, 4)
        build.PrependUOffsetTRelative(child)
        return int(build.EndVector())

    options = table(2, {0: floats(mean), 1: floats(std)})
    build.StartObject(2)
    build.PrependUint8Slot(0, 1, 0)  # the union's kind: NormalizationOptions
    build.PrependUOffsetTRelativeSlot(1, options, 0)
    unit = int(build.EndObject())
    tensor = table(7, {4: one(unit)})
    subgraph = table(4, {2: one(tensor)})
    build.Finish(table(8, {3: one(subgraph)}), b"M001")
    return bytes(build.Output())


def test_reads_names_and_normalisation_from_the_metadata(tmp_path: Path) -> None:
    path = write_arg_max(tmp_path / "net.tflite", description([100, 110, 120], [50]))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "red\ngreen\nblue\n")
    model = load_model(f"tflite:{path}")
    assert model.semantic_classes == ("red", "green", "blue")
    assert (model.card.input.mean, model.card.input.std) == ((100, 110, 120), (50, 50, 50))
    (tmp_path / "net.yaml").write_text("input: {mean: 0}\n")
    assert load_model(f"tflite:{path}").card.input.mean == (0, 0, 0)  # a card overrides


def test_ignores_broken_metadata(tmp_path: Path) -> None:
    whole = description([100], [50])
    for length in range(0, len(whole), 7):
        path = write_arg_max(tmp_path / "net.tflite", whole[:length] + bytes(len(whole) - length))
        assert {*read_metadata(path)} <= {"mean", "std"}


def test_asks_for_the_classes(tmp_path: Path) -> None:
    path = write_arg_max(tmp_path / "net.tflite")
    with pytest.raises(ModelError, match="classes=coco80"):
        load_model(f"tflite:{path}")


def test_refuses_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="LiteRT cannot load"):
        load_model(f"tflite:{tmp_path}/net.tflite")
