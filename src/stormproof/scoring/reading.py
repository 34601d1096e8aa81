"""A run's rows as flat arrays, a few conditions at a time, so that memory does not grow with the grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from stormproof.errors import StoreError
from stormproof.metrics.records import Detections
from stormproof.models.classes import ClassMatch
from stormproof.sample import RLE, Ints
from stormproof.store.parts import check_part, part_paths
from stormproof.store.record import RunRecord
from stormproof.store.schema import CONFUSION, DETECTION

_BUDGET = 256 << 20  # bytes of part files read at a time; about ten times as much in memory


@dataclass(frozen=True, slots=True, eq=False)
class RunRows:
    """The rows of a run."""

    run: Path
    record: RunRecord

    def __post_init__(self) -> None:
        if not self._parts:
            raise StoreError(f"{self.run} holds no predictions yet; run it first.")
        for path in self._parts:
            check_part(path, self.record.key)

    @property
    def _parts(self) -> list[Path]:
        return part_paths(self.run)

    def by_condition(
        self, conditions: Sequence[str], columns: Sequence[str]
    ) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each condition, sorted by image; read for as many conditions at once as fit."""
        data = ds.dataset(self._parts)
        size = sum(path.stat().st_size for path in self._parts) / max(1, len(self.record.conditions))
        at_once = max(1, int(_BUDGET / max(size, 1)))
        wanted = ["index", "image", "condition", "height", "width", *columns]
        for start in range(0, len(conditions), at_once):
            group = list(conditions[start : start + at_once])
            chosen = ds.field("condition").isin(group) & (ds.field("index") < self.record.images)
            table = data.to_table(columns=wanted, filter=chosen).sort_by("index")
            for text in group:
                yield text, table.filter(pc.equal(table["condition"], text)).combine_chunks()

    def detections(
        self, conditions: Sequence[str], match: ClassMatch, positions: dict[str, int], *, masks: bool
    ) -> Iterator[tuple[str, Detections]]:
        """What the model said under each condition, in the dataset's labels; what the dataset has no name
        for has the label after the last."""
        columns = DETECTION if masks else DETECTION[:3]
        for text, table in self.by_condition(conditions, columns):
            yield text, _flat(table, match, positions, masks=masks)

    def confusions(self, conditions: Sequence[str]) -> Iterator[tuple[str, tuple[Ints, Ints, Ints]]]:
        """Pixels of each condition by true and predicted class: three columns, images added up or not."""
        for text, table in self.by_condition(conditions, CONFUSION):
            truth, predicted, pixels = (_values(table[name]) for name in CONFUSION)
            yield text, (truth, predicted, pixels)


def _values(column: pa.ChunkedArray) -> Ints:
    return np.asarray(pc.list_flatten(column).combine_chunks()).astype(np.int64)


def _flat(table: pa.Table, match: ClassMatch, positions: dict[str, int], *, masks: bool) -> Detections:
    owners = np.array([positions[name] for name in table["image"].to_pylist()], np.int64)
    lengths = np.asarray(pc.list_value_length(table["scores"]).combine_chunks()).astype(np.int64)
    corners = pc.list_flatten(pc.list_flatten(table["boxes"])).combine_chunks()
    labels = np.asarray(match.labels, np.int64)[_values(table["labels"])] if lengths.sum() else _values(
        table["labels"]
    )  # fmt: skip
    scores = np.asarray(pc.list_flatten(table["scores"]).combine_chunks())
    return Detections(
        np.repeat(owners, lengths),
        np.asarray(corners).reshape(-1, 4),
        scores,
        np.where(labels < 0, len(match.dataset), labels),
        tuple(_masks(table)) if masks else (),
    )


def _masks(table: pa.Table) -> Iterator[RLE]:
    """A mask per object; empty where the model gave boxes without masks, as it may on some images."""
    sizes = zip(table["height"].to_pylist(), table["width"].to_pylist(), strict=True)
    for size, row, scores in zip(sizes, table["masks"], table["scores"], strict=True):
        if not row.is_valid:
            yield from [RLE(size, np.array([size[0] * size[1]], np.uint32))] * len(scores)
            continue
        for counts in row.values:
            yield RLE(size, np.asarray(counts.values))
