"""Chunks whose images are corrupted on a device: some images at a time, one batch per condition.

An image is decoded once for all its conditions, by a thread that reads ahead of the device. Rows wait until
all conditions of those images are done, then are returned in the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import torch

from stormproof.core.condition import Condition
from stormproof.core.errors import StormproofError
from stormproof.core.sample import Image
from stormproof.corruptions import find, truth_under
from stormproof.corruptions.on_device import check_device, corrupt_batch, download, upload
from stormproof.engine.cells import ChunkRunner, DecodedImage, PreparedCell, Wanted
from stormproof.engine.guard import describe, trace_of
from stormproof.engine.work import Failure
from stormproof.metrics.quality import Change, change_from_sums
from stormproof.results.store.schema import Row

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Clean images of one shape on the device."""

    indices: tuple[int, ...]
    reads: tuple[DecodedImage, ...]
    images: Tensor  # N×C×H×W

    def under(self, condition: Condition, wanted: Wanted) -> _Group:
        """The images that are wanted under a condition."""
        rows = [i for i, index in enumerate(self.indices) if condition in wanted[index]]
        if len(rows) == len(self.indices):
            return self
        indices, reads = tuple(self.indices[i] for i in rows), tuple(self.reads[i] for i in rows)
        return _Group(indices, reads, self.images[rows])


class DeviceChunkRunner(ChunkRunner):
    """One attempt at the cells of a chunk whose images are corrupted on a device."""

    def rows(self, wanted: Wanted) -> Iterator[Row | Failure]:
        check_device(str(self._config.device))  # on this machine, which may not be the one that planned
        with ThreadPoolExecutor(1) as self._reader:  # one: a dataset need not support two readers
            indices = iter(wanted)
            ahead = self._read_ahead(islice(indices, self._config.batch))
            while ahead:
                reads = {index: future.result() for index, future in ahead.items()}
                ahead = self._read_ahead(islice(indices, self._config.batch))
                yield from sorted(self._run_images(reads, wanted), key=lambda outcome: outcome.cell)

    def _read_ahead(self, indices: Iterator[int]) -> dict[int, Future[DecodedImage | Exception]]:
        read = super()._decode
        return {index: self._reader.submit(read, index) for index in indices}

    def _decode(self, index: int) -> DecodedImage | Exception:
        return self._reader.submit(super()._decode, index).result()

    def _run_images(
        self, reads: Mapping[int, DecodedImage | Exception], wanted: Wanted
    ) -> Iterator[Row | Failure]:
        """The outcomes of some images, condition by condition."""
        for index, error in reads.items():
            if isinstance(error, Exception):
                name, kind, trace = self._pair.dataset.ids[index], "image", trace_of(error)
                for condition in wanted[index]:
                    yield Failure(index, name, str(condition), kind, describe(error), trace)
        groups = self._groups({i: read for i, read in reads.items() if isinstance(read, DecodedImage)})
        for condition in self._work.conditions:
            for group in groups:
                cells = self._corrupt_group(group.under(condition, wanted), condition)
                yield from self._run_batch(cells)

    def _groups(self, reads: Mapping[int, DecodedImage]) -> list[_Group]:
        assert self._config.device is not None
        start, indices = perf_counter(), tuple(reads)
        clean = [read.sample.image for read in reads.values()]
        groups = [
            _Group(tuple(indices[i] for i in rows), tuple(reads[indices[i]] for i in rows), images)
            for rows, images in upload(clean, self._config.device)
        ]
        self._times.corrupt += perf_counter() - start
        return groups

    def _corrupt_group(self, group: _Group, condition: Condition) -> list[PreparedCell | Failure]:
        """The cells of a group under a condition; a bad image fails alone."""
        if not group.indices:
            return []
        start = perf_counter()
        try:
            ids = [read.sample.frame for read in group.reads]
            depth = _depths(group, condition)
            cameras = [read.sample.context.camera for read in group.reads]
            made = corrupt_batch(
                group.images, condition, ids=ids, seed=self._config.seed, depth=depth, cameras=cameras
            )
            changes, images = _changes(group.images, made), self._for_model(made)
        except StormproofError:
            return [
                self._corrupt(read, index, condition)
                for index, read in zip(group.indices, group.reads, strict=True)
            ]
        except Exception as error:  # of the device: all images failed; the CPU must not take over silently
            words, trace = describe(error), trace_of(error)
            return [
                Failure(index, read.sample.id, str(condition), "corruption", words, trace)
                for index, read in zip(group.indices, group.reads, strict=True)
            ]
        else:
            return [
                self._prepared(*cell, condition)
                for cell in zip(group.indices, group.reads, images, changes, strict=True)
            ]
        finally:
            self._times.corrupt += perf_counter() - start

    def _prepared(
        self, index: int, read: DecodedImage, image: Image, moved: Change, condition: Condition
    ) -> PreparedCell:
        sample, size = read.sample, (image.shape[0], image.shape[1])
        truth = truth_under(sample.truth, size, condition, seed=self._config.seed, image_id=sample.frame)
        return PreparedCell(index, sample.id, condition, image, truth, read.content, moved)

    def _for_model(self, made: Tensor) -> Sequence[Image]:
        """H×W×C each: tensors on the device if the model takes them, else arrays."""
        if not getattr(self._model, "takes_tensors", False):
            arrays: Sequence[Image] = download(made)
            return arrays
        return list(made.expand(-1, 3, -1, -1).permute(0, 2, 3, 1))


def _depths(group: _Group, condition: Condition) -> Tensor | None:
    """The depth maps of a group, if the corruption needs them and every image has one."""
    if condition.corruption is None or not find(condition.corruption).needs:
        return None
    maps = [read.sample.context.depth for read in group.reads]
    if any(depth is None for depth in maps):
        return None
    return torch.from_numpy(np.stack([depth for depth in maps if depth is not None])).to(group.images.device)


def _changes(clean: Tensor, made: Tensor) -> list[Change]:
    """The distance of each image from its clean one, in integers, so that sums are as exact as on the CPU."""
    before, after = clean.int(), made.int()
    noise, power = ((values**2).flatten(1).sum(1).tolist() for values in (after - before, before))
    values = clean[0].numel()
    return [change_from_sums(*sums, values) for sums in zip(noise, power, strict=True)]
