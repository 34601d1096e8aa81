"""`run.json`, what a run is, and `run.yaml`, the settings that repeat it.

Two runs are the same run when model, dataset, seed and chunk size agree.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, StoreError
from stormproof.core.files import make_folder, read_bytes, read_text, sweep, write_text
from stormproof.core.identity import blake2b, to_json
from stormproof.core.private import scrub
from stormproof.corruptions.plugins import Declaration
from stormproof.results.store.lock import LOCK, held_lock, shares
from stormproof.results.store.parts import (
    FAILURES,
    PARTS,
    open_part,
    part_paths,
    resume_command,
    rows_in,
)
from stormproof.results.store.schema import VERSION
from stormproof.results.store.seal import without_digest, write_sealed
from stormproof.results.store.values import Classes

RECORD = "run.json"
_LARGEST = 1 << 26  # bytes: thousands of conditions with long names take a hundredth of it
_CLAIM = ".claim.lock"


class _RecordPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def _valid_condition(text: str) -> str:
    try:
        written = str(Condition.parse(text))
    except InvalidCondition as error:
        raise ValueError(str(error)) from None
    if written != text:
        raise ValueError(f"{text!r} is written {written!r}")
    return text


Count = Annotated[int, Field(ge=0, le=1 << 24)]  # of images: a list of more does not fit in memory
ConditionText = Annotated[str, AfterValidator(_valid_condition)]


class ModelRecord(_RecordPart):
    """The model: its spec, and its own description."""

    spec: str
    enhance: tuple[str, ...] = ()
    name: str
    fingerprint: str
    sha256: str | None = None  # of the file that the spec names, if it names one
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()


class DatasetRecord(_RecordPart):
    """The dataset: its spec, and its own description."""

    spec: str
    name: str
    fingerprint: str
    images: Count
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()


class RunRecord(_RecordPart):
    """The contents of `run.json`.

    The run covers the first `images` images under `conditions`. Both may grow when the same folder is run
    again; everything else that determines the rows is fixed.
    """

    schema_version: int = VERSION
    name: str | None = None  # in tables; in a plan of many, also of the folder
    model: ModelRecord
    dataset: DatasetRecord
    seed: int
    chunk: Annotated[int, Field(ge=1)]
    images: Count
    conditions: tuple[ConditionText, ...]
    recipes: dict[str, int]
    files: dict[str, str] = {}  # that conditions name, with a hash of their content
    copies: str | None = None  # the folder that corrupted images were read from instead of being made
    declared: dict[str, Declaration] = {}  # corruptions of plugins
    expect: dict[str, float] = {}  # clean scores by measure, as the model's card has them
    benchmark: str | None = None
    metric: str | None = None
    tags: dict[str, str] = {}
    quota: Annotated[int, Field(ge=1)] | None = None  # images per corrupted condition; None: all of them
    provenance: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """The part of a cell's key that all cells of the run share; the row adds condition and recipe."""
        shared = [self.schema_version, self.model.fingerprint, self.dataset.fingerprint, self.seed]
        return blake2b(to_json(shared).encode(), digest_size=16).hexdigest()

    @property
    def known_classes(self) -> Classes:
        """The number of classes that labels may index; a model without class names uses the dataset's."""
        true_maps = len(self.dataset.semantic_classes)
        maps = len(self.model.semantic_classes) or true_maps
        objects = len(self.model.classes or self.dataset.classes)
        return Classes(objects or None, maps or None, true_maps or None)

    def recipe_version(self, condition: Condition) -> int:
        """The version of a condition's recipe, 0 for clean.

        Versions only grow, so the sum over the parts of a composed condition changes with any of them.
        """
        return sum(self.recipes.get(str(part.corruption), 0) for part in condition.parts)

    @property
    def cells(self) -> int:
        return self.images * len(self.conditions)


def read_record(run: Path) -> RunRecord:
    """The record of a run folder; one that was changed since it was written is refused."""
    path = run / RECORD
    if not path.exists():
        fix = "'stormproof run' makes one"
        raise StoreError(f"{run} is not a run folder: it has no {RECORD}; {fix}.")
    try:
        content = json.loads(read_bytes(path, at_most=_LARGEST, error=StoreError))
        _require_version(path, content)
        record = without_digest(content)
        if record is None:
            raise StoreError(f"{path} is damaged: it is not what was written. {_write_again(run)}")
        return RunRecord.model_validate_json(to_json(record))
    except StoreError:
        raise  # of another version, changed, or no file
    except (ValueError, RecursionError) as error:  # pydantic's and JSON's are ValueErrors
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error)
        raise StoreError(
            f"{path} cannot be read: {reason}; it was damaged, or written by another version. "
            f"{_write_again(run)}"
        ) from error


def _require_version(path: Path, content: Any) -> None:
    written = content.get("schema_version") if isinstance(content, dict) else None
    if isinstance(written, int) and written != VERSION:
        raise StoreError(
            f"{path} was written by another version of Stormproof (schema {written}; this one reads "
            f"{VERSION}). Use that version, or run again into a new folder."
        )


def _write_again(run: Path) -> str:
    remove = f"rm {shlex.quote(str(run / RECORD))}"
    return f"Write it again with: {remove} && {resume_command(run)} (predictions are kept)."


