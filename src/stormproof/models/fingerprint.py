"""What makes two models the same: the bytes of their files and the settings they are read with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from stormproof.core.errors import ModelError

# Raised whenever a decoder or a way of resizing changes its results: then every fingerprint changes.
GENERATION = 3


def fingerprint(files: Iterable[Path], settings: Mapping[str, object]) -> str:
    """32 hexadecimal digits over the contents of files (or whole folders) and JSON-able settings.

    >>> fingerprint([], {"score": 0.1}) == fingerprint([], {"score": 0.2})
    False
    """
    total = hashlib.blake2b(digest_size=16)
    total.update(json.dumps([GENERATION, settings], sort_keys=True, default=str).encode())
    for path in files:
        for file in _files(path):
            total.update(file.name.encode() + b"\0" + file_digest(file))
    return total.hexdigest()


def file_digest(path: Path) -> bytes:
    """A hash of a file's bytes; a file that has not changed is read once per process."""
    try:
        status = path.stat()
        return _digest(str(path.resolve()), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}; check the path.") from None


@lru_cache(maxsize=4096)
def _digest(path: str, modified: int, size: int) -> bytes:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(entry for entry in path.rglob("*") if entry.is_file())
    return [path]
