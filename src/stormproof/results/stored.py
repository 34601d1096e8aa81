"""Scores stored in a run folder, each under a key of everything that determines them.

scores/KEY.json                    conditions, classes, details: sealed
scores/KEY-images.parquet          the error of every image under every condition
scores/KEY-200.parquet             scores on 200 random halves of the images, and the intervals of classes

Each file holds its key and is sealed: one of another run, under whatever name, is not read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, JsonValue

import stormproof
from stormproof.core.errors import StoreError
from stormproof.core.files import make_folder, refuse_link, whole_file
from stormproof.core.text import json_safe
from stormproof.metrics.metric import DETAILS, METRICS, measures
from stormproof.metrics.task import all_tasks
from stormproof.models.model import fingerprint
from stormproof.models.python import code_identity
from stormproof.results.details import from_json, to_json
from stormproof.results.interval import LEADING, Interval
from stormproof.results.run import DatasetGone, Run
from stormproof.results.scores import Replicates, ScoreOptions, Scores
from stormproof.results.store.parts import encode_strings
from stormproof.results.store.seal import is_sealed, read_sealed, seal, write_sealed
from stormproof.results.worst import ImageErrors

FOLDER = "scores"
VERSION = 12  # of what a score means: raise it when any metric, or how truth moves, changes


def scores_key(run: Run, options: ScoreOptions) -> str:
    """A digest of everything that determines scores: the run, every prediction, the options, the metrics."""
    decides = {
        "version": [VERSION, stormproof.__version__],
        "run": run.digest,
        "options": options.as_dict(),
        "code": _foreign_code(options),
    }
    return hashlib.blake2b(json.dumps(decides, sort_keys=True).encode(), digest_size=12).hexdigest()


def _foreign_code(options: ScoreOptions) -> list[str]:
    """Fingerprints of code that is not Stormproof's own, and of what it is declared to read: metrics and
    tasks of plugins, a user's overlap function."""
    functions: list[tuple[str, Callable[..., Any]]] = [(one.given, one.function) for one in METRICS.values()]
    functions += [(one.given, one.function) for one in DETAILS.values()]
    for task in all_tasks():
        functions += [
            (task.form.scored_by, each) for each in (task.image_errors, task.shown, task.form.collect)
        ]
    functions.append(("", options.rule.overlap))
    return [
        f"{each.__qualname__} {reads} {fingerprint((), {'code': code_identity(each)})}"
        for reads, each in functions
        if not each.__module__.startswith("stormproof.")
    ]


def save_scores(run: Run, key: str, scores: Scores) -> None:
    """Store scores in the run folder."""
    folder = make_folder(refuse_link(run.folder / FOLDER))
    content = {
        "key": key, "options": scores.options.as_dict(), "cells": scores.per_condition,
        "per_class": scores.per_class, "classes": list(scores.classes), "missing": list(scores.missing),
        "details": to_json(scores.details), "image_errors": scores.image_errors is not None,
        "clips": scores.clips, "unit_digest": _unit_digest(run),
        "replicates": scores.replicates.count if scores.replicates is not None else 0,
        "units": scores.replicates.units if scores.replicates is not None else {},
    }  # fmt: skip
    if scores.image_errors is not None:
        _save_table(folder / f"{key}-images.parquet", _image_table(scores.image_errors))
    if scores.replicates is not None:
        path = folder / f"{key}-{scores.replicates.count}.parquet"
        _save_table(path, _replicate_table(scores.replicates))
    write_sealed(folder / f"{key}.json", json_safe(content))


def has_scores(run: Run, options: ScoreOptions, *, replicates: int = 0) -> bool:
    """Whether the run folder has a file of such scores; only `load_scores` says whether it is whole."""
    key = scores_key(run, options)
    name = f"{key}-{replicates}.parquet" if replicates else f"{key}.json"
    return (run.folder / FOLDER / name).exists()


def _unit_digest(run: Run) -> str:
    if run.clips is None:
        return ""
    return hashlib.blake2b("\0".join(run.units).encode(), digest_size=12).hexdigest()


def _same_units(run: Run, held: _StoredScores) -> bool:
    """Whether intervals are of the groups that the dataset has now; a dataset that is gone cannot tell."""
    try:
        return held.unit_digest == _unit_digest(run)
    except DatasetGone:
        return True


