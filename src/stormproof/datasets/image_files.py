"""The files behind the images of a dataset: their paths, and digests of their content."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from stormproof.core.errors import DatasetError, StormproofError, first_few
from stormproof.core.files import read_bytes
from stormproof.core.identity import blake2b
from stormproof.core.sample import Image
from stormproof.datasets.dataset import Dataset, abilities


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
    source = abilities(dataset).image_source(index)
    try:
        if source is None or (source.path is not None and not source.path.exists()):
            return None
        return size_and_digest(source.read()) + context_content(dataset, index)
    except (StormproofError, OSError):
        return None


def context_content(dataset: Dataset, index: int) -> str:
    """Size and digest of the files behind an image's context, after a +; empty if there are none."""
    files = abilities(dataset).context_files
    return "" if files is None else "+" + size_and_digest(b"".join(map(read_bytes, files(index))))


def file_content(path: Path) -> str:
    """Size and digest of a file."""
    return size_and_digest(read_bytes(path))


def image_path(dataset: Dataset, index: int) -> Path | None:
    """The file of an image; None if there is none, or if it is a member of an archive."""
    source = abilities(dataset).image_source(index)
    return None if source is None else source.path


def names_of(dataset: Dataset, index: int) -> tuple[str, str, str]:
    """What a table may call an image: its id, and its file's name, with its ending and without."""
    name, source = dataset.ids[index], abilities(dataset).image_source(index)
    path = PurePosixPath(name if source is None else source.name)
    return name, path.name, path.stem


def require_listed(dataset: Dataset, names: Iterable[str], path: Path) -> None:
    """Refuse a file that lists images which the dataset does not have."""
    strangers = [repr(name) for name in sorted({*names} - {*dataset.ids})]
    if strangers:
        fix = f"ids of this dataset look like {dataset.ids[0]!r}" if len(dataset) else "it has no images"
        raise DatasetError(path, f"lists images that {dataset.name} lacks: {first_few(strangers)}; {fix}.")


def has_files(dataset: Dataset) -> bool:
    """Whether the images are files, so that they can be digested without being rendered."""
    return len(dataset) > 0 and abilities(dataset).image_source(0) is not None


def size_and_digest(content: bytes) -> str:
    """What identifies a file, or an image without one, in the rows of a run."""
    return f"{len(content)}:{blake2b(content, digest_size=8).hexdigest()}"
