"""Decode: from an index to a sample with the digest of its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter

from stormproof.core.errors import StoreError
from stormproof.core.processes import worker_count
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.datasets.image_files import content_of, size_and_digest
from stormproof.engine.stages import DecodedImage
from stormproof.engine.work import Times

_READERS = 8  # threads, at most: more wait for each other
_USES = 64  # an image used more often is read fast enough by one thread


class Decoder:
    """Reads images; refuses one that changed since existing rows recorded its digest in `before`."""

    def __init__(self, dataset: Dataset, before: Mapping[int, str], times: Times) -> None:
        self._dataset, self._before, self._times = dataset, before, times
        self._read_file = abilities(dataset).read_file

    def __call__(self, index: int) -> DecodedImage | Exception:
        """The sample and its content, or the error that reading it raised."""
        return self.check(self.read(index))

    def read(self, index: int) -> DecodedImage | Exception:
        start = perf_counter()
        try:
            if self._read_file is None:
                sample = self._dataset[index]
                content = content_of(self._dataset, index, sample.image)
            else:
                truth = self._dataset.truth(index)
                image, stored = self._read_file(index)
                sample, content = replace(image, truth=truth), size_and_digest(stored)
        except Exception as error:
            return error
        finally:
            self._times.decode += perf_counter() - start
            self._times.decoded += 1
        return DecodedImage(index, sample, content)

    def check(self, read: DecodedImage | Exception) -> DecodedImage | Exception:
        """What was read, unless the image changed."""
        if isinstance(read, DecodedImage):
            self.require_same(read.index, read.sample.id, read.content)
        return read

    def require_same(self, index: int, name: str, content: str) -> None:
        """Refuse an image whose digest is not the recorded one."""
        if self._before.get(index, content) != content:
            raise StoreError(
                f"{name} of {self._dataset.name} is not the image that this run began with. "
                "Restore the file, or run into another folder."
            )


class ReadAhead:
    """Threads that read images before they are asked for, those of the next chunk too.

    An image that is used many times need not be read fast, and threads slow the one that calls the model.
    """

    def __init__(self, dataset: Dataset, uses: int = 1) -> None:
        self._most = min(_READERS, worker_count(0)) if abilities(dataset).thread_safe else 1
        self.dataset = dataset
        self._threads = ThreadPoolExecutor(min(self._most, 1 + _USES // uses))
        self.started: dict[int, Future[DecodedImage | Exception]] = {}

    def __call__(
        self, decode: Decoder, indices: Sequence[int], following: Sequence[int], *, ahead: int,
        at_once: int = 0,
    ) -> Iterator[tuple[int, DecodedImage | Exception]]:  # fmt: skip
        """What is read at each index, in order, while up to `ahead` more are being read; the first ones, for
        which the model waits, by as many threads as there may be."""
        whole = [*indices, *following]
        for index in self.started.keys() - {*whole}:
            self.started.pop(index).cancel()
        if not self.started:
            with ThreadPoolExecutor(self._most) as threads:
                self.started = {index: threads.submit(decode.read, index) for index in indices[:at_once]}
        rest = iter([index for index in whole if index not in self.started])
        for index in indices:
            while len(self.started) < ahead and (later := next(rest, None)) is not None:
                self.started[later] = self._threads.submit(decode.read, later)
            yield index, decode.check(self.started.pop(index).result())
