"""Reading images in processes beside the model's: decoding and truth are Python code, for which the model's
interpreter would have to wait.

A process that cannot read something, or dies, is no failure: whoever asked reads the image itself, and
meets the error if there is one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from pickle import PickleError

from stormproof.core.sample import Sample
from stormproof.core.spec import OBJECT
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.datasets.image_files import content_of, size_and_digest
from stormproof.engine.beside import Beside, Line, end_all, is_possible


def read_sample(dataset: Dataset, index: int) -> tuple[Sample, str]:
    """An image with its truth, and the digest of its file; the file is read once."""
    read_file = abilities(dataset).read_file
    if read_file is None:
        sample = dataset[index]
        return sample, content_of(dataset, index, sample.image)
    truth = dataset.truth(index)
    sample, stored = read_file(index)
    return replace(sample, truth=truth), size_and_digest(stored)


class Readers:
    """Processes that read the images of a dataset; one that has not yet opened it is not asked."""

    def __init__(self, spec: str, fingerprint: str, plugins: Sequence[str], count: int) -> None:
        self._fingerprint = fingerprint
        self.processes = [Beside(serve_images, str(Path.cwd()), plugins, spec) for _ in range(count)]
        self._starting, self._idle = deque(self.processes), deque[Beside]()

    def read(self, index: int) -> tuple[Sample, str] | None:
        """What `read_sample` gives; None if no process could say."""
        with suppress(IndexError, EOFError, OSError, PickleError):  # one that fails is not asked again
            process = self._idle.popleft() if self._idle else self._opened()
            if process is not None:
                process.send(index)
                read: tuple[Sample, str] | None = process.receive()
                self._idle.append(process)
                return read
        return None

    def _opened(self) -> Beside | None:
        """A process that has just opened the same dataset."""
        process = self._starting.popleft()
        if not process.has_message():
            self._starting.append(process)
            return None
        return process if process.receive() == self._fingerprint else None

    def end(self) -> None:
        end_all(self.processes)


def may_be_read_beside(dataset: Dataset, spec: str) -> bool:
    """Whether processes may read a dataset: one of files, which its spec opens anywhere. A decoder or a
    depth network on the GPU stays in one process."""
    own = abilities(dataset)
    on_gpu = own.rules is not None and own.rules.decode == "nvjpeg"
    plain = own.thread_safe and own.read_file is not None and not on_gpu
    return plain and is_possible() and not spec.startswith(f"{OBJECT}:")


def serve_images(line: Line, folder: str, plugins: Sequence[str], spec: str) -> None:
    """Say which dataset this process has opened, then answer indices with what is read there."""
    os.chdir(folder)
    if plugins:
        from stormproof.corruptions.plugins import load_plugins

        load_plugins(plugins)
    dataset = read_dataset(spec)
    line.send(dataset.fingerprint)
    while True:
        index, read = line.receive(), None
        with suppress(Exception):  # the process that asked meets the error too, and says what it was
            read = read_sample(dataset, index)
        line.send(read)
