"""The manifest of a folder of copies: every file with the SHA-256 of its bytes and of its pixels, so that two
people can prove that they tested the same images."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormproof import __version__
from stormproof.core.errors import InvalidOption
from stormproof.core.files import is_file, read_json, sha256, write_text
from stormproof.corruptions.corruption import recipe_versions
from stormproof.datasets.copies import MANIFEST


@dataclass(frozen=True, slots=True)
class Copy:
    """One output file, as listed in the manifest."""

    path: str
    source: str
    condition: str
    sha256: str
    pixels_sha256: str


def write_manifest(
    out: Path,
    made_by: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    failed: Iterable[tuple[str, str]],
) -> None:
    """List what was made, and by which settings; of an image that failed, its name and the reason."""
    record = {
        "stormproof": __version__,
        **made_by,
        "recipe_versions": recipe_versions(file["condition"] for file in files),
        "files": files,
        "failed": [{"source": source, "reason": reason} for source, reason in failed],
    }
    # In ASCII: names may contain bytes that UTF-8 cannot encode.
    write_text(out / MANIFEST, json.dumps(record, indent=1) + "\n")


def read_manifest(destination: Path) -> list[Copy]:
    """Read the files that a manifest lists."""
    path = destination / MANIFEST
    if not path.exists():
        raise InvalidOption(f"{path} does not exist; 'stormproof corrupt' writes it.")
    try:
        record = read_json(path, error=InvalidOption)
        listed = [Copy(*(entry[name] for name in Copy.__slots__)) for entry in record["files"]]
        for copy in listed:
            for name in Copy.__slots__:
                if not isinstance(getattr(copy, name), str) or "\0" in getattr(copy, name):
                    raise ValueError(f"{name} is {getattr(copy, name)!r:.60}")
        return listed
    except InvalidOption:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidOption(f"{path} is not a manifest of 'stormproof corrupt': {error}.") from error


def check(destination: Path, copy: Copy) -> str | None:
    """The problem with one output file; None if there is none."""
    path = destination / copy.path
    if Path(copy.path).is_absolute() or ".." in Path(copy.path).parts:
        return f"{copy.path}: points outside the folder"
    if not is_file(path):
        return f"{copy.path}: missing"
    digest = sha256(path)
    if digest == copy.sha256:
        return None
    return f"{copy.path}: changed (SHA-256 {digest[:12]}…, not {copy.sha256[:12]}…)"
