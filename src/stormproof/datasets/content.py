"""What an image is, in a few bytes: size and digest of its file, or of its pixels where there is no file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormproof.core.sample import Image
from stormproof.datasets.dataset import Dataset


def content_of(dataset: Dataset, index: int, image: Image) -> str:
    """The content of an image that has just been read.

    >>> import numpy as np
    >>> content_of([], 0, np.zeros((2, 2, 3), np.uint8)).partition(":")[0]
    '12'
    """
    stored = stored_content(dataset, index)
    return _described(image.tobytes()) if stored is None else stored


def stored_content(dataset: Dataset, index: int) -> str | None:
    """The content of an image's file as it is now; None where no file is named or there."""
    source = _source(dataset, index)
    try:
        if isinstance(source, Path):
            return file_content(source)
        return _described(source.read()) if source is not None else None
    except OSError:
        return None


def file_content(path: Path) -> str:
    """The content of a file."""
    return _described(path.read_bytes())


def image_path(dataset: Dataset, index: int) -> Path | None:
    """The file of an image, where it is one."""
    source = _source(dataset, index)
    return source if isinstance(source, Path) else None


def has_files(dataset: Dataset) -> bool:
    """Whether images are files, which can be looked at without making them."""
    return len(dataset) > 0 and _source(dataset, 0) is not None


def _source(dataset: Dataset, index: int) -> Any:
    """What an image is read from: a path, or a member of an archive."""
    images = getattr(dataset, "images", None)
    if images is None:
        inner = getattr(dataset, "dataset", None)  # the one that context was attached to
        return None if inner is None else _source(inner, index)
    found = images[dataset.ids[index]] if isinstance(images, Mapping) else images[index]
    return found if isinstance(found, Path) or hasattr(found, "read") else None


def _described(content: bytes) -> str:
    return f"{len(content)}:{hashlib.blake2b(content, digest_size=8).hexdigest()}"
