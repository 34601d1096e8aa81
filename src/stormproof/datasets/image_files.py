"""The files behind the images of a dataset: their paths, digests of their content, corrupted copies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from stormproof.core.condition import Condition
from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.files import read_bytes
from stormproof.core.identity import blake2b
from stormproof.core.imagefile import IMAGE_SUFFIXES
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
    return _size_and_digest(image.tobytes()) + context_content(dataset, index) if stored is None else stored


def stored_content(dataset: Dataset, index: int) -> str | None:
    """Size and digest of an image's file as it is now; None if it has no file or the file is gone."""
    source = abilities(dataset).source(index)
    try:
        if source is None or (source.path is not None and not source.path.exists()):
            return None
        return _size_and_digest(source.read()) + context_content(dataset, index)
    except (DatasetError, OSError):
        return None


def context_content(dataset: Dataset, index: int) -> str:
    """Size and digest of the files behind an image's context, after a +; empty if there are none."""
    files = abilities(dataset).context_files
    return "" if files is None else "+" + _size_and_digest(b"".join(map(read_bytes, files(index))))


def file_content(path: Path) -> str:
    """Size and digest of a file."""
    return _size_and_digest(read_bytes(path))


def image_path(dataset: Dataset, index: int) -> Path | None:
    """The file of an image; None if there is none, or if it is a member of an archive."""
    source = abilities(dataset).source(index)
    return None if source is None else source.path


def has_files(dataset: Dataset) -> bool:
    """Whether the images are files, so that they can be digested without being rendered."""
    return len(dataset) > 0 and abilities(dataset).source(0) is not None


def _size_and_digest(content: bytes) -> str:
    return f"{len(content)}:{blake2b(content, digest_size=8).hexdigest()}"


def condition_folder(condition: Condition) -> str:
    """The folder that `stormproof corrupt` gives the copies of a condition."""
    return quote(str(condition), safe="@[]=,+")


def check_copies(root: str, conditions: Iterable[Condition]) -> None:
    """Refuse a folder of copies that lacks one of the conditions."""
    if not Path(root).is_dir():
        raise InvalidOption(f"{root} is not a folder; --copies takes one with a folder per condition.")
    for condition in conditions:
        if not condition.is_clean:
            _find_folder(Path(root), condition)


def copy_of(root: Path, dataset: Dataset, index: int, condition: Condition) -> Path:
    """The copy of an image under a condition, `root/<condition>/<file>`; its suffix may differ."""
    folder, own = _find_folder(root, condition), image_path(dataset, index)
    name = PurePosixPath(dataset.ids[index])
    known = [name.as_posix()] if own is None else [own.stem, own.name, name.as_posix()]
    if own is not None:
        above = abilities(dataset).root or own.parent
        if own.is_relative_to(above):
            known.insert(0, own.relative_to(above).with_suffix("").as_posix())
    found = _listed(folder)
    for stem in known:
        if stem in found:
            return found[stem]
    raise DatasetError(folder, f"no copy of {dataset.ids[index]!r}; looked for {', '.join(known)}.")


def _find_folder(root: Path, condition: Condition) -> Path:
    """The folder of a condition's copies: named as `stormproof corrupt` does, or corruption/severity.

    Or the folder for which the manifest of `stormproof stylize` records this condition.
    """
    text = str(condition)
    names = [text, condition_folder(condition), quote(text, safe="@[]=,+\"' ")]
    if condition.severity is not None and not condition.params:
        pair = (condition.corruption, condition.severity)
        names += [form.format(*pair) for form in ("{}/{}", "{}/severity_{}", "{}-{}", "{}_{}")]
    names += [folder for folder, made in _recorded(root).items() if folder and made == {text}]
    for name in names:
        if (root / name).is_dir():
            return root / name
    looked = ", ".join(dict.fromkeys(names))
    raise DatasetError(root, f"has no folder of copies for {text}; looked for {looked}.")


@lru_cache(maxsize=8)
def _recorded(root: Path) -> dict[str, set[str]]:
    """The conditions of each folder, as the manifest of a derived dataset records them; else empty."""
    path, found = root / "manifest.json", dict[str, set[str]]()
    if path.is_file():
        try:
            for file in json.loads(read_bytes(path))["files"]:
                found.setdefault(file["folder"], set()).add(file["condition"])
        except (ValueError, KeyError, TypeError):  # another program's manifest
            return {}
    return found


@lru_cache(maxsize=128)
def _listed(folder: Path) -> dict[str, Path]:
    """The images of a folder by path without suffix, by path, by name, and by name without suffix."""
    images = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    listed: dict[str, Path] = {}
    for path in images:
        below = path.relative_to(folder)
        for key in (below.with_suffix("").as_posix(), below.as_posix(), path.name, path.stem):
            listed.setdefault(key, path)
    return listed
