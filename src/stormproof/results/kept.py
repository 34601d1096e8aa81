"""Scores that are kept in a run folder, each under a key of everything that decides them.

scores/KEY.json                    cells, classes, quality: sealed
scores/KEY-images.parquet          the error of every image under every condition
scores/KEY-200.parquet             every cell on 200 random halves of the images, and the intervals of classes
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import stormproof
from stormproof.core.errors import StoreError
from stormproof.core.files import make_folder, unlinked, whole_file
from stormproof.core.text import finite, plain
from stormproof.metrics.metric import INPUTS, metrics_of
from stormproof.models.fingerprint import code_identity, fingerprint
from stormproof.results.interval import Interval
from stormproof.results.run import Run
from stormproof.results.scores import ImageErrors, Replicates, ScoreOptions, Scores
from stormproof.results.store.seal import is_sealed, read_sealed, seal, write_sealed

FOLDER = "scores"
VERSION = 2  # of what a score means: raise it when any metric changes


def scores_key(run: Run, options: ScoreOptions) -> str:
    """A digest of all that decides scores: the run, every prediction, the options, and the metrics."""
    decides = {
        "version": [VERSION, stormproof.__version__],
        "run": run.digest,
        "options": options.as_dict(),
        "code": _foreign_code(options),
    }
    return hashlib.blake2b(json.dumps(decides, sort_keys=True).encode(), digest_size=12).hexdigest()


def _foreign_code(options: ScoreOptions) -> list[str]:
    """Fingerprints of what is not Stormproof's own: metrics of plugins, and a user's measure of overlap."""
    functions: list[Callable[..., Any]]
    functions = [*(each.function for each in metrics_of(*INPUTS)), options.rule.overlap]
    foreign = [each for each in functions if not each.__module__.startswith("stormproof.")]
    return [f"{each.__qualname__} {fingerprint((), {'code': code_identity(each)})}" for each in foreign]


def save_scores(run: Run, key: str, scores: Scores) -> None:
    """Keep scores in the run folder."""
    folder = make_folder(unlinked(run.folder / FOLDER))
    content = {
        "key": key, "options": scores.options.as_dict(), "cells": scores.cells,
        "per_class": scores.per_class, "classes": list(scores.classes), "missing": list(scores.missing),
        "quality": scores.quality, "roc": scores.roc, "lost": scores.lost,
        "image_errors": scores.image_errors is not None,
    }  # fmt: skip
    if scores.image_errors is not None:
        _save_table(folder / f"{key}-images.parquet", _image_table(scores.image_errors))
    if scores.replicates is not None:
        path = folder / f"{key}-{scores.replicates.count}.parquet"
        _save_table(path, _replicate_table(scores.replicates))
    write_sealed(folder / f"{key}.json", finite(content))


def load_scores(run: Run, key: str, options: ScoreOptions, replicates: int) -> Scores | None:
    """What `save_scores` kept under a key; None if it is not all there, or not what was written."""
    folder = run.folder / FOLDER
    try:
        content = read_sealed(folder / f"{key}.json", again="")
        images = _load_table(folder / f"{key}-images.parquet")
        drawn = _load_table(folder / f"{key}-{replicates}.parquet") if replicates else None
    except (StoreError, OSError, pa.ArrowException):
        return None
    lacking = (content.get("image_errors") and images is None) or (replicates and drawn is None)
    if content.get("key") != key or lacking:
        return None
    found = _numbers({name: content[name] for name in ("cells", "per_class", "quality", "roc", "lost")})
    for one in (one for several in found["lost"].values() for one in several):
        one["after"] = math.inf if math.isnan(one["after"]) else one["after"]  # never found again
    record = run.record
    return Scores(
        plain(record.model.name), plain(record.dataset.name), len(run.readable), found["cells"],
        tuple(options.conditions or run.conditions), record.metric, record.benchmark, found["per_class"],
        tuple(content["classes"]), tuple(content["missing"]), found["quality"], found["roc"], found["lost"],
        None if images is None else _image_errors(images),
        None if drawn is None else _read_replicates(drawn),
        tuple(run.unreadable.values()), options,
        tags={plain(k): plain(v) for k, v in record.tags.items()}, record=record, folder=run.folder,
    )  # fmt: skip


def _save_table(path: Path, table: pa.Table) -> None:
    with whole_file(path) as file:
        pq.write_table(table, file, compression="zstd")
        seal(file)


def _load_table(path: Path) -> pa.Table | None:
    return pq.read_table(path) if path.exists() and is_sealed(path) else None


def _image_table(errors: ImageErrors) -> pa.Table:
    texts = list(errors.by_condition)
    return pa.table(
        {
            "image": pa.array([*errors.ids] * len(texts)).dictionary_encode(),
            "condition": pa.array([text for text in texts for _ in errors.ids]).dictionary_encode(),
            "error": np.concatenate([errors.by_condition[text] for text in texts]),
        }
    )


def _image_errors(table: pa.Table) -> ImageErrors:
    names = table["image"].to_pylist()
    texts = list(dict.fromkeys(table["condition"].to_pylist()))
    ids = tuple(names[: len(names) // max(1, len(texts))])
    values = np.asarray(table["error"]).reshape(len(texts), len(ids))
    return ImageErrors(ids, dict(zip(texts, values, strict=True)))


def _replicate_table(replicates: Replicates) -> pa.Table:
    """A row for each cell, then one for each class of it: the replicates, or the interval."""
    rows: list[tuple[str, str, str | None, list[float | None]]]
    rows = [(m, text, None, v.tolist()) for m, row in replicates.cells.items() for text, v in row.items()]
    rows += [
        (m, text, name, [i.estimate, i.low, i.high, i.se, i.optimism, i.images])
        for m, by_condition in replicates.per_class.items()
        for text, by_class in by_condition.items()
        for name, i in by_class.items()
    ]
    columns = dict(zip(("measure", "condition", "class", "values"), zip(*rows, strict=True), strict=True))
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def _read_replicates(table: pa.Table) -> Replicates:
    cells: dict[str, dict[str, Any]] = {}
    per_class: dict[str, dict[str, dict[str, Interval]]] = {}
    for row in table.to_pylist():
        if row["class"] is None:
            cells.setdefault(row["measure"], {})[row["condition"]] = np.array(row["values"], np.float64)
        else:
            by_class = per_class.setdefault(row["measure"], {}).setdefault(row["condition"], {})
            estimate, low, high, se, optimism, images = row["values"]
            shown = None if images is None else int(images)
            by_class[row["class"]] = Interval(estimate, low, high, se, optimism, shown)
    return Replicates(cells, per_class)


def _numbers(value: Any) -> Any:
    """JSON's null is a number that does not exist."""
    if isinstance(value, dict):
        return {key: _numbers(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_numbers(entry) for entry in value]
    return math.nan if value is None else value