def load_scores(run: Run, key: str, options: ScoreOptions, replicates: int) -> Scores | None:
    """The scores that `save_scores` stored under a key; None if any are missing or damaged."""
    folder, asked = run.folder / FOLDER, tuple(options.conditions or run.conditions)
    try:
        held = _StoredScores.model_validate(read_sealed(folder / f"{key}.json", again=""))
        held.require(key, asked)
        if replicates and not _same_units(run, held):
            return None
        errors = _image_errors(_load_table(folder / f"{key}-images.parquet", _IMAGES), asked)
        drawn = None
        if replicates:
            table = _load_table(folder / f"{key}-{replicates}.parquet", _DRAWN)
            drawn = _read_replicates(table, held, replicates)
    except (StoreError, OSError, ValueError, pa.ArrowException):  # pydantic's errors are ValueErrors
        return None
    drawn_too = held.units or held.details.keys() - {"quality"}  # from the replicates of the file
    other_intervals = replicates and drawn_too and held.replicates != replicates
    if held.image_errors != (errors is not None) or other_intervals:
        return None
    return replace(
        Scores.before_scoring(run, held.clips),
        per_condition=from_json(held.cells), conditions=asked, per_class=from_json(held.per_class),
        classes=held.classes, missing=held.missing, details=from_json(held.details),
        image_errors=errors, replicates=drawn, options=options,
    )  # fmt: skip


Number = Annotated[float, Field(allow_inf_nan=False)] | None  # None for NaN, which JSON lacks
ByCondition = dict[str, dict[str, Number]]


class _StoredScores(BaseModel):
    """The content of a file of stored scores."""

    model_config = ConfigDict(extra="forbid")
    key: str
    options: dict[str, Any]
    cells: ByCondition
    per_class: dict[str, ByCondition]
    classes: tuple[str, ...]
    missing: tuple[str, ...]
    details: dict[str, dict[str, JsonValue]]
    image_errors: bool
    clips: int | None = None
    unit_digest: str  # of the units that halves are drawn from; empty if each image is one
    replicates: int  # from which the intervals of details and the units come
    units: dict[str, int]  # images or clips that decide a measure, if few

    def require(self, key: str, conditions: Sequence[str]) -> None:
        """Refuse scores of another key, of measures that do not exist, or of other conditions."""
        named: list[Mapping[str, Any]]
        named = [*self.cells.values(), *self.per_class.values(), *self.details.values()]
        strange = {text for each in named for text in each} - {*conditions}
        if self.key != key or strange or not self.cells or not self.cells.keys() <= measures().keys():
            raise ValueError("these are not the scores of this run")
        scored = {text for row in self.cells.values() for text in row}
        if any(row.keys() != scored for row in self.cells.values()):
            raise ValueError("a measure lacks conditions that another has")


_NAME = b"stormproof.kept"  # where a table holds its own name, which begins with its key


def _save_table(path: Path, table: pa.Table) -> None:
    with whole_file(path) as file:
        pq.write_table(table.replace_schema_metadata({_NAME: path.stem}), file, compression="zstd")
        seal(file)


def stored_problems(run: Run) -> Iterator[str]:
    """What is wrong with the files of stored scores, each in a sentence; none of these would be read."""
    for path in sorted((run.folder / FOLDER).glob("*")):
        try:
            if path.suffix == ".json":
                name = read_sealed(path, again="").get("key")
            elif path.suffix == ".parquet":
                name = _name_of(path) if is_sealed(path) else ""
            else:
                continue
        except (StoreError, OSError, ValueError, pa.ArrowException):
            name = ""
        if name == "":
            yield f"{path} is damaged: it is not what was written. Remove it: scores are computed again."
        elif name not in (None, path.stem):  # a table without a name is of an earlier version
            yield f"{path} holds the scores stored as {name!r:.80}, of another run. Remove it."


def _name_of(path: Path) -> str | None:
    name = (pq.read_schema(path).metadata or {}).get(_NAME)
    return None if name is None else name.decode()


