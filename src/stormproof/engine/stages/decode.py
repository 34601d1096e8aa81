"""Decode: from an index to a sample with the digest of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter

from stormproof.core.errors import StoreError
from stormproof.core.processes import worker_count
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.engine.reading import Readers, read_sample
from stormproof.engine.stages import DecodedImage
from stormproof.engine.work import Times

_READERS = 8  # at most: more wait for each other


class Decoder:
    """Reads images; refuses one that changed since existing rows recorded its digest in `before`."""

    def __init__(self, dataset: Dataset, before: Mapping[int, str], times: Times) -> None:
        self._dataset, self._before, self._times = dataset, before, times

    def __call__(self, index: int) -> DecodedImage | Exception:
        """The sample and its content, or the error that reading it raised."""
        return self.check(self.read(index))

    def read(self, index: int, readers: Readers | None = None) -> DecodedImage | Exception:
        """The same unchecked, read by other processes if there are `readers`."""
        start = perf_counter()
        try:
            read = None if readers is None else readers.read(index)
            return DecodedImage(index, *(read or read_sample(self._dataset, index)))
        except Exception as error:
            return error
        finally:
            self._times.decode += perf_counter() - start
            self._times.decoded += 1

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
    """Threads that read images before they are asked for, those of the next chunk too. If `start` is given,
    they ask as many processes as soon as these have started."""

    def __init__(self, dataset: Dataset, start: Callable[[int], Readers] | None = None) -> None:
        count = min(_READERS, worker_count(0)) if abilities(dataset).thread_safe else 1
        self.dataset, self._threads = dataset, ThreadPoolExecutor(count)
        self.readers = None if start is None else start(count)
        self._started: dict[int, Future[DecodedImage | Exception]] = {}

    @property
    def has_started(self) -> bool:
        return bool(self._started)

    def __call__(
        self, decode: Decoder, indices: Sequence[int], following: Sequence[int], *, ahead: int
    ) -> Iterator[tuple[int, DecodedImage | Exception]]:
        """What is read at each index, in order, while up to `ahead` more are being read."""
        whole = [*indices, *following]
        for index in self._started.keys() - {*whole}:
            self._started.pop(index).cancel()
        rest = iter([index for index in whole if index not in self._started])
        for index in indices:
            while len(self._started) < ahead and (later := next(rest, None)) is not None:
                self._started[later] = self._threads.submit(decode.read, later, self.readers)
            yield index, decode.check(self._started.pop(index).result())

    def end(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self.readers is not None:
            self.readers.end()
