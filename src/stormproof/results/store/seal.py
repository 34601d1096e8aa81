"""Seals: a file contains a digest of itself, so that a single flipped bit is detected.

In a JSON document it is one of the keys. In a Parquet file it follows the footer's message and counts as part
of it, which every reader skips. Since the seal is inside the file, a kill never leaves a part without one.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from stormproof.core.errors import StoreError
from stormproof.core.files import open_regular, read_json, write_json
from stormproof.core.identity import blake2b, sorted_compact_json

DIGEST = "digest"  # the key of a JSON document's own digest
_MARK = b"SEAL"
_DIGEST = 16  # bytes
_SEAL = len(_MARK) + _DIGEST
_END = 8  # bytes: the footer's length, and Parquet's own mark


def seal(file: IO[bytes]) -> None:
    """Add the seal to a finished Parquet file, open for reading and writing."""
    size = file.seek(0, os.SEEK_END)
    file.seek(size - _END)
    length, mark = int.from_bytes(file.read(4), "little"), file.read(4)
    end = (length + _SEAL).to_bytes(4, "little") + mark
    digest = _digest(file, size - _END, end)
    file.seek(size - _END)
    file.write(_MARK + digest + end)


def is_sealed(path: Path) -> bool:
    """Whether a file has a seal that fits its content. An unchanged file is read once."""
    status = path.stat()
    # The time of change as well, since the time of modification can be reset.
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return _state(str(path.absolute()), status.st_ino, times, status.st_size)


@lru_cache(maxsize=1 << 16)
def _state(path: str, inode: int, times: tuple[int, int], size: int) -> bool:
    if size < _SEAL + _END:
        return False
    with open_regular(Path(path), error=StoreError) as file:
        file.seek(size - _END - _SEAL)
        held, end = file.read(_SEAL), file.read(_END)
        if not held.startswith(_MARK):
            return False
        return held[len(_MARK) :] == _digest(file, size - _END - _SEAL, end)


def _digest(file: IO[bytes], size: int, end: bytes) -> bytes:
    """A hash of a file's first `size` bytes and of those after the seal."""
    total = blake2b(end, digest_size=_DIGEST)
    file.seek(0)
    while size > 0 and (block := file.read(min(size, 1 << 20))):
        total.update(block)
        size -= len(block)
    return total.digest()


def json_digest(content: Any) -> str:
    """A digest of the content of a JSON document, independent of spaces and the order of keys.

    >>> json_digest({"a": 1, "b": [2]}) == json_digest({"b": [2], "a": 1})
    True
    """
    text = sorted_compact_json(content)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def with_digest(content: dict[str, Any]) -> dict[str, Any]:
    """A JSON document with a digest of the rest of its content."""
    return {**content, DIGEST: json_digest(content)}


def without_digest(content: Any) -> dict[str, Any] | None:
    """The document without its digest; None if it was changed, or never had a digest.

    >>> without_digest(with_digest({"AP": 0.5}))
    {'AP': 0.5}
    >>> without_digest({**with_digest({"AP": 0.5}), "AP": 0.6}) is None
    True
    """
    if not isinstance(content, dict) or DIGEST not in content:
        return None
    rest = {key: value for key, value in content.items() if key != DIGEST}
    return rest if content[DIGEST] == json_digest(rest) else None


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON document with its digest."""
    write_json(path, with_digest(content))


def read_sealed(path: Path, again: str) -> dict[str, Any]:
    """The document that `write_sealed` wrote; a changed one is an error.

    `again` is the command that recreates it, for the error message.
    """
    try:
        content = without_digest(read_json(path, error=StoreError))
    except StoreError as error:
        raise StoreError(f"{error} Make it again with: {again}") from error
    if content is None:
        raise StoreError(f"{path} is damaged: it is not what was written. Make it again with: {again}")
    return content
