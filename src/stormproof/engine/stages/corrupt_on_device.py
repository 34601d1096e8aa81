"""Corrupt on a device: the images of a batch, whatever their sizes, in one go for each condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stormproof.core.condition import Condition
from stormproof.core.errors import StormproofError
from stormproof.core.forms import Size
from stormproof.core.randomness import Frame
from stormproof.core.sample import Camera, Truth
from stormproof.corruptions import truth_under
from stormproof.corruptions.chain import needs
from stormproof.corruptions.on_device import check_device, corrupt_batch, download, upload
from stormproof.engine.failures import Failure
from stormproof.engine.stages import BatchedCell, DecodedImage, MadeImages, ReadyCell
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.work import Times
from stormproof.imaging.gpu.batch import squared_differences
from stormproof.metrics.quality import ImageChange, change_from_sums

if TYPE_CHECKING:
    from torch import Tensor

Wanted = Mapping[int, Sequence[Condition]]


@dataclass(frozen=True, eq=False)
class UploadedImages:
    """Clean images on a device, each in the top left corner of one padded batch."""

    reads: tuple[DecodedImage, ...]
    images: Tensor  # N×C×H×W

    @cached_property
    def sizes(self) -> list[Size]:
        return [(read.sample.image.shape[0], read.sample.image.shape[1]) for read in self.reads]

    @cached_property
    def identities(self) -> list[str | Frame]:
        """What random numbers are keyed by: plain ids, which are hashed together, unless there is a clip."""
        samples = [read.sample for read in self.reads]
        return [sample.frame if sample.sequence else sample.id for sample in samples]

    @cached_property
    def cameras(self) -> list[Camera | None]:
        return [read.sample.context.camera for read in self.reads]

    @cached_property
    def padded_sizes(self) -> list[Size] | None:
        return None if {*self.sizes} == {tuple(self.images.shape[2:])} else self.sizes

    @cached_property
    def power(self) -> Tensor:
        """The sum of the squares of each image's values."""
        return squared_differences(self.images, torch.zeros_like(self.images))

    def __len__(self) -> int:
        return len(self.reads)

    def under(self, condition: Condition, wanted: Wanted) -> UploadedImages:
        """The images that are wanted under a condition."""
        rows = [i for i, read in enumerate(self.reads) if condition in wanted[read.index]]
        if len(rows) == len(self.reads):
            return self
        return UploadedImages(tuple(self.reads[i] for i in rows), self.images[rows])


Job = tuple[UploadedImages, Condition]
Cells = Sequence[ReadyCell | Failure]


class DeviceCorruptor:
    """Corrupts uploaded images in batches; `on_host` does what the device cannot.

    With `keep` their images stay on the device, as tensors, else they are arrays. On CUDA it has a stream of
    its own, so that kernels which another thread launches run where the model leaves room.
    """

    def __init__(self, on_host: Corruptor, device: str, seed: int, times: Times, *, keep: bool) -> None:
        check_device(device)  # on this machine, which may not be the one that planned
        self._on_host, self._device, self._seed, self._times = on_host, device, seed, times
        self._keep = keep
        on_cuda = torch.device(device).type == "cuda"
        self._stream: Any = torch.cuda.Stream(device) if on_cuda else None  # type: ignore[no-untyped-call]

    def upload(self, reads: Sequence[DecodedImage]) -> list[UploadedImages]:
        """Images on the device: those in grey together, and those in colour."""
        start = perf_counter()
        with _on(self._stream):
            batches = upload([read.sample.image for read in reads], self._device)
            uploaded = [UploadedImages(tuple(reads[i] for i in members), batch) for members, batch in batches]
        self._times.corrupt += perf_counter() - start
        return uploaded

    def under_all(
        self, batches: Sequence[UploadedImages], conditions: Sequence[Condition], wanted: Wanted,
        run: Callable[[Callable[[Job], Cells], Iterator[Job]], Iterable[Cells]] = map,
    ) -> Iterator[ReadyCell | Failure]:  # fmt: skip
        """The wanted cells of some images, condition by condition; `run` may make some ahead."""
        for cells in run(self, _jobs(batches, conditions, wanted)):
            if isinstance(cells[0], BatchedCell):
                self._wait_for(cells[0].made)
            yield from cells

    def __call__(self, job: Job) -> Cells:
        """The cells of some images under a condition; a bad image fails alone."""
        start, (batch, condition) = perf_counter(), job
        try:
            with _on(self._stream):
                made = self._corrupted(batch, condition)
                images = _tensors(made, batch.sizes) if self._keep else download(made, batch.sizes)
                sums = _sums(batch, made)
            end = None if self._stream is None else self._stream.record_event()
            cells = CorruptedImages(batch, condition, images, made, sums, self._stream, end, self._seed)
            return [BatchedCell(cells, row) for row in range(len(batch))]
        except StormproofError:
            return [self._on_host(read, condition) for read in batch.reads]
        except Exception as error:  # of the device: all images failed; the CPU must not take over silently
            return [
                Failure.of(error, read.index, read.sample.id, condition, "corruption") for read in batch.reads
            ]
        finally:
            self._times.corrupt += perf_counter() - start

    def _wait_for(self, made: MadeImages) -> None:
        """Have the stream of this thread, which calls the model, wait for the kernels of some images."""
        assert isinstance(made, CorruptedImages)
        if made.end is not None:
            mine = torch.cuda.current_stream(self._device)
            mine.wait_event(made.end)
            made.whole.record_stream(mine)

    def _corrupted(self, batch: UploadedImages, condition: Condition) -> Tensor:
        return corrupt_batch(
            batch.images,
            condition,
            ids=batch.identities,
            seed=self._seed,
            depth=_depths(batch, condition),
            cameras=batch.cameras,
            sizes=batch.padded_sizes,
        )


