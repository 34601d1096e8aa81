"""The dataset of a run, opened again to score or export what was said about it."""

from __future__ import annotations

from pathlib import Path

from stormproof.datasets import open_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.errors import DatasetError, InvalidOption
from stormproof.store.record import RunRecord


def dataset_of(record: RunRecord, data: str | None = None) -> Dataset:
    """The dataset a run was made on, from where it was or from `data`; any other one is refused."""
    try:
        dataset = open_dataset(data or record.dataset.spec)
    except DatasetError as error:
        if data is not None:
            raise
        raise InvalidOption(
            f"{error} Say where the dataset is now with --data{_elsewhere(record)}."
        ) from error
    if dataset.fingerprint != record.dataset.fingerprint:
        raise InvalidOption(
            f"{data or record.dataset.spec} is not the dataset of this run: fingerprint "
            f"{dataset.fingerprint[:16]}, not {record.dataset.fingerprint[:16]}."
        )
    return dataset


def _elsewhere(record: RunRecord) -> str:
    """Where relative paths of the run began, if that is not here."""
    folder = record.provenance.get("folder")
    return (
        f", or call from {folder}, where the run was started" if folder not in (None, str(Path.cwd())) else ""
    )
