"""Corrupted copies that somebody made, found by condition and image: `DIR/<condition>/<file>`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from stormproof.core.condition import Condition
from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.imagefile import IMAGE_SUFFIXES
from stormproof.datasets.content import image_path
from stormproof.datasets.dataset import Dataset
from stormproof.tools.corrupted_copies import condition_folder


def folder_of(root: Path, condition: Condition) -> Path:
    """The folder of a condition's images: as `stormproof corrupt` names it, or corruption/severity."""
    text = str(condition)
    names = [text, condition_folder(condition), quote(text, safe="@[]=,+\"' ")]
    if condition.severity is not None and not condition.params:
        pair = (condition.corruption, condition.severity)
        names += [form.format(*pair) for form in ("{}/{}", "{}/severity_{}", "{}-{}", "{}_{}")]
    for name in names:
        if (root / name).is_dir():
            return root / name
    looked = ", ".join(dict.fromkeys(names))
    raise DatasetError(root, f"has no folder of copies for {text}; looked for {looked}.")


def check_copies(root: str, conditions: Iterable[Condition]) -> None:
    """Refuse a folder of copies that lacks one of the conditions."""
    if not Path(root).is_dir():
        raise InvalidOption(f"{root} is not a folder; --copies takes one with a folder per condition.")
    for condition in conditions:
        if not condition.is_clean:
            folder_of(Path(root), condition)


def copy_of(root: Path, dataset: Dataset, index: int, condition: Condition) -> Path:
    """The copy of an image under a condition; its suffix may be another one than the original's."""
    folder, own = folder_of(root, condition), image_path(dataset, index)
    name = PurePosixPath(dataset.ids[index])
    known = [name.as_posix()] if own is None else [own.stem, own.name, name.as_posix()]
    if own is not None:
        above = getattr(dataset, "root", own.parent)
        if own.is_relative_to(above):
            known.insert(0, own.relative_to(above).with_suffix("").as_posix())
    found = _listed(folder)
    for stem in known:
        if stem in found:
            return found[stem]
    raise DatasetError(folder, f"no copy of {dataset.ids[index]!r}; looked for {', '.join(known)}.")


@lru_cache(maxsize=128)
def _listed(folder: Path) -> dict[str, Path]:
    """The images of a folder by path without suffix, by name, and by name without suffix."""
    images = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    listed: dict[str, Path] = {}
    for path in images:
        below = path.relative_to(folder)
        for key in (below.with_suffix("").as_posix(), below.as_posix(), path.name, path.stem):
            listed.setdefault(key, path)
    return listed