_IMAGES = pa.schema(
    [pa.field(name, kind, nullable=False) for name, kind in (
        ("image", pa.string()), ("condition", pa.string()), ("error", pa.float64()),
    )]
)  # fmt: skip
_DRAWN = pa.schema(
    [
        pa.field("measure", pa.string(), nullable=False), pa.field("condition", pa.string(), nullable=False),
        pa.field("class", pa.string()), pa.field("values", pa.list_(pa.float64()), nullable=False),
    ]
)  # fmt: skip


def _load_table(path: Path, schema: pa.Schema) -> pa.Table | None:
    if not path.exists() or not is_sealed(path):
        return None
    table = pq.read_table(path)
    if _name_of(path) != path.stem:
        raise ValueError(f"{path} is the table of another run, or of another version")
    if table.column_names != schema.names:
        raise ValueError(f"{path} has other columns")
    return table.replace_schema_metadata(None).cast(schema)


def _image_table(errors: ImageErrors) -> pa.Table:
    texts = list(errors.by_condition)
    return pa.table(
        {
            "image": pa.array([*errors.ids] * len(texts)).dictionary_encode(),
            "condition": pa.array([text for text in texts for _ in errors.ids]).dictionary_encode(),
            "error": np.concatenate([errors.by_condition[text] for text in texts]),
        }
    )


def _image_errors(table: pa.Table | None, conditions: Sequence[str]) -> ImageErrors | None:
    if table is None:
        return None
    (names, image), (texts, condition) = encode_strings(table["image"]), encode_strings(table["condition"])
    count = len(image) // max(1, len(texts))
    repeated, whole = np.tile(image[:count], len(texts)), np.repeat(np.arange(len(texts)), count)
    if (
        not np.array_equal(image, repeated)
        or not np.array_equal(condition, whole)
        or {*texts} - {*conditions}
    ):
        raise ValueError("errors of images are not one for each image and condition")
    values = np.asarray(table["error"]).reshape(len(texts), count)
    return ImageErrors(tuple(names[k] for k in image[:count]), dict(zip(texts, values, strict=True)))


def _replicate_table(replicates: Replicates) -> pa.Table:
    """A row for each condition, then one for each class of it: the replicates, or the interval."""
    rows: list[tuple[str, str, str | None, list[float | None]]]
    rows = [
        (m, text, None, v.tolist()) for m, row in replicates.per_condition.items() for text, v in row.items()
    ]
    rows += [
        (m, text, name, [i.estimate, i.low, i.high, i.se, i.optimism, i.images])
        for m, by_condition in replicates.per_class.items()
        for text, by_class in by_condition.items()
        for name, i in by_class.items()
    ]
    columns = dict(zip(("measure", "condition", "class", "values"), zip(*rows, strict=True), strict=True))
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def _read_replicates(table: pa.Table | None, held: _StoredScores, count: int) -> Replicates:
    drawn: dict[str, dict[str, Any]] = {}
    per_class: dict[str, dict[str, dict[str, Interval]]] = {}
    for row in [] if table is None else table.to_pylist():
        if row["class"] is None:
            values = np.array(row["values"], np.float64)
            if len(values) != count + LEADING:
                raise ValueError("a row has another number of replicates")
            drawn.setdefault(row["measure"], {})[row["condition"]] = values
        else:
            by_class = per_class.setdefault(row["measure"], {}).setdefault(row["condition"], {})
            *numbers, images = row["values"]
            estimate, low, high, se, optimism = (math.nan if n is None else n for n in numbers)
            shown = None if images is None else int(images)
            by_class[row["class"]] = Interval(estimate, low, high, se, optimism, shown, count)
    known = {(name, text) for name, row in held.cells.items() for text, n in row.items() if n is not None}
    if not known <= _names(drawn) <= _names(held.cells) or _names(per_class, 3) != _names(held.per_class, 3):
        raise ValueError("intervals are of other conditions than the scores")
    return Replicates(drawn, per_class, held.units)


def _names(nested: Mapping[str, Any], levels: int = 2) -> set[tuple[str, ...]]:
    """The path of names that leads to each number."""
    if levels == 1:
        return {(name,) for name in nested}
    return {(name, *rest) for name, inner in nested.items() for rest in _names(inner, levels - 1)}
