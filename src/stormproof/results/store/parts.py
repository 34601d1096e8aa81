"""Part files: the rows of one chunk of images, in the order of their cells."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq  # as files, not as datasets: those bring 50 MiB that every worker would keep

from stormproof.core.errors import StoreError
from stormproof.core.files import whole_file
from stormproof.core.identity import to_json
from stormproof.core.sample import Ints
from stormproof.results.store.schema import (
    KEY,
    LATER,
    ROWS,
    VERSION,
    Cell,
    Row,
    RowBlock,
    arrow_type,
    columns_of,
    elements,
    table_of,
)
from stormproof.results.store.seal import is_sealed, read_sealed, seal, write_sealed
from stormproof.results.store.values import ANY, Classes, problem_of

PARTS = "parts"
FAILURES = "failures"
SETTINGS = "run.yaml"
_TAG = b"stormproof"
# A row group closes after this many rows or list elements: a rule about content, so that equal rows give
# equal files whatever the batch size and however often a run was interrupted.
_GROUP_ROWS = 512
_GROUP_ELEMENTS = 1 << 20
# Numbers of few distinct values compress best as dictionaries; coordinates as bytes of equal weight.
_DICTIONARY = ["image", "condition", "corruption", "labels.list.element", "content"]
_FAILURE = {"index", "image", "condition", "kind", "error"}
_SPLIT = ["boxes.list.element.list.element", "scores.list.element"]


def part_path(run: Path, chunk: int) -> Path:
    return run / PARTS / f"part-{chunk:06d}.parquet"


def failures_path(run: Path, chunk: int) -> Path:
    return run / FAILURES / f"part-{chunk:06d}.json"


def part_paths(run: Path) -> list[Path]:
    """The part files of a run, in order."""
    return sorted((run / PARTS).glob("part-*.parquet"))


class PartWriter:
    """Takes rows in the order of cells and writes them in groups, in a thread beside the caller.

    The columns of a file follow from its rows. Should a later group of rows have a further one, what has been
    written is written again with it: a file does not depend on which of its rows came first.
    """

    def __init__(self, file: IO[bytes], key: str, thread: Executor) -> None:
        self._file, self._key, self._thread = file, key, thread
        self._writer: pq.ParquetWriter | None = None
        self._further: list[pa.Field] = []
        self._rows: list[Row | RowBlock | pa.Table] = []
        self._count = self._elements = 0
        self._writing: list[Future[None]] = []

    def add(self, row: Row | pa.Table) -> None:
        """Append a row, new or as `held_rows` gives it."""
        self._append(row, 1, row.elements if isinstance(row, Row) else elements(row))

    def add_block(self, block: RowBlock) -> None:
        """Append rows; groups close where they would if rows came one by one."""
        counts, start = block.boxes.counts, 0
        while start < len(block):
            filled = np.searchsorted(np.cumsum(counts[start:]), _GROUP_ELEMENTS - self._elements)
            stop = min(start + min(_GROUP_ROWS - self._count, int(filled) + 1), len(block))
            self._append(block.part(start, stop), stop - start, int(counts[start:stop].sum()))
            start = stop

    def _append(self, rows: Row | RowBlock | pa.Table, count: int, held: int) -> None:
        self._rows.append(rows)
        self._count, self._elements = self._count + count, self._elements + held
        if self._count >= _GROUP_ROWS or self._elements >= _GROUP_ELEMENTS:
            self.flush()

    def flush(self) -> None:
        large = self._elements >= _GROUP_ELEMENTS
        if self._rows:
            self._writing.append(self._thread.submit(self._write_group, self._rows))
        self._rows, self._count, self._elements = [], 0, 0
        if large:  # no others are made until these are written
            self._wait()

    def close(self) -> None:
        self.flush()
        self._wait()
        if self._writer is None:  # no row at all
            self._open()
        assert self._writer is not None
        self._writer.close()

    def _wait(self) -> None:
        """Wait for what is being written; an error is raised here."""
        while self._writing:
            self._writing.pop(0).result()

    def _write_group(self, rows: list[Row | RowBlock | pa.Table]) -> None:
        tables: list[pa.Table] = []
        for new, some in groupby(rows, key=lambda row: isinstance(row, Row)):
            if new:
                tables.append(table_of([*some]))  # type: ignore[list-item]
            else:
                tables += (table_of(one) if isinstance(one, RowBlock) else one for one in some)
        known = {field.name: field for table in tables for field in table.schema}
        self._write([pa.concat_tables(tables, promote_options="default").combine_chunks()], known)

    def _write(self, tables: list[pa.Table], known: dict[str, pa.Field]) -> None:
        """Write groups of rows; `known` are all columns that they have."""
        new = [field for name, field in known.items() if name not in (*ROWS.names, *self._names)]
        if new:
            if self._writer is not None:
                self._writer.close()
                written = pq.ParquetFile(self._file)
                tables = [*(written.read_row_group(k) for k in range(written.num_row_groups)), *tables]
                self._file.seek(0)
                self._file.truncate()
                self._writer = None
            self._further = sorted([*self._further, *new], key=lambda field: str(field.name))
        if self._writer is None:
            self._open()
        assert self._writer is not None
        for table in tables:
            self._writer.write_table(_complete(table, self._further))

    @property
    def _names(self) -> list[str]:
        return [field.name for field in self._further]

    def _open(self) -> None:
        tag: dict[str, Any] = {"schema": VERSION, "key": self._key}
        if self._further:
            tag["columns"] = self._names
        schema = pa.schema([*ROWS, *self._further], {_TAG: to_json(tag).encode()})
        self._writer = pq.ParquetWriter(
            self._file, schema, compression="zstd", use_dictionary=_DICTIONARY, use_byte_stream_split=_SPLIT,
            write_page_checksum=True,
        )  # fmt: skip


@contextmanager
def writing_part(path: Path, key: str) -> Iterator[PartWriter]:
    """A part file that appears whole when the block ends; `key` says which run its rows belong to."""
    with whole_file(path) as file, ThreadPoolExecutor(1) as thread:
        part = PartWriter(file, key, thread)
        yield part
        part.close()
        seal(file)


def held_cells(path: Path, key: str) -> list[Cell]:
    """The cells that a part holds, in order; none if there is no such file."""
    return _cells(read_part(path, key, KEY)) if path.exists() else []


def held_contents(path: Path, key: str) -> dict[Cell, str]:
    """The digest of the image or copy that was read for each cell; none for precomputed predictions."""
    if not path.exists():
        return {}
    table = read_part(path, key, (*KEY, "content"))
    both = zip(_cells(table), table["content"].to_pylist(), strict=True)
    return {cell: content for cell, content in both if content is not None}


def encode_strings(column: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """The different strings of a column, and the place of each row's string among them."""
    words = column.combine_chunks().dictionary_encode()
    return words.dictionary.to_pylist(), np.asarray(words.indices).astype(np.int64)


