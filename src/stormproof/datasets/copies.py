"""Corrupted copies that a run reads instead of making them: finds them and checks that they fit the run.

`stormproof corrupt` and `stormproof stylize` write a manifest beside the copies. Where there is one, seed,
recipe versions and conditions must be those of the run. Files are hashed when they are read, not up front.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from sys import intern
from typing import Any
from urllib.parse import quote

from stormproof.core.condition import Condition
from stormproof.core.errors import DatasetError, InvalidOption, StormproofError, first_few
from stormproof.core.files import read_bytes, read_json
from stormproof.core.imagefile import IMAGE_SUFFIXES, MAX_BYTES
from stormproof.core.randomness import Frame
from stormproof.corruptions.chain import moves_labels, steps
from stormproof.corruptions.corruption import recipe_versions
from stormproof.datasets.dataset import Dataset, abilities, identity_of
from stormproof.datasets.image_files import image_path

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a manifest: the image it was made from, its condition and the SHA-256 of its bytes."""

    source: str
    condition: str
    sha256: bytes


@dataclass(frozen=True)
class Manifest:
    """A list of the copies below a folder, and how they were made."""

    path: Path
    seed: int
    versions: Mapping[str, int]
    files: Mapping[str, Listed]  # by path below the folder
    from_dataset: bool  # sources are then ids of the dataset's images, else paths of files
    made_by: str

    @cached_property
    def folders(self) -> Mapping[str, Mapping[str, str]]:
        """The conditions of the files below every folder, each with its first file; "." is the manifest's."""
        folders: dict[str, dict[str, str]] = {}
        for name, listed in self.files.items():
            for folder in reversed(PurePosixPath(name).parents):
                folders.setdefault(folder.as_posix(), {}).setdefault(listed.condition, name)
        return folders


def condition_folder(condition: Condition) -> str:
    """The folder that `stormproof corrupt` gives the copies of a condition."""
    return quote(str(condition), safe="@[]=,+")


def check_copies(root: str, conditions: Iterable[Condition], *, seed: int) -> str:
    """Refuse a folder of copies that lacks a condition, or whose manifest says that they are others.

    Returns a warning if there are copies without a manifest under conditions that move labels; else "".
    """
    if not Path(root).is_dir():
        raise InvalidOption(f"{root} is not a folder; --copies takes one with a folder per condition.")
    unknown = []
    for condition in conditions:
        if condition.is_clean:
            continue
        folder = _find_folder(Path(root), condition)
        manifest = _manifest_of(Path(root), folder)
        if manifest is not None:
            _check_manifest(manifest, folder, condition, seed)
        elif moves_labels(condition):
            unknown.append(str(condition))
    if not unknown:
        return ""
    return (
        f"{root} has no {MANIFEST} of 'stormproof corrupt', and {first_few(unknown)} moves labels: they are "
        f"moved as this run would with seed {seed} and the dataset's ids, and fit only copies made that way."
    )


def _check_manifest(manifest: Manifest, folder: Path, condition: Condition, seed: int) -> None:
    """Refuse copies of another seed, of another version of a recipe, or of other conditions."""
    text = str(condition)
    if manifest.seed != seed:
        raise InvalidOption(
            f"The copies in {folder} were made with seed {manifest.seed} ({manifest.path}), but the run has "
            f"seed {seed}: add --seed {manifest.seed}, or make the copies again with --seed {seed}."
        )
    conditions = manifest.folders.get(folder.relative_to(manifest.path.parent).as_posix(), {})
    if conditions.keys() != {text}:
        made = f"copies under {first_few(sorted(conditions))}" if conditions else "no files"
        raise InvalidOption(
            f"{manifest.path} lists {made} in {folder}, not {text}: give the folder that has {text}, or make "
            f"the copies with 'stormproof corrupt'."
        )
    for name, now in recipe_versions([text]).items():
        if manifest.versions.get(name) != now:
            raise InvalidOption(
                f"The copies in {folder} were made by version {manifest.versions.get(name)} of {name} "
                f"({manifest.path}), but this is version {now}: make them again with 'stormproof corrupt', "
                f"or run with stormproof {manifest.made_by}."
            )
    first = manifest.path.parent / conditions[text]  # enough to see that folders were exchanged
    _check_file(manifest, first, read_bytes(first, at_most=MAX_BYTES), text)


def copy_of(root: Path, dataset: Dataset, index: int, condition: Condition) -> Path:
    """The copy of an image under a condition, `root/<condition>/<file>`; its suffix may differ."""
    folder, own = _find_folder(root, condition), image_path(dataset, index)
    name = PurePosixPath(dataset.ids[index])
    known = [name.as_posix()] if own is None else [own.stem, own.name, name.as_posix()]
    if own is not None:
        above = abilities(dataset).root or own.parent
        if own.is_relative_to(above):
            known.insert(0, own.relative_to(above).with_suffix("").as_posix())
    images = _images(folder)
    for stem in known:
        if stem in images:
            return images[stem]
    raise DatasetError(folder, f"no copy of {dataset.ids[index]!r}; looked for {', '.join(known)}.")


