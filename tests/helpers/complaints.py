"""What a dataset says about input that is wrong."""

from __future__ import annotations

import pytest

from stormproof.core.errors import DatasetError, InvalidImage, StormproofError
from stormproof.datasets import read_dataset


def open_everything(spec: str) -> None:
    dataset = read_dataset(spec)
    for i in range(len(dataset)):
        dataset.truth(i)
        dataset[i]


def complaint(spec: str) -> str:
    """The first complaint from opening a dataset and everything in it."""
    with pytest.raises(StormproofError) as caught:
        open_everything(spec)
    assert isinstance(caught.value, DatasetError | InvalidImage), repr(caught.value)
    return str(caught.value)
