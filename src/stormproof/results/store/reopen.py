"""The dataset of a run, opened again to score or export what was said about it."""

from __future__ import annotations

import shlex
from pathlib import Path

from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.local_objects import KIND
from stormproof.core.spec import Spec
from stormproof.datasets import open_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.results.store.record import RunRecord


def dataset_of(record: RunRecord, data: str | Dataset | None = None) -> Dataset:
    """The dataset a run was made on, from where it was or from `data`; any other one is refused.

    A run folder is data: Python code that its record names is not run unless the user names it again.
    """
    kind = Spec.parse(record.dataset.spec).kind
    if data is None and kind == KIND:
        name = record.dataset.name
        raise InvalidOption(f"The dataset {name} of this run was made in Python; give it again with data=.")
    if data is None and "." in kind:
        raise InvalidOption(
            f"The dataset of this run is Python code ({record.dataset.spec}), which is run only if you name "
            f"it: --data {shlex.quote(record.dataset.spec)}"
        )
    try:
        dataset = open_dataset(data or record.dataset.spec) if data is None or isinstance(data, str) else data
    except DatasetError as error:
        if data is not None:
            raise
        raise InvalidOption(
            f"{error} Say where the dataset is now with --data{_elsewhere(record)}."
        ) from error
    if dataset.fingerprint != record.dataset.fingerprint:
        raise InvalidOption(
            f"{data if isinstance(data, str) else dataset.name} is not the dataset of this run: fingerprint "
            f"{dataset.fingerprint[:16]}, not {record.dataset.fingerprint[:16]}."
        )
    return dataset


def _elsewhere(record: RunRecord) -> str:
    """Where relative paths of the run began, if that is not here."""
    folder = record.provenance.get("folder")
    return (
        f", or call from {folder}, where the run was started" if folder not in (None, str(Path.cwd())) else ""
    )