def read_copy(root: Path, dataset: Dataset, index: int, condition: Condition) -> tuple[Path, bytes]:
    """The path and the bytes of a copy; refused if it is not the file that the manifest lists."""
    path = copy_of(root, dataset, index, condition)
    content = read_bytes(path, at_most=MAX_BYTES)
    manifest = _manifest_of(root, path.parent)
    if manifest is None:
        return path, content
    listed = _check_file(manifest, path, content, str(condition))
    name = dataset.ids[index] if manifest.from_dataset else identity_of(dataset, index)
    _check_labels(manifest, listed, name, path, condition)
    return path, content


def _check_file(manifest: Manifest, path: Path, content: bytes, condition: str) -> Listed:
    """The entry of a copy; refused if there is none, or one of another condition or content."""
    listed = manifest.files.get(path.relative_to(manifest.path.parent).as_posix())
    if listed is None:
        raise DatasetError(path, f"is not listed in {manifest.path}; make the copies again.")
    if listed.condition != condition:
        raise DatasetError(path, f"was made under {listed.condition} by {manifest.path}, not {condition}.")
    if hashlib.sha256(content).digest() != listed.sha256:
        raise DatasetError(
            path, f"is not the file that {manifest.path} lists; check all with 'stormproof verify "
            f"{manifest.path.parent}' and make the copies again.",
        )  # fmt: skip
    return listed


def _check_labels(
    manifest: Manifest, listed: Listed, name: str | Frame, path: Path, condition: Condition
) -> None:
    """Refuse a copy whose objects were moved by random numbers of another name than the dataset's."""
    by_name = any(step.corruption.is_random and step.moves_labels for step in steps(condition))
    if listed.source != name and by_name:
        how = "" if manifest.from_dataset else ", such as coco:FILE,images=DIR, instead of its folder"
        raise DatasetError(
            path, f"was made from {listed.source!r}, but the dataset calls the image {name!r}: {condition} "
            f"moves objects by that name, so labels would not fit. Make the copies from the dataset{how}.",
        )  # fmt: skip


def _find_folder(root: Path, condition: Condition) -> Path:
    """The folder of a condition's copies: named as `stormproof corrupt` does, or corruption/severity.

    Or the folder for which the manifest of `stormproof stylize` records this condition.
    """
    text = str(condition)
    names = [text, condition_folder(condition), quote(text, safe="@[]=,+\"' ")]
    if condition.severity is not None and not condition.params:
        pair = (condition.corruption, condition.severity)
        names += [form.format(*pair) for form in ("{}/{}", "{}/severity_{}", "{}-{}", "{}_{}")]
    for name in names:
        if (root / name).is_dir():
            return root / name
    manifest = _manifest_in(root)
    for name, conditions in manifest.folders.items() if manifest is not None else ():
        if name != "." and conditions.keys() == {text} and (root / name).is_dir():
            return root / name
        if name != "." and "/" not in name:
            names.append(name)
    looked = ", ".join(dict.fromkeys(names))
    raise DatasetError(root, f"has no folder of copies for {text}; looked for {looked}.")


def _manifest_of(root: Path, folder: Path) -> Manifest | None:
    """The manifest that lists the files of a folder: in it, or in a folder between it and `root`."""
    for place in (folder, *folder.parents):
        manifest = _manifest_in(place)
        if manifest is not None or place == root:
            return manifest
    return None


def _manifest_in(folder: Path) -> Manifest | None:
    """The manifest in a folder; None if there is none, or if it is another program's."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    status = path.stat()
    return _read_manifest(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=128)
def _read_manifest(path: Path, modified: int, size: int) -> Manifest | None:
    try:
        record = read_json(path, error=InvalidOption)
        if not isinstance(record, dict) or "stormproof" not in record:
            return None  # another program's
        order = record.get("order")
        return Manifest(
            path, _integer((record if order is None else order)["seed"]),
            {str(name): _integer(version) for name, version in record["recipe_versions"].items()},
            {str(file["path"]): _intern(file) for file in record["files"]},
            order is not None, str(record["stormproof"]),
        )  # fmt: skip
    except StormproofError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidOption(
            f"{path} is not a manifest as 'stormproof corrupt' writes it ({error!r:.80}); "
            "make the copies again."
        ) from None


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r:.40} is not a whole number")
    return value


def _intern(file: Mapping[str, Any]) -> Listed:
    """An entry; names repeat by condition and by image, and are kept once: there may be 400,000 entries."""
    return Listed(intern(file["source"]), intern(file["condition"]), bytes.fromhex(file["sha256"]))


@lru_cache(maxsize=128)
def _images(folder: Path) -> dict[str, Path]:
    """The images of a folder by path without suffix, by path, by name, and by name without suffix."""
    images = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    listed: dict[str, Path] = {}
    for path in images:
        below = path.relative_to(folder)
        for key in (below.with_suffix("").as_posix(), below.as_posix(), path.name, path.stem):
            listed.setdefault(key, path)
    return listed
