"""`run.json`: what a run is. Two runs are the same run when model, dataset, seed and chunk size agree."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from stormproof.errors import StoreError
from stormproof.files import make_folder, write_json
from stormproof.store.lock import LOCK
from stormproof.store.parts import FAILURES, PARTS
from stormproof.store.schema import VERSION

RECORD = "run.json"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ModelRecord(_Frozen):
    """The model as it was named, and what it said about itself."""

    spec: str
    enhance: tuple[str, ...] = ()
    name: str
    fingerprint: str
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()


class DatasetRecord(_Frozen):
    """The dataset as it was named, and what it said about itself."""

    spec: str
    name: str
    fingerprint: str
    images: int
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()


class RunRecord(_Frozen):
    """The contents of `run.json`.

    `images` is how many images, from the first, the run covers; `conditions` what each is put under.
    Both may grow when the same folder is run again; everything else that decides the rows is fixed.
    """

    schema_version: int = VERSION
    model: ModelRecord
    dataset: DatasetRecord
    seed: int
    chunk: int
    images: int
    conditions: tuple[str, ...]
    recipes: dict[str, int]
    files: dict[str, str] = {}  # that conditions name, and a hash of what was in them
    benchmark: str | None = None
    metric: str | None = None
    tags: dict[str, str] = {}
    provenance: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """The part of a cell's key that all cells of the run share; the row adds condition and recipe."""
        shared = [self.schema_version, self.model.fingerprint, self.dataset.fingerprint, self.seed]
        return hashlib.blake2b(json.dumps(shared).encode(), digest_size=16).hexdigest()

    @property
    def cells(self) -> int:
        return self.images * len(self.conditions)


def read_record(run: Path) -> RunRecord:
    """The record of a run folder."""
    path = run / RECORD
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        fix = "'stormproof run' makes one"
        raise StoreError(f"{run} is not a run folder: it has no {RECORD}; {fix}.") from None
    except (ValidationError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise StoreError(f"{path} cannot be read: {reason}; it was written by another version.") from error


def claim(run: Path, wanted: RunRecord) -> RunRecord:
    """Make the folder for a run, or join the run that is there; refuse a folder of a different run."""
    held = may_claim(run, wanted)
    joined = _join(held, wanted) if held else wanted
    for folder in (run, run / PARTS, run / FAILURES):
        make_folder(folder)
    if joined != held:
        write_json(run / RECORD, joined.model_dump(mode="json"))
    return joined


def may_claim(run: Path, wanted: RunRecord) -> RunRecord | None:
    """The record of the run to join, none where there is none yet; other folders are refused, untouched."""
    if (run / RECORD).exists():
        held = read_record(run)
        if found := differences(held, wanted):
            raise StoreError(
                f"{run} holds a different run: {'; '.join(found)}. Give another --out, or undo the change."
            )
        return held
    if run.exists() and not (run.is_dir() and all(map(_is_ours, run.iterdir()))):
        raise StoreError(f"{run} exists and is not a run folder; give another --out.")
    return None


def _is_ours(entry: Path) -> bool:
    """Whether this is what a claim leaves behind that was killed before its record had its name."""
    if entry.name in (PARTS, FAILURES):
        return entry.is_dir() and not any(entry.iterdir())
    return entry.name.startswith((f".{RECORD}.", LOCK))


def differences(held: RunRecord, wanted: RunRecord) -> list[str]:
    """What keeps two records from being one run, in words."""
    facts = {
        "the schema": (held.schema_version, wanted.schema_version),
        "the model": (_named(held.model), _named(wanted.model)),
        "the dataset": (_named(held.dataset), _named(wanted.dataset)),
        "the seed": (held.seed, wanted.seed),
        "the chunk size": (held.chunk, wanted.chunk),
    }
    facts |= {
        f"the recipe of {name}": (f"version {held.recipes[name]}", f"version {version}")
        for name, version in wanted.recipes.items()
        if name in held.recipes
    }
    facts |= {
        f"the content of {name}": (f"{held.files[name][:16]}", f"{digest[:16]}")
        for name, digest in wanted.files.items()
        if name in held.files
    }
    return [f"{what} was {old}, now {new}" for what, (old, new) in facts.items() if old != new]


def _named(of: ModelRecord | DatasetRecord) -> str:
    return f"{of.name} (fingerprint {of.fingerprint[:16]})"


def _join(held: RunRecord, wanted: RunRecord) -> RunRecord:
    """The run that covers both: conditions and images only ever grow."""
    return held.model_copy(
        update={
            "images": max(held.images, wanted.images),
            "conditions": tuple(dict.fromkeys((*held.conditions, *wanted.conditions))),
            "recipes": held.recipes | wanted.recipes,
            "files": held.files | wanted.files,
            "tags": held.tags | wanted.tags,
            "benchmark": wanted.benchmark or held.benchmark,
            "metric": wanted.metric or held.metric,
        }
    )
