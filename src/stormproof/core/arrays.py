"""Reads NumPy files without trusting them: a header may state any shape, and pickled objects run code."""

from __future__ import annotations

import math
import zipfile
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError
from stormproof.core.files import LARGEST, Error, file_problem, opened_file

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(path: Path, *, error: Error = DatasetError) -> npt.NDArray[Any]:
    """Read the array in a .npy file; arrays of Python objects are refused."""
    with opened_file(path, at_most=LARGEST, error=error) as file:
        try:
            return _array(file, path.stat().st_size)
        except Exception as cause:  # the readers of headers and archives fail in many ways
            raise file_problem(error, path, f"cannot be read as NPY: {cause}.") from None


def read_npz(path: Path, *names: str, error: Error = DatasetError) -> tuple[npt.NDArray[Any], ...]:
    """Read the named arrays in an .npz file."""
    with opened_file(path, at_most=LARGEST, error=error) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return tuple(_member(archive, f"{name}.npy") for name in names)
        except Exception as cause:  # the readers of headers and archives fail in many ways
            raise file_problem(error, path, f"cannot be read as NPZ: {cause}.") from None


def _member(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    size = archive.getinfo(name).file_size
    if size > LARGEST:
        raise ValueError(f"{name} has {size:,} bytes; at most {LARGEST:,} are read")
    with archive.open(name) as packed:
        return _array(BytesIO(packed.read(size)), size)


def _array(file: IO[bytes], size: int) -> npt.NDArray[Any]:
    """Read an array from a file of `size` bytes, which must match the shape and type in its header."""
    version = np.lib.format.read_magic(file)
    if version not in _READERS:
        raise ValueError(f"unknown format version {version[0]}.{version[1]}")
    shape, _, dtype = _READERS[version](file)
    if dtype.hasobject or dtype.names is not None:
        raise ValueError(f"it holds {dtype}, not numbers")
    stated, found = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or stated != found:
        raise ValueError(f"its header states {shape} of {dtype}, but {found:,} bytes follow")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
