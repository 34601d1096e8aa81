"""Part files: the rows of one chunk of images, in the order of their cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # as files, not as datasets: those bring 50 MiB that every worker would keep

from stormproof.errors import StoreError
from stormproof.files import whole_file, write_json
from stormproof.store.schema import KEY, ROWS, VERSION, Cell, Row, elements, table_of

PARTS = "parts"
FAILURES = "failures"
_TAG = b"stormproof"
# A row group closes after this many rows or list elements: a rule about content, so that equal rows give
# equal files whatever the batch size and however often a run was interrupted.
_GROUP_ROWS = 512
_GROUP_ELEMENTS = 1 << 20
# Numbers of few distinct values compress best as dictionaries; coordinates as bytes of equal weight.
_DICTIONARY = ["image", "condition", "corruption", "labels.list.element"]
_SPLIT = ["boxes.list.element.list.element", "scores.list.element"]


def part_path(run: Path, chunk: int) -> Path:
    return run / PARTS / f"part-{chunk:06d}.parquet"


def failures_path(run: Path, chunk: int) -> Path:
    return run / FAILURES / f"part-{chunk:06d}.json"


def part_paths(run: Path) -> list[Path]:
    """The part files of a run, in order."""
    return sorted((run / PARTS).glob("part-*.parquet"))


class PartWriter:
    """Takes rows in the order of cells and keeps few of them in memory."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._tables: list[pa.Table] = []
        self._rows: list[Row] = []  # newer than the tables
        self._count = self._elements = 0

    def add(self, row: Row | pa.Table) -> None:
        """Append a row, new or as `held_rows` gives it."""
        if isinstance(row, Row):
            self._rows.append(row)
            self._elements += row.elements
        else:
            self._pack()
            self._tables.append(row)
            self._elements += elements(row)
        self._count += 1
        if self._count >= _GROUP_ROWS or self._elements >= _GROUP_ELEMENTS:
            self.flush()

    def flush(self) -> None:
        self._pack()
        if self._tables:
            self._writer.write_table(pa.concat_tables(self._tables).combine_chunks())
        self._tables, self._count, self._elements = [], 0, 0

    def _pack(self) -> None:
        if self._rows:
            self._tables.append(table_of(self._rows))
            self._rows = []


@contextmanager
def writing_part(path: Path, key: str) -> Iterator[PartWriter]:
    """A part file that appears whole when the block ends; `key` says which run its rows belong to."""
    schema = ROWS.with_metadata({_TAG: json.dumps({"schema": VERSION, "key": key}).encode()})
    with (
        whole_file(path) as file,
        pq.ParquetWriter(
            file, schema, compression="zstd", use_dictionary=_DICTIONARY, use_byte_stream_split=_SPLIT
        ) as writer,
    ):
        part = PartWriter(writer)
        yield part
        part.flush()


def check_part(path: Path, key: str) -> None:
    """Refuse a part of another schema or another run."""
    _check(_opened(path).schema_arrow.metadata, path, key)


def held_cells(path: Path, key: str) -> list[Cell]:
    """The cells that a part holds, in order; none if there is no such file."""
    if not path.exists():
        return []
    part = _opened(path)
    _check(part.schema_arrow.metadata, path, key)
    return _cells(part.read(columns=list(KEY)))


def held_rows(path: Path) -> Iterator[tuple[Cell, pa.Table]]:
    """The rows that a part holds, each as a table of its own, in order."""
    if not path.exists():
        return
    part = _opened(path)
    for group in range(part.num_row_groups):
        table = part.read_row_group(group).replace_schema_metadata(None)
        for at, cell in enumerate(_cells(table)):
            yield cell, table.slice(at, 1)


def write_failures(path: Path, failures: Sequence[dict[str, Any]]) -> None:
    """Record what failed in a chunk; a chunk without failures has no file."""
    if failures:
        write_json(path, failures)
    else:
        path.unlink(missing_ok=True)


def failures_of(path: Path) -> list[dict[str, Any]]:
    """What one chunk's file of failures says; nothing if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def read_failures(run: Path) -> list[dict[str, str]]:
    """Every recorded failure of a run: image, condition, kind and error."""
    files = sorted((run / FAILURES).glob("part-*.json"))
    return [failure for path in files for failure in failures_of(path)]


def _cells(table: pa.Table) -> list[Cell]:
    return list(zip(*(table[name].to_pylist() for name in KEY), strict=True))


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError(
            f"{path} is not a readable part file ({error}); delete it and run again to remake it."
        ) from error


def _check(metadata: dict[bytes, bytes] | None, path: Path, key: str) -> None:
    tag = json.loads((metadata or {}).get(_TAG, b"{}"))
    if tag.get("schema") != VERSION:
        raise StoreError(
            f"{path} has schema {tag.get('schema', 'none')}, this version reads {VERSION}; "
            "use the version of Stormproof that wrote it, or run again into a new folder."
        )
    if tag.get("key") != key:
        raise StoreError(
            f"{path} belongs to another run (key {tag.get('key')}, not {key}); move it out of the folder."
        )
