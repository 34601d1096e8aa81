"""Corrupt on a device: the images of a batch, whatever their sizes, in one go for each condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from stormproof.core.condition import Condition
from stormproof.core.errors import StormproofError
from stormproof.core.forms import Size
from stormproof.core.randomness import Frame
from stormproof.core.sample import Camera, Sample, Truth
from stormproof.corruptions import truth_under
from stormproof.corruptions.chain import needs
from stormproof.corruptions.on_device import check_device, corrupt_batch, download, upload
from stormproof.engine.failures import Failure
from stormproof.engine.stages import DecodedImage, PreparedCell, Wanted
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.work import Times
from stormproof.imaging.gpu.batch import squared_differences
from stormproof.metrics.quality import ImageChange, change_from_sums

if TYPE_CHECKING:
    from torch import Tensor


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


class Made(NamedTuple):
    """Cells of one condition; if they are on CUDA, also its tensor, and the event that ends its kernels."""

    cells: Sequence[PreparedCell | Failure]
    images: Any = None
    end: Any = None


class DeviceCorruptor:
    """Corrupts uploaded images in batches; `on_host` does what the device cannot.

    With `keep` their images stay on the device, as tensors, else they are arrays. On CUDA it has a stream of
    its own: kernels that another thread launches run where those of the model leave room.
    """

    def __init__(self, on_host: Corruptor, device: str, seed: int, times: Times, *, keep: bool) -> None:
        check_device(device)  # on this machine, which may not be the one that planned
        self._on_host, self._device, self._seed, self._times = on_host, device, seed, times
        self._keep = keep
        self._stream = _own_stream(device)
        if self._stream is not None:  # tables that other code made are ready before they are used
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def upload(self, reads: Sequence[DecodedImage]) -> list[UploadedImages]:
        """Images on the device: those in grey together, and those in colour."""
        start = perf_counter()
        with self._launching():
            batches = upload([read.sample.image for read in reads], self._device)
            uploaded = [UploadedImages(tuple(reads[i] for i in members), batch) for members, batch in batches]
        self._times.corrupt += perf_counter() - start
        return uploaded

    def under_all(
        self, batches: Sequence[UploadedImages], conditions: Sequence[Condition], wanted: Wanted,
        run: Callable[[Callable[[Job], Made], Iterator[Job]], Iterable[Made]] = map,
    ) -> Iterator[PreparedCell | Failure]:  # fmt: skip
        """The wanted cells of some images, condition by condition; `run` may make some ahead."""
        for made in run(self, self._jobs(batches, conditions, wanted)):
            if made.end is not None:  # this thread calls the model: its stream waits for their kernels
                mine = torch.cuda.current_stream(self._device)
                mine.wait_event(made.end)
                made.images.record_stream(mine)
            yield from made.cells

    def __call__(self, job: Job) -> Made:
        """The cells of some images under a condition; a bad image fails alone."""
        start, (batch, condition) = perf_counter(), job
        try:
            with self._launching():
                made = corrupt_batch(
                    batch.images, condition, ids=batch.identities, seed=self._seed,
                    depth=_depths(batch, condition), cameras=batch.cameras, sizes=batch.padded_sizes,
                )  # fmt: skip
                changes = _changes(batch, made, self._launching)
                images = _tensors(made, batch.sizes) if self._keep else download(made, batch.sizes)
            cells = [
                PreparedCell(
                    read.index, read.sample.id, condition, image, size,
                    partial(self._truth, read.sample, size, condition), read.content, partial(changes, i),
                )
                for i, (read, image, size) in enumerate(zip(batch.reads, images, batch.sizes, strict=True))
            ]  # fmt: skip
            return Made(cells, made, None if self._stream is None else self._stream.record_event())
        except StormproofError:
            return Made([self._on_host(read, condition) for read in batch.reads])
        except Exception as error:  # of the device: all images failed; the CPU must not take over silently
            cause = partial(Failure.of, error, condition=condition, kind="corruption")
            return Made([cause(read.index, read.sample.id) for read in batch.reads])
        finally:
            self._times.corrupt += perf_counter() - start

    def _jobs(
        self, batches: Sequence[UploadedImages], conditions: Sequence[Condition], wanted: Wanted
    ) -> Iterator[Job]:
        """The batches that are wanted under each condition; some images of one are copied from it on the
        stream that uploaded it, and which may not have done so yet."""
        whole = [all(len(wanted[read.index]) == len(conditions) for read in one.reads) for one in batches]
        for condition in conditions:
            for batch, all_wanted in zip(batches, whole, strict=True):
                with self._launching():
                    chosen = batch if all_wanted else batch.under(condition, wanted)
                if len(chosen):
                    yield chosen, condition

    def _launching(self) -> AbstractContextManager[Any]:
        """Kernels are launched on its own stream."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _truth(self, sample: Sample, size: Size, condition: Condition) -> Truth:
        return truth_under(sample.truth, size, condition, seed=self._seed, image_id=sample.frame)


@cache
def _own_stream(device: str) -> Any:
    """The stream of corruption, the same for all chunks: a stream has its own memory, and tables that stay
    on the device may be freed only when nothing reads them any more, which is known within one stream."""
    on_cuda = torch.device(device).type == "cuda"
    return torch.cuda.Stream(device) if on_cuda else None  # type: ignore[no-untyped-call]


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


def _changes(
    batch: UploadedImages, made: Tensor, launching: Callable[[], AbstractContextManager[Any]]
) -> Callable[[int], ImageChange]:
    """How far the images of a batch are from the clean ones.

    Sums are of integers, so they are as exact as on the CPU; the padding is 0 before and after. They are
    fetched when a row asks for them, by when the model has waited for the device anyway.
    """
    sums = torch.stack([squared_differences(batch.images, made), batch.power])
    values = [batch.images.shape[1] * height * width for height, width in batch.sizes]

    @cache
    def fetch() -> list[ImageChange]:
        with launching():
            noise, power = sums.tolist()
        return [*map(change_from_sums, noise, power, values)]

    return lambda row: fetch()[row]
