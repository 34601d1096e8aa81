"""The files behind the images of a dataset: their paths, and digests of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormproof.core.errors import DatasetError
from stormproof.core.files import read_bytes
from stormproof.core.sample import Image
from stormproof.datasets.dataset import Dataset


def content_of(dataset: Dataset, index: int, image: Image) -> str:
    """Size and digest of an image that has just been read: of its file, or of its pixels if it has none.

    Where depth or other context comes from files, their size and digest follow after a +.

    >>> import numpy as np
    >>> content_of([], 0, np.zeros((2, 2, 3), np.uint8)).partition(":")[0]
    '12'
    """
    stored = stored_content(dataset, index)
    return size_and_digest(image.tobytes()) + context_content(dataset, index) if stored is None else stored


def stored_content(dataset: Dataset, index: int) -> str | None:
    """Size and digest of an image's file as it is now; None if it has no file or the file is gone."""
    source = _source(dataset, index)
    try:
        if source is None or (isinstance(source, Path) and not source.exists()):
            return None
        own = file_content(source) if isinstance(source, Path) else size_and_digest(source.read())
        return own + context_content(dataset, index)
    except (DatasetError, OSError):
        return None


def context_content(dataset: Dataset, index: int) -> str:
    """Size and digest of the files behind an image's context, after a +; empty if there are none."""
    files = getattr(dataset, "context_files", None)
    return "" if files is None else "+" + size_and_digest(b"".join(map(read_bytes, files(index))))


def file_content(path: Path) -> str:
    """Size and digest of a file."""
    return size_and_digest(read_bytes(path))


def image_path(dataset: Dataset, index: int) -> Path | None:
    """The file of an image; None if there is none, or if it is a member of an archive."""
    source = _source(dataset, index)
    return source if isinstance(source, Path) else None


def has_files(dataset: Dataset) -> bool:
    """Whether the images are files, so that they can be digested without being rendered."""
    return len(dataset) > 0 and _source(dataset, 0) is not None


def _source(dataset: Dataset, index: int) -> Any:
    """The source of an image: a path, or a member of an archive."""
    images = getattr(dataset, "images", None)
    if images is None:
        return None
    found = images[dataset.ids[index]] if isinstance(images, Mapping) else images[index]
    return found if isinstance(found, Path) or hasattr(found, "read") else None


def size_and_digest(content: bytes) -> str:
    """What identifies a file, or an image without one, in the rows of a run."""
    return f"{len(content)}:{hashlib.blake2b(content, digest_size=8).hexdigest()}"
