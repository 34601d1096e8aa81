"""Decode: from an index to a sample with the digest of its file."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from stormproof.core.errors import StoreError
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.image_files import content_of
from stormproof.engine.stages import DecodedImage
from stormproof.engine.work import Times


class Decoder:
    """Reads images; refuses one that changed since existing rows recorded its digest in `before`."""

    def __init__(self, dataset: Dataset, before: Mapping[int, str], times: Times) -> None:
        self._dataset, self._before, self._times = dataset, before, times

    def __call__(self, index: int) -> DecodedImage | Exception:
        """The sample and its content, or the error that reading it raised."""
        start = perf_counter()
        try:
            sample = self._dataset[index]
            content = content_of(self._dataset, index, sample.image)
        except Exception as error:
            return error
        finally:
            self._times.decode += perf_counter() - start
            self._times.decoded += 1
        if self._before.get(index, content) != content:
            raise StoreError(
                f"{sample.id} of {self._dataset.name} is not the image that this run began with. "
                "Restore the file, or run into another folder."
            )
        return DecodedImage(index, sample, content)
