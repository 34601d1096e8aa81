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

from stormproof.core.errors import OutputError
from stormproof.core.files import make_folder, whole_file
from stormproof.core.randomness import digest
from stormproof.core.sample import Sample
from stormproof.depth.confidence import Estimate
from stormproof.depth.depthmaps import Map, stem_of
from stormproof.depth.estimate import Estimator
from stormproof.depth.priors import Priors

JOURNAL = "keys.jsonl"


class DepthFolder:
    """Depth maps in metres as NPY files, and a journal of what each was made from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)
        self._sure: dict[str, float] = {}
        self._keys = self._read_journal()

    def path(self, sample_id: str) -> Path:
        return self.folder / f"{stem_of(sample_id)}.npy"

    def holds(self, sample_id: str, key: str) -> bool:
        """Whether the sample's map is there and was made from the same things."""
        return self._keys.get(sample_id) == key and self.path(sample_id).is_file()

    def confidence(self, sample_id: str) -> Map:
        """How sure the sample's map is, pixel by pixel, from 0 to 1."""
        with np.load(self._confidence_path(sample_id), allow_pickle=False) as stored:
            return np.asarray(stored["percent"], np.float32) / np.float32(100)

    def sure(self, sample_id: str) -> float:
        """The mean confidence of the sample's map; NaN for one that was made without."""
        return self._sure.get(sample_id, float("nan"))

    def write(self, sample_id: str, key: str, estimate: Estimate) -> None:
        """Put a map and its confidence in their places; each appears whole or not at all."""
        percent = np.rint(100 * estimate.confidence).astype(np.uint8)
        with whole_file(self._confidence_path(sample_id), durable=False) as file:
            np.savez_compressed(file, percent=percent)
        with whole_file(self.path(sample_id), durable=False) as file:
            np.save(file, estimate.depth.astype(np.float32, copy=False))
        entry = {"id": sample_id, "key": key, "confidence": round(estimate.sure, 4)}
        try:
            with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise OutputError(
                f"Cannot write {self.folder / JOURNAL}: {error.strerror}; check the folder and its space."
            ) from None
        self._keys[sample_id], self._sure[sample_id] = key, estimate.sure

    def _confidence_path(self, sample_id: str) -> Path:
        # Not a suffix of depth maps: whoever opens the folder as depth must not take it for one.
        return self.folder / f"{stem_of(sample_id)}.confidence.npz"

    def _read_journal(self) -> dict[str, str]:
        keys: dict[str, str] = {}
        path = self.folder / JOURNAL
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            try:
                entry = json.loads(line)
                keys[entry["id"]] = entry["key"]
                self._sure[entry["id"]] = float(entry.get("confidence", "nan"))
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
    estimate = estimator(sample)
    depth = priors.over(estimate.depth, sample, semantic_classes)
    given = (depth != estimate.depth) & ~(np.isnan(depth) & np.isnan(estimate.depth))
    folder.write(sample.id, key, Estimate(depth, np.where(given, 1, estimate.confidence).astype(np.float32)))
    return True
