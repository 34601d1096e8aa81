"""Part files: the rows of one chunk of images, sorted by image and condition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stormproof.errors import StoreError
from stormproof.store.files import whole_file, write_json
from stormproof.store.schema import KEY, ROWS, VERSION

PARTS = "parts"
FAILURES = "failures"
_TAG = b"stormproof"
# A row group closes at the first image boundary past this many rows and list elements: a rule about
# content, so that equal rows give equal files whatever the batch size.
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
    """Takes the rows of one image after the other and keeps few of them in memory."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._kept: list[pa.Table] = []
        self._rows = self._elements = 0
        self.written = 0

    def add_image(self, rows: pa.Table) -> None:
        """Append all rows of one image."""
        ordered = rows.sort_by([(name, "ascending") for name in KEY])
        self._kept.append(ordered)
        self._rows += ordered.num_rows
        self._elements += sum(_elements(ordered[name]) for name in ("boxes", "semantic_runs"))
        self.written += ordered.num_rows
        if self._rows >= _GROUP_ROWS or self._elements >= _GROUP_ELEMENTS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.concat_tables(self._kept).combine_chunks())
        self._kept, self._rows, self._elements = [], 0, 0


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


def held_cells(path: Path, key: str) -> set[tuple[int, str]]:
    """The (image index, condition) pairs that a part holds; none if there is no such file."""
    if not path.exists():
        return set()
    check_part(path, key)
    table = pq.read_table(path, columns=list(KEY), partitioning=None)
    return set(zip(table["index"].to_pylist(), table["condition"].to_pylist(), strict=True))


def image_rows(path: Path, index: int) -> pa.Table:
    """The rows of one image that a part holds already."""
    if not path.exists():
        return ROWS.empty_table()
    found = pq.read_table(path, filters=[("index", "=", index)], partitioning=None)
    return found.replace_schema_metadata(None)


def write_failures(path: Path, failures: Sequence[dict[str, Any]]) -> None:
    """Record what failed in a chunk; a chunk without failures has no file."""
    if failures:
        write_json(path, failures)
    else:
        path.unlink(missing_ok=True)


def read_failures(run: Path) -> list[dict[str, str]]:
    """Every recorded failure of a run: image, condition, kind and error."""
    files = sorted((run / FAILURES).glob("part-*.json"))
    return [failure for path in files for failure in json.loads(path.read_text(encoding="utf-8"))]


def _elements(column: pa.ChunkedArray) -> int:
    return sum(len(chunk.flatten()) for chunk in column.chunks)


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
