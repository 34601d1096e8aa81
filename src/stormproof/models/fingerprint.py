"""The identity of a model: the bytes of its files, its settings, and the code of a function."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.files import opened_file

# Increase it whenever a decoder or a way of resizing changes its results: every fingerprint changes with it.
GENERATION = 3
_DEPTH = 4  # levels of called functions and nested containers that the identity of a function covers


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
    """A hash of a file's bytes; an unchanged file is read once per process."""
    try:
        status = path.stat()
        return _digest(path.resolve(), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}; check the path.") from None


@lru_cache(maxsize=4096)
def _digest(path: Path, modified: int, size: int) -> bytes:
    with opened_file(path, error=ModelError) as file:
        return hashlib.file_digest(file, "blake2b").digest()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(entry for entry in path.rglob("*") if entry.is_file())
    return [path]


def code_identity(value: Any, depth: int = _DEPTH) -> Any:
    """A function's code and the constants, defaults and globals it refers to, as plain data.

    Nothing is run. State inside other objects is not seen.
    """
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, hashlib.blake2b(value.tobytes(), digest_size=16).hexdigest()]
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, list | tuple | set | frozenset):
        entries = [code_identity(entry, depth - 1) for entry in value]
        return sorted(entries, key=repr) if isinstance(value, set | frozenset) else entries
    if isinstance(value, Mapping):
        return [[repr(key), code_identity(entry, depth - 1)] for key, entry in value.items()]
    if isinstance(value, partial):
        return [code_identity(part, depth - 1) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, MethodType):
        return [code_identity(value.__func__, depth - 1), type(value.__self__).__qualname__]
    if isinstance(value, FunctionType):
        return _function_identity(value, depth)
    if isinstance(value, CodeType):
        constants = [code_identity(constant, depth) for constant in value.co_consts]
        return [value.co_code.hex(), constants, value.co_names]
    call = vars(type(value)).get("__call__")
    own = code_identity(call, depth - 1) if isinstance(call, FunctionType) else None
    return [type(value).__qualname__, own]


def _function_identity(function: FunctionType, depth: int) -> Any:
    cells = [_content(cell) for cell in function.__closure__ or ()]
    names = [name for name in function.__code__.co_names if name in function.__globals__]
    used = {name: function.__globals__[name] for name in names}
    return [
        code_identity(function.__code__, depth),
        [code_identity(part, depth - 1) for part in (function.__defaults__, function.__kwdefaults__, cells)],
        code_identity(used, depth - 1),
    ]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
