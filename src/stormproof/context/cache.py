"""A folder of depth maps, one file a sample, each made again only when what it was made from changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.context.depthmaps import Map, stem_of
from stormproof.context.estimate import Estimator
from stormproof.context.priors import Priors
from stormproof.errors import OutputError
from stormproof.files import make_folder, whole_file
from stormproof.randomness import digest
from stormproof.sample import Sample

JOURNAL = "keys.jsonl"


class DepthFolder:
    """Depth maps in metres as NPY files, and a journal of what each was made from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)
        self._keys = self._read_journal()

    def path(self, sample_id: str) -> Path:
        return self.folder / f"{stem_of(sample_id)}.npy"

    def holds(self, sample_id: str, key: str) -> bool:
        """Whether the sample's map is there and was made from the same things."""
        return self._keys.get(sample_id) == key and self.path(sample_id).is_file()

    def write(self, sample_id: str, key: str, depth: Map) -> None:
        """Put a map in its place; it appears whole or not at all."""
        path = self.path(sample_id)
        with whole_file(path, durable=False) as file:
            np.save(file, depth.astype(np.float32, copy=False))
        try:
            with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write(json.dumps({"id": sample_id, "key": key}) + "\n")
        except OSError as error:
            raise OutputError(
                f"Cannot write {self.folder / JOURNAL}: {error.strerror}; check the folder and its space."
            ) from None
        self._keys[sample_id] = key

    def _read_journal(self) -> dict[str, str]:
        keys: dict[str, str] = {}
        path = self.folder / JOURNAL
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            try:
                entry = json.loads(line)
                keys[entry["id"]] = entry["key"]
            except (ValueError, KeyError, TypeError):
                continue  # a line cut short by a crash: its map is made again
        return keys


def key_of(sample: Sample, estimator: Estimator, priors: Priors, semantic_classes: Sequence[str] = ()) -> str:
    """A hash of everything a sample's depth is made from: pixels, context, method and priors."""
    context = sample.context
    arrays: list[npt.NDArray[Any] | None] = [sample.image, context.right, context.depth]
    if any(region.semantic_class for region in priors.regions) and sample.truth.semantic is not None:
        arrays.append(sample.truth.semantic.labels)
    parts = [
        estimator.identity,
        [None if array is None else digest(np.ascontiguousarray(array).view(np.uint8)) for array in arrays],
        None if context.camera is None else asdict(context.camera),
        [asdict(region) for region in priors.regions],
        list(semantic_classes) if len(arrays) > 3 else [],
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def make_depth(
    sample: Sample,
    folder: DepthFolder,
    estimator: Estimator,
    priors: Priors = Priors(),  # noqa: B008
    semantic_classes: Sequence[str] = (),
) -> bool:
    """Make a sample's depth map unless it is there already; says whether it was made."""
    key = key_of(sample, estimator, priors, semantic_classes)
    if folder.holds(sample.id, key):
        return False
    folder.write(sample.id, key, priors.over(estimator(sample), sample, semantic_classes))
    return True
