"""The error of each image under each condition: which images change, and by how much.

Of objects it is *liu*'s mean object error, of label maps 1 − mean IoU over the classes that are there.
NaN where an image shows nothing that counts.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stormproof.core.errors import StoreError
from stormproof.core.files import whole_file
from stormproof.core.sample import Floats, Ints
from stormproof.metrics.semantic import Confusion
from stormproof.models.classes import ClassMatch
from stormproof.results.store.seal import is_sealed, seal

IMAGES = "images.parquet"


@dataclass(frozen=True, slots=True, eq=False)
class ImageErrors:
    """Errors in [0, 1] by condition, one per image in the order of `ids`."""

    ids: tuple[str, ...]
    by_condition: Mapping[str, Floats]

    def rise(self, condition: str) -> Floats:
        """How much more wrong each image is than when clean."""
        rise: Floats = self.by_condition[condition] - self.by_condition["clean"]
        return rise


def map_errors(columns: tuple[Ints, Ints, Ints], owners: Ints, images: int, match: ClassMatch) -> Floats:
    """1 − mean IoU of each image over the classes it shows, from pixels by true and predicted class."""
    truth, predicted, pixels = columns
    mapped = np.asarray(match.labels, np.int64)[predicted]
    errors = np.full(images, math.nan)
    bounds = np.searchsorted(owners, np.arange(images + 1))
    for i, (start, stop) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        here = slice(start, stop)
        errors[i] = _map_error(truth[here], mapped[here], pixels[here], len(match.dataset))
    return errors


def _map_error(truth: Ints, predicted: Ints, pixels: Ints, classes: int) -> float:
    shown = np.unique(truth)
    if not shown.size:
        return math.nan
    confusion = Confusion.counted(truth, predicted, pixels, classes=classes)
    return 1 - float(np.nanmean(confusion.iou[shown]))


def save_images(run: Path, errors: ImageErrors) -> None:
    """Keep the errors of images beside the scores, sealed."""
    texts = list(errors.by_condition)
    table = pa.table(
        {
            "image": pa.array([*errors.ids] * len(texts)).dictionary_encode(),
            "condition": pa.array([text for text in texts for _ in errors.ids]).dictionary_encode(),
            "error": np.concatenate([errors.by_condition[text] for text in texts]).astype(np.float32),
        }
    )
    with whole_file(run / IMAGES) as file:
        pq.write_table(table, file, compression="zstd")
        seal(file)


def read_images(run: Path) -> ImageErrors:
    """The errors that were kept with a run's scores."""
    path = run / IMAGES
    again = shlex.join(["stormproof", "score", str(run)])
    if not path.exists():
        raise StoreError(f"{run} has no {IMAGES}; '{again}' writes it.")
    if not is_sealed(path):
        raise StoreError(f"{path} is damaged: it is not what was written. Make it again with: {again}")
    table = pq.read_table(path)
    names = table["image"].to_pylist()
    texts = list(dict.fromkeys(table["condition"].to_pylist()))
    ids = tuple(names[: len(names) // max(1, len(texts))])
    values = np.asarray(table["error"]).astype(np.float64).reshape(len(texts), len(ids))
    return ImageErrors(ids, dict(zip(texts, values, strict=True)))