def _jobs(
    batches: Sequence[UploadedImages], conditions: Sequence[Condition], wanted: Wanted
) -> Iterator[Job]:
    """The batches that are wanted under each condition."""
    whole = [all(len(wanted[read.index]) == len(conditions) for read in one.reads) for one in batches]
    for condition in conditions:
        for batch, all_wanted in zip(batches, whole, strict=True):
            chosen = batch if all_wanted else batch.under(condition, wanted)
            if len(chosen):
                yield chosen, condition


def _on(stream: Any) -> AbstractContextManager[Any]:
    return nullcontext() if stream is None else torch.cuda.stream(stream)


def _tensors(made: Tensor, sizes: Sequence[Size]) -> list[Any]:
    """H×W×3 each, on the device: one view each, as cutting sides one by one takes three times as long."""
    step, channel, row, column = made.expand(-1, 3, -1, -1).stride()
    start, strides = made.storage_offset(), (row, column, channel)
    return [made.as_strided((*size, 3), strides, start + i * step) for i, size in enumerate(sizes)]


def _depths(batch: UploadedImages, condition: Condition) -> Tensor | None:
    """The depth maps of a batch, if the condition needs them and every image has one."""
    if not needs(condition):
        return None
    maps = [read.sample.context.depth for read in batch.reads]
    if any(depth is None for depth in maps):
        return None
    padded = np.full((len(maps), *batch.images.shape[2:]), np.nan, np.float32)
    for row, depth in zip(padded, maps, strict=True):
        if depth is not None:
            row[: depth.shape[0], : depth.shape[1]] = depth
    return torch.from_numpy(padded).to(batch.images.device)


def _sums(batch: UploadedImages, made: Tensor) -> Tensor:
    """Of each image, the squares of how far its values are from the clean ones, and of the clean ones.

    Sums are of integers, so they are as exact as on the CPU; the padding is 0 before and after.
    """
    return torch.stack([squared_differences(batch.images, made), batch.power])


@dataclass(frozen=True, eq=False)
class CorruptedImages:
    """Uploaded images under a condition; what is not needed for the model is made when it is asked for."""

    batch: UploadedImages
    condition: Condition
    images: Sequence[Any]
    whole: Tensor
    sums: Tensor
    stream: Any  # of CUDA, on which they are made, and the event at their end
    end: Any
    seed: int

    @cached_property
    def reads(self) -> Sequence[DecodedImage]:
        return self.batch.reads

    @cached_property
    def sizes(self) -> Sequence[Size]:
        return self.batch.sizes

    @cached_property
    def _fetched(self) -> list[list[int]]:
        """Fetched when a row asks for them, by when the model has waited for the device anyway."""
        with _on(self.stream):
            sums: list[list[int]] = self.sums.tolist()
        return sums

    def change(self, row: int) -> ImageChange:
        (height, width), (noise, power) = self.sizes[row], (sums[row] for sums in self._fetched)
        return change_from_sums(noise, power, self.batch.images.shape[1] * height * width)

    def truth(self, row: int) -> Truth:
        sample, size = self.reads[row].sample, self.sizes[row]
        return truth_under(sample.truth, size, self.condition, seed=self.seed, image_id=sample.frame)
