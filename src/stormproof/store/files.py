"""Files that appear whole or not at all: write beside, fsync, rename, fsync the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from stormproof.errors import OutputError

_FIX = "check that the folder exists, is writable and has space"


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write; it takes its name, durably, when the block ends without an error.

    The temporary name begins with the final one, so that `sweep` finds what a killed process left.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:12]}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"Cannot write {path}: {error.strerror or error}; {_FIX}.") from error
    finally:
        _remove(temporary)


def sweep(path: Path) -> None:
    """Remove the temporary files that killed writers of `path` left behind."""
    for stale in path.parent.glob(f".{path.name}.*.tmp"):
        _remove(stale)


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON, whole or not at all."""
    with whole_file(path) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def make_folder(path: Path) -> Path:
    """The folder, made if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot make {path}: {error.strerror or error}; {_FIX}.") from error
    return path


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a folder that went read-only must not hide the error that matters
        return


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return  # Windows cannot open a folder; its rename is durable by itself
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
