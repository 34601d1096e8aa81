"""What the maker of a .tflite file wrote into it beside the network: class names and normalisation.

The names are text files in a ZIP archive appended to the network; the normalisation is a flat buffer among
the network's own, laid out by TensorFlow's `metadata_schema.fbs`.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stormproof.core.loading import framework

_LIMIT = 1 << 20  # bytes of class names; more is no list of names
# Fields of metadata_schema.fbs by their number in their table.
_SUBGRAPHS, _INPUTS, _PROCESS_UNITS = 3, 2, 4
_UNIT_KIND, _UNIT, _NORMALIZATION = 0, 1, 1
_MEAN, _STD = 0, 1


def read_metadata(path: Path) -> dict[str, str]:
    """`names`, `mean` and `std` (in grey levels) as Python literals, as far as the file holds them."""
    found = {}
    names = _names(path)
    if names:
        found["names"] = repr(names)
    try:
        numbers = _normalisation(path.read_bytes())
    except (struct.error, IndexError, TypeError, ValueError):  # a damaged description describes nothing
        numbers = {}
    return {**found, **{key: repr(value) for key, value in numbers.items()}}


def _names(path: Path) -> list[str]:
    """The lines of the one text file inside, if there is one."""
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        texts = [m for m in archive.infolist() if m.filename.endswith(".txt") and m.file_size < _LIMIT]
        lines = archive.read(texts[0]).decode("utf-8", "replace").splitlines() if len(texts) == 1 else []
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
                if _byte(unit, _UNIT_KIND) == _NORMALIZATION:
                    options = _follow(unit, _UNIT)
                    return {"mean": _floats(options, _MEAN), "std": _floats(options, _STD)}
            return {}
    return {}


def _slot(table: Any, field: int) -> int:
    """Where a field lies in its table's bytes; 0 where it was left out."""
    offset = table.Offset(4 + 2 * field)
    return int(table.Pos + offset) if offset else 0


def _children(table: Any, field: int) -> Iterator[Any]:
    if _slot(table, field):
        offset = table.Offset(4 + 2 * field)
        start = table.Vector(offset)
        for i in range(table.VectorLen(offset)):
            yield type(table)(table.Bytes, table.Indirect(start + 4 * i))


def _follow(table: Any, field: int) -> Any:
    return type(table)(table.Bytes, table.Indirect(_slot(table, field)))


def _byte(table: Any, field: int) -> int:
    where = _slot(table, field)
    return table.Bytes[where] if where else 0


def _floats(table: Any, field: int) -> list[float]:
    offset = table.Offset(4 + 2 * field)
    count = table.VectorLen(offset) if offset else 0
    return [*struct.unpack_from(f"<{count}f", table.Bytes, table.Vector(offset))] if count else []
