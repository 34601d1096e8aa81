"""A run's rows as flat arrays, a few conditions at a time, so that memory does not grow with the grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stormproof.core.errors import StoreError
from stormproof.core.sample import RLE, Ints
from stormproof.metrics.quality import Change
from stormproof.metrics.records import Detections
from stormproof.models.classes import ClassMatch
from stormproof.results.gathering import Spool, gathered, joined, numbers, stated_sides
from stormproof.results.store.completeness import readable_images, unreadable_images
from stormproof.results.store.contents import has_values
from stormproof.results.store.parts import check_part, part_paths, read_part
from stormproof.results.store.record import RunRecord
from stormproof.results.store.schema import CONFUSION, DETECTION, ROWS

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
            check_part(path, self.record.key, sealed=self.record.sealed)

    @property
    def _parts(self) -> list[Path]:
        return part_paths(self.run)

    def by_condition(
        self, conditions: Sequence[str], columns: Sequence[str]
    ) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each condition, sorted by image; read for as many conditions at once as fit."""
        import pyarrow.dataset as ds  # here: it loads for half a second

        data = ds.dataset(self._parts, schema=ROWS)
        out = list(unreadable_images(self.run, self.record))
        size = sum(path.stat().st_size for path in self._parts) / max(1, len(self.record.conditions))
        at_once = max(1, int(_BUDGET / max(size, 1)))
        wanted = ["index", "image", "condition", "height", "width", *columns]
        for start in range(0, len(conditions), at_once):
            group = list(conditions[start : start + at_once])
            chosen = ds.field("condition").isin(group) & (ds.field("index") < self.record.images)
            if out:
                chosen &= ~ds.field("index").isin(out)
            table = data.to_table(columns=wanted, filter=chosen).sort_by("index")
            for text in group:
                yield text, table.filter(pc.equal(table["condition"], text)).combine_chunks()

    def detections(
        self, conditions: Sequence[str], match: ClassMatch, positions: dict[str, int], *, masks: bool
    ) -> Iterator[tuple[str, Detections]]:
        """What the model said under each condition, in the dataset's labels; what the dataset has no name
        for has the label after the last."""
        if masks:
            for text, table in self.by_condition(conditions, DETECTION):
                yield text, _flat(table, match, positions)
            return
        out = frozenset(unreadable_images(self.run, self.record))
        spool = Spool()
        for path in self._parts:
            for text, part in gathered(path, self.record, conditions, positions, out):
                spool.add(text, part)
        for text in conditions:
            image, boxes, scores, labels, sides = joined(list(spool.take(text)))
            yield text, Detections(image, boxes, scores, _mapped(labels, match), sides=sides)

    def confusions(self, conditions: Sequence[str]) -> Iterator[tuple[str, tuple[Ints, Ints, Ints], Ints]]:
        """Pixels of each condition by true and predicted class: three columns, and each entry's image as its
        place among the readable ones."""
        readable = readable_images(self.run, self.record)
        for text, table in self.by_condition(conditions, CONFUSION):
            truth, predicted, pixels = (numbers(table[name]).astype(np.int64) for name in CONFUSION)
            lengths = pc.fill_null(pc.list_value_length(table[CONFUSION[0]]), 0).combine_chunks()
            places = np.searchsorted(readable, np.asarray(table["index"]))
            yield text, (truth, predicted, pixels), np.repeat(places, np.asarray(lengths))

    def changes(self, conditions: Sequence[str]) -> dict[str, dict[str, float]]:
        """The mean RMSE and SNR of each condition, over images that have finite ones; none of older runs."""
        if not has_values(self.run, Change._fields[0]):
            return {}
        columns = ("index", "condition", *Change._fields)
        table = pa.concat_tables([read_part(path, self.record.key, columns) for path in self._parts])
        index = np.asarray(table["index"])
        left_out = np.isin(index, list(unreadable_images(self.run, self.record)))
        table = table.filter(pa.array((index < self.record.images) & ~left_out))
        rows = {text: table.filter(pc.equal(table["condition"], text)) for text in conditions}
        return {
            text: {name: _finite_mean(held[name]) for name in Change._fields} for text, held in rows.items()
        }


def _finite_mean(column: pa.ChunkedArray) -> float:
    values = np.asarray(column.combine_chunks().cast(pa.float64()).to_numpy(zero_copy_only=False))
    finite = values[np.isfinite(values)]
    return math.fsum(finite.tolist()) / len(finite) if finite.size else math.nan


def _flat(table: pa.Table, match: ClassMatch, positions: dict[str, int]) -> Detections:
    """Detections with masks."""
    owners = np.array([positions[name] for name in table["image"].to_pylist()], np.int64)
    lengths = np.asarray(pc.list_value_length(table["scores"]).combine_chunks()).astype(np.int64)
    boxes = numbers(table["boxes"]).reshape(-1, 4)
    return Detections(
        np.repeat(owners, lengths),
        boxes,
        numbers(table["scores"]),
        _mapped(numbers(table["labels"]).astype(np.int64), match),
        tuple(_masks(table)),
        stated_sides(table["sides"], boxes, lengths),  # type: ignore[arg-type]  # None: what corners give
    )


def _mapped(labels: Ints, match: ClassMatch) -> Ints:
    """The model's labels as the dataset's."""
    known = np.asarray(match.labels, np.int64)
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(known):
        raise StoreError(
            f"A stored label is out of range: there are {len(known)} classes; 'stormproof verify' says where."
        )
    mapped = known[labels] if len(labels) else labels
    return np.where(mapped < 0, len(match.dataset), mapped)


def _masks(table: pa.Table) -> Iterator[RLE]:
    """A mask per object; empty where the model gave boxes without masks, as it may on some images."""
    sizes = zip(table["height"].to_pylist(), table["width"].to_pylist(), strict=True)
    for size, row, scores in zip(sizes, table["masks"], table["scores"], strict=True):
        if not row.is_valid:
            yield from [RLE(size, np.array([size[0] * size[1]], np.uint32))] * len(scores)
            continue
        for counts in row.values:
            yield RLE(size, np.asarray(counts.values))
