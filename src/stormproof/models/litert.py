"""LiteRT (TensorFlow Lite) models: `tflite:model.tflite[,card=card.yaml,classes=coco91]`.

The file may contain class names and normalisation: the names as a text file in a ZIP archive appended to the
network, the normalisation as a flat buffer among the network's own, laid out by TensorFlow's
`metadata_schema.fbs`.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.files import read_bytes
from stormproof.core.forms import Array
from stormproof.core.loading import framework
from stormproof.models.card import assemble_card, chosen_outputs
from stormproof.models.guess import Graph, Tensor, explain_outputs, guess_card
from stormproof.models.model import ADAPTERS, model_file
from stormproof.models.network import Forward, Network

_LONGEST = 1 << 20  # bytes; a longer text is not a list of class names
# Fields of metadata_schema.fbs by their number in their table.
_SUBGRAPHS, _INPUTS, _PROCESS_UNITS = 3, 2, 4
_UNIT_KIND, _UNIT, _NORMALIZATION = 0, 1, 1
_MEAN, _STD = 0, 1


@ADAPTERS.declare("tflite")
def open_tflite(
    main: str,
    *,
    card: str | None = None,
    classes: str | None = None,
    decoder: str | None = None,
    threads: int = 1,
    score: float | None = None,
    options: dict[str, str] | None = None,
) -> Network:
    """Open a model file; as with ONNX, a card states what the graph does not show."""
    path = model_file(main, "a LiteRT model")
    interpreter = _interpreter(path, threads)
    settings = {"classes": classes, "decoder": decoder, "score": score, "options": options}
    graph = _graph(interpreter, path)
    whole, names = assemble_card(path, card, guess_card(graph), settings, path.name, explain_outputs(graph))
    return Network(
        name=whole.name or path.stem,
        card=whole,
        forward=_forward(interpreter, whole.outputs),
        files=(path,),
        names=names,
    )


def probe_tflite(main: str) -> tuple[Graph, Forward]:
    """The network's inputs and outputs, and a function that runs it on one input, without a card."""
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
    """Run the interpreter; without `outputs`, all are returned. Quantised outputs become real numbers."""
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


def read_metadata(path: Path) -> dict[str, str]:
    """`names`, `mean` and `std` (in grey levels) as Python literals, as far as the file contains them."""
    held: dict[str, Any] = {"names": names} if (names := _names(path)) else {}
    with suppress(struct.error, IndexError, TypeError, ValueError):  # damaged metadata is ignored
        held |= _normalisation(read_bytes(path, error=ModelError))
    return {key: repr(value) for key, value in held.items()}


def _names(path: Path) -> list[str]:
    """The lines of the text file in the archive, if there is exactly one."""
    if not zipfile.is_zipfile(path):
        return []
    try:
        with zipfile.ZipFile(path) as archive:
            texts = [m for m in archive.infolist() if m.filename.endswith(".txt") and m.file_size < _LONGEST]
            lines = archive.read(texts[0]).decode("utf-8", "replace").splitlines() if len(texts) == 1 else []
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError):  # damaged or encrypted
        return []
    return [line.strip() for line in lines]


def _normalisation(content: bytes) -> dict[str, list[float]]:
    """Mean and std of the first input."""
    schema = framework("ai_edge_litert.schema_py_generated", extra="litert")
    tables = framework("flatbuffers.table", extra="litert")
    model = schema.Model.GetRootAs(content)
    entries = [model.Metadata(i) for i in range(model.MetadataLength())]
    wanted = next((entry for entry in entries if entry.Name() == b"TFLITE_METADATA"), None)
    if wanted is None:
        return {}
    described = model.Buffers(wanted.Buffer()).DataAsNumpy().tobytes()
    root = tables.Table(described, struct.unpack_from("<I", described)[0])
    for subgraph in _children(root, _SUBGRAPHS):
        for tensor in _children(subgraph, _INPUTS):
            for unit in _children(tensor, _PROCESS_UNITS):
                kind = _slot(unit, _UNIT_KIND)
                if kind and unit.Bytes[kind] == _NORMALIZATION:
                    options = type(unit)(unit.Bytes, unit.Indirect(_slot(unit, _UNIT)))
                    return {"mean": _floats(options, _MEAN), "std": _floats(options, _STD)}
            return {}
    return {}


def _slot(table: Any, field: int) -> int:
    """The position of a field in its table's bytes; 0 where it was left out."""
    offset = table.Offset(4 + 2 * field)
    return int(table.Pos + offset) if offset else 0


def _children(table: Any, field: int) -> Iterator[Any]:
    offset = table.Offset(4 + 2 * field)
    if offset:
        start = table.Vector(offset)
        for i in range(table.VectorLen(offset)):
            yield type(table)(table.Bytes, table.Indirect(start + 4 * i))


def _floats(table: Any, field: int) -> list[float]:
    offset = table.Offset(4 + 2 * field)
    count = table.VectorLen(offset) if offset else 0
    return [*struct.unpack_from(f"<{count}f", table.Bytes, table.Vector(offset))] if count else []