def held_rows(path: Path, key: str) -> Iterator[tuple[Cell, pa.Table]]:
    """The rows that a part holds, each as a table of its own, in order."""
    if not path.exists():
        return
    part = open_part(path, key)
    for group in range(part.num_row_groups):
        with _reading(path):
            table = _select(part.read_row_group(group), [*ROWS.names, *further_columns(part.schema_arrow)])
        _require_values(table, path)
        for at, cell in enumerate(_cells(table)):
            yield cell, table.slice(at, 1)


def rows_in(path: Path) -> int:
    """How many rows a part holds, of whatever run."""
    with _reading(path):
        return int(pq.read_metadata(path).num_rows)


def read_part(path: Path, key: str, columns: Sequence[str], classes: Classes = ANY) -> pa.Table:
    """Columns of a part: its seal, its schema and every value in them are checked."""
    part = open_part(path, key)
    with _reading(path):
        there = part.schema_arrow.names
        held = [name for name in columns if name in there]
        table = _select(part.read(columns=held), columns)
    _require_values(table, path, classes)
    return table


def _require_values(table: pa.Table, path: Path, classes: Classes = ANY) -> None:
    problem = problem_of(table, classes)
    if problem:
        raise DamagedPart(path, problem)


def write_failures(path: Path, failures: Sequence[dict[str, Any]], key: str | None = None) -> None:
    """Record what failed in a chunk of the run of that key, sealed; without failures there is no file."""
    if failures:
        write_sealed(path, {FAILURES: list(failures)} | ({} if key is None else {"key": key}))
    else:
        path.unlink(missing_ok=True)


def failures_of(path: Path, key: str | None = None) -> list[dict[str, Any]]:
    """The failures of one chunk; none if it has no such file. One of a run of another key is refused."""
    if not path.exists():
        return []
    again = _recreate_command(path)
    content = read_sealed(path, again)
    if key is not None and content.get("key", key) != key:  # earlier versions wrote none
        raise StoreError(f"{path} belongs to another run. Make it again with: {again}")
    rows = content.get(FAILURES)
    if not isinstance(rows, list) or not all(map(_is_failure, rows)):
        raise StoreError(f"{path} is damaged: it does not list failures. Make it again with: {again}")
    return rows


def _is_failure(row: Any) -> bool:
    """Whether a row says what failed: an image's place, and the rest in words."""
    if not isinstance(row, dict) or not row.keys() >= _FAILURE:
        return False
    place, words = row["index"], (row[name] for name in _FAILURE - {"index"})
    return type(place) is int and place >= 0 and all(isinstance(word, str) for word in words)


