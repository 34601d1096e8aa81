"""`run.yaml`: the settings that repeat everything in a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stormproof.core.errors import StoreError
from stormproof.core.files import read_text, write_text
from stormproof.results.store.lock import shares
from stormproof.results.store.record import RunRecord

SETTINGS = "run.yaml"


def covering(
    settings: Mapping[str, Any], asked: RunRecord, held: RunRecord, *, shard: str, out: str
) -> dict[str, Any]:
    """The settings of one command, widened to the whole folder.

    Earlier commands may have run other conditions, more images, or other shards. `asked` is the run that this
    command wants, `held` the run in the folder.
    """
    wide = {**settings, "shard": shard, "out": out}
    if {*held.conditions} - {*asked.conditions}:
        gone = ("benchmark", "root")
        wide = {key: value for key, value in wide.items() if key not in gone}
        wide |= {"data": held.dataset.spec, "conditions": list(held.conditions)}
    wide.pop("limit", None)
    if held.images < held.dataset.images:
        wide["limit"] = held.images
    return wide


def shard_of(run: Path, shard: str) -> str:
    """The shard that a folder contains: that of its only writer, or the whole run if several share it."""
    return shard if shares(run) <= {shard} else "1/1"


def write_settings(path: Path, content: Mapping[str, Any]) -> None:
    """Write settings, all of them, so that defaults of a later version do not change the run."""
    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)
    if path.exists() and read_text(path, error=StoreError) == text:
        return
    write_text(path, text)