@contextmanager
def claiming(run: Path) -> Iterator[None]:
    """Allow one claim at a time: two shards that start together must not lose conditions."""
    make_folder(run)
    with held_lock(run / _CLAIM, run):
        yield


def claim(run: Path, wanted: RunRecord) -> RunRecord:
    """Make the folder for a run, or join the run that is there; refuse a folder of a different run.

    Call it inside `claiming` if other processes may claim the same folder.
    """
    held = may_claim(run, wanted)
    joined = _join(held, wanted) if held else wanted
    for folder in (run, run / PARTS, run / FAILURES):
        make_folder(folder)
    if held is None and (run / RECORD).exists():
        for path in (*part_paths(run), *(run / FAILURES).glob("part-*.json")):
            path.unlink()  # left by a run whose every cell failed
    if joined != held:
        write_sealed(run / RECORD, joined.model_dump(mode="json"))
    return joined


def may_claim(run: Path, wanted: RunRecord) -> RunRecord | None:
    """The record of the run to join, None if there is none; other folders are refused and not changed."""
    if (run / RECORD).exists():
        held = read_record(run)
        differ = differences(held, wanted)
        if differ and _has_no_rows(run):
            return None
        if differ:
            raise StoreError(
                f"{run} holds a different run: {'; '.join(differ)}. Give another --out, or undo the change."
            )
        return held
    if run.exists() and not (run.is_dir() and (all(map(_is_ours, run.iterdir())) or _has_parts(run, wanted))):
        raise StoreError(f"{run} exists and is not a run folder; give another --out.")
    return None


def _has_no_rows(run: Path) -> bool:
    """Whether every cell of a run failed, so another run may take over its folder."""
    return all(rows_in(path) == 0 for path in part_paths(run))


def _has_parts(run: Path, wanted: RunRecord) -> bool:
    """Whether a folder that lost its record contains parts of this run only."""
    parts = part_paths(run)
    for path in parts:
        open_part(path, wanted.key)
    return bool(parts)


def _is_ours(entry: Path) -> bool:
    """Whether a claim left this entry behind when it was killed before its record was complete."""
    if entry.name in (PARTS, FAILURES):
        return entry.is_dir() and not any(entry.iterdir())
    return entry.name.startswith((f".{RECORD}.", LOCK, _CLAIM))


def differences(held: RunRecord, wanted: RunRecord) -> list[str]:
    """The differences that make two records different runs, in words."""
    facts = {
        "the schema": (held.schema_version, wanted.schema_version),
        "the model": (_name(held.model), _name(wanted.model)),
        "the dataset": (_name(held.dataset), _name(wanted.dataset)),
        "the seed": (held.seed, wanted.seed),
        "the chunk size": (held.chunk, wanted.chunk),
        "the folder of copies": (held.copies, wanted.copies),
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


def _name(of: ModelRecord | DatasetRecord) -> str:
    return f"{of.name} (fingerprint {of.fingerprint[:16]})"


def _join(held: RunRecord, wanted: RunRecord) -> RunRecord:
    """The run that covers both: conditions and images only ever grow."""
    return held.model_copy(
        update={
            "name": wanted.name or held.name,
            "images": max(held.images, wanted.images),
            "conditions": tuple(dict.fromkeys((*held.conditions, *wanted.conditions))),
            "recipes": held.recipes | wanted.recipes,
            "files": held.files | wanted.files,
            "tags": held.tags | wanted.tags,
            "declared": held.declared | wanted.declared,
            "expect": held.expect | wanted.expect,
            "benchmark": wanted.benchmark or held.benchmark,
            "metric": wanted.metric or held.metric,
            "quota": held.quota and wanted.quota and max(held.quota, wanted.quota),  # a full grid stays one
        }
    )


def covering(
    settings: Mapping[str, Any], asked: RunRecord, held: RunRecord, *, shard: str, out: str
) -> dict[str, Any]:
    """The settings of one command, widened to the whole folder.

    Earlier commands may have run other conditions, more images, or other shards. `asked` is the run that this
    command wants, `held` the run in the folder.
    """
    wide = {**settings, "shard": shard, "out": out}
    if {*held.conditions} - {*asked.conditions}:
        gone = ("benchmark", "root", "images")  # the spec has the option `only`
        wide = {key: value for key, value in wide.items() if key not in gone}
        wide |= {"data": held.dataset.spec, "conditions": list(held.conditions)}
    wide.pop("limit", None)
    if held.images < held.dataset.images:
        wide["limit"] = held.images
    return wide


def shard_of(run: Path, shard: str) -> str:
    """The shard that a folder contains: that of its only writer, or the whole run if several share it."""
    return shard if shares(run) <= {shard} else "1/1"


_NO_SECRETS = (
    "# The query and the user part of the model's address are not kept: give the address with --model, or\n"
    "# write ${NAME} in it for an environment variable.\n"
)


def write_settings(path: Path, content: Mapping[str, Any]) -> None:
    """Write settings, all of them, so that defaults of a later version do not change the run.

    Secrets in addresses are left out, and the file says so.
    """
    kept = scrub(dict(content))
    note = "" if kept == {**content} else _NO_SECRETS
    text = note + yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)
    sweep(path)
    if path.exists() and read_text(path, error=StoreError) == text:
        return
    write_text(path, text)