def read_failures(run: Path, key: str | None = None) -> list[dict[str, Any]]:
    """Every recorded failure of a run: image, condition, kind and error."""
    files = sorted((run / FAILURES).glob("part-*.json"))
    return [failure for path in files for failure in failures_of(path, key)]


def _cells(table: pa.Table) -> list[Cell]:
    return list(zip(*(table[name].to_pylist() for name in KEY), strict=True))


def _recreate_command(path: Path) -> str:
    """The command that makes one file of a run again."""
    return f"rm {shlex.quote(str(path))} && {resume_command(path.parent.parent)}"


def resume_command(run: Path) -> str:
    """The command that runs what a run folder lacks."""
    return shlex.join(["stormproof", "run", "--config", str(run / SETTINGS)])


class DamagedPart(StoreError):
    """A damaged part file; the message says how to make just this part again."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} is damaged: {what}. Make this part again with: {_recreate_command(path)}")
        self.path, self.what = path, what

    def __reduce__(self) -> tuple[type[DamagedPart], tuple[Path, str]]:
        return type(self), (self.path, self.what)


def open_part(path: Path, key: str) -> pq.ParquetFile:
    """Open a part; one that is damaged, of another schema or of another run is refused."""
    with _reading(path):
        if not is_sealed(path):
            raise DamagedPart(path, "its content does not fit its seal")
        part = pq.ParquetFile(path, page_checksum_verification=True)
        schema = part.schema_arrow
    tag = _check_tag(schema.metadata, path, key)
    lacking, further = {name for name in LATER if name not in schema.names}, further_columns(schema)
    expected = [*(f for f in ROWS if f.name not in lacking), *(schema.field(name) for name in further)]
    unnamed = further != tag.get("columns", []) or not all(_is_list(schema.field(n).type) for n in further)
    if unnamed or not schema.remove_metadata().equals(pa.schema(expected)):
        raise DamagedPart(path, f"its columns are not those of a part ({_wrong_column(schema)})")
    return part


def further_columns(schema: pa.Schema) -> list[str]:
    """The columns of forms that are not among those of every part."""
    return [name for name in schema.names if name not in ROWS.names]


def read_further_columns(path: Path) -> list[str]:
    """The further columns of a part file."""
    with _reading(path):
        return further_columns(pq.read_schema(path))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and not pa.types.is_string(kind.value_type))


def _complete(table: pa.Table, further: Sequence[pa.Field]) -> pa.Table:
    """The table with further columns in their order, null where it lacks one."""
    for field in further:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table.select([*ROWS.names, *(field.name for field in further)]) if further else table


def _wrong_column(schema: pa.Schema) -> str:
    """The first column that is wrong, in words."""
    for field in ROWS:
        if schema.get_field_index(field.name) < 0:
            return f"{field.name} is missing, or there twice"
        if not schema.field(field.name).equals(field):
            return f"{field.name} is {schema.field(field.name).type}, not {field.type}"
    return "there are others, or their order is not the same"


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn Arrow's errors about a damaged file into ours."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())[:200]
        raise DamagedPart(path, f"it cannot be read ({words})") from error


def _select(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The columns, in order, without the file's metadata; later and further columns that a part lacks are
    null."""
    further = [name for name in columns if name not in ROWS.names]
    kinds = {column.name: arrow_type(column) for column in columns_of(further)}
    kinds |= {name: table.schema.field(name).type for name in further if name in table.column_names}
    kinds |= {name: ROWS.field(name).type for name in LATER}
    for name, kind in kinds.items():
        if name in columns and name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table), kind))
    try:
        fields = [pa.field(name, kinds[name]) if name in further else ROWS.field(name) for name in columns]
        return table.select(list(columns)).cast(pa.schema(fields))
    except (KeyError, ValueError) as error:  # Arrow's own errors are ValueErrors
        raise pa.ArrowInvalid(f"its columns are not those of a part: {error}") from error


def _check_tag(metadata: dict[bytes, bytes] | None, path: Path, key: str) -> dict[str, Any]:
    try:
        tag = json.loads((metadata or {}).get(_TAG, b"{}"))
        tag.get("schema")
    except (ValueError, AttributeError):
        raise DamagedPart(path, "its tag cannot be read") from None
    if tag.get("schema") != VERSION:
        raise StoreError(
            f"{path} has schema {tag.get('schema', 'none')}, this version reads {VERSION}; "
            "use the version of Stormproof that wrote it, or run again into a new folder."
        )
    if tag.get("key") != key:
        raise StoreError(
            f"{path} belongs to another run (key {tag.get('key')}, not {key}); move it out of the folder."
        )
    return dict(tag)
