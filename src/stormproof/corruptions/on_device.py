"""Corrupting batches on a device: the same recipes over the GPU primitives, with the same pixels."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stormproof import imaging
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.forms import Size
from stormproof.core.loading import framework
from stormproof.core.randomness import Draw, Frame
from stormproof.core.sample import Camera, Image
from stormproof.corruptions.chain import Step, steps
from stormproof.corruptions.corruption import Corruption
from stormproof.corruptions.geometry import move_map
from stormproof.corruptions.needs import missing, pinhole, refuse_part, usable_depth
from stormproof.corruptions.plugins import is_plugin

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)


# Bytes that a recipe may need per byte of its image; fog's clouds and the DCT's planes take most.
_WORKING = 160
_SHARE = 0.5  # of the device's free memory; the model needs some too
_ASKED_EVERY = 1.0  # seconds between two looks at free memory, which take as long as a few recipes
_LAUNCH = 65_535  # planes in one launch of a kernel: CUDA's limit on the second side of its grid


def corrupt_batch(
    images: Tensor,
    condition: Condition | str,
    *,
    ids: Sequence[str | Frame] = (),
    seed: int = 0,
    depth: Tensor | None = None,
    cameras: Sequence[Camera | None] | None = None,
    sizes: Sequence[tuple[int, int]] | None = None,
) -> Tensor:
    """A batch of images under a condition, as a new tensor on the same device.

    `images` is uint8, N×3×H×W (N×1×H×W for grey), or floats from 0 to 1, which are rounded to 8 bits and
    returned as floats. The pixels equal those of `corrupt_image` for the same ids and seed; frames of clips
    are identified by a `Frame` instead of an id. `depth` is N×H×W in metres, for corruptions that need it,
    and `cameras` gives focal lengths where they are known. `sizes` gives the (height, width) of images that
    lie in the top left corners of one padded batch; the padding stays unchanged. Most recipes treat all sizes
    at once, the others one size after another. A batch that is too large for the device's memory is split.

    >>> import torch
    >>> corrupt_batch(torch.full((2, 3, 8, 8), 128, dtype=torch.uint8), "contrast@3").shape
    torch.Size([2, 3, 8, 8])
    """
    torch = _torch()
    _check(images, ids, sizes, depth, cameras)
    condition = Condition.parse(condition) if isinstance(condition, str) else condition
    check_on_device(condition)
    if condition.is_clean or len(images) == 0:
        return images.clone()
    if images.is_floating_point():
        pixels = (images * 255).round().to(torch.uint8)
        rest: dict[str, Any] = {"depth": depth, "cameras": cameras, "sizes": sizes}
        made = corrupt_batch(pixels, condition, ids=ids, seed=seed, **rest)
        return made.to(images.dtype) / 255
    every = steps(condition)
    _check_given(every, ids, depth)
    known = None if sizes is None else _sizes(images, sizes)
    for step in every:
        made = _apply(_Whole(images, ids, depth, cameras, known), step, seed)
        if step.moves_labels and depth is not None and _uses_depth(every[step.place + 1 :]):
            depth = _move_depth(depth, step, ids, seed, _sizes(images, sizes))
        images = made
    return images


class _Whole(NamedTuple):
    """A batch as it is given: N×C×H×W, with ids, depth, cameras, and sizes unless all are the batch's own."""

    images: Tensor
    ids: Sequence[str | Frame]
    depth: Tensor | None
    cameras: Sequence[Camera | None] | None
    sizes: list[Size] | None


def _check_given(every: Sequence[Step], ids: Sequence[str | Frame], depth: Tensor | None) -> None:
    """Refuse a batch without depth or ids where a step needs them."""
    for corruption, condition, _ in every:
        if "depth" in corruption.needs and depth is None:
            raise missing(corruption.name)
        if corruption.is_random and not ids:
            fix = "give ids=[…], one string per image, always the same for the same image"
            raise InvalidOption(f"{condition} draws random numbers by image id; {fix}.")


def _uses_depth(every: Sequence[Step]) -> bool:
    return any("depth" in step.corruption.needs for step in every)


def _move_depth(
    depth: Tensor, step: Step, ids: Sequence[str | Frame], seed: int, sizes: Sequence[Size]
) -> Tensor:
    """Depth where the pixels are after a step that moves them, as on the CPU."""
    torch = _torch()
    host = depth.cpu().numpy().copy()
    for row, (height, width) in enumerate(sizes):
        index = imaging.sources(*step.field((height, width), ids[row] if ids else "", seed))
        host[row, :height, :width] = move_map(host[row, :height, :width], index, np.nan)
    moved: Tensor = torch.from_numpy(host).to(depth.device)
    return moved


def _apply(batch: _Whole, step: Step, seed: int) -> Tensor:
    """A new batch under one step of a condition."""
    torch = _torch()
    from stormproof.imaging.gpu.batch import pixels_of, planes_of

    images, ids, depth, cameras, sizes = batch
    corruption, condition, _ = step
    depth = depth if "depth" in corruption.needs else None
    draws = step.draws(ids, seed) if corruption.is_random else ()
    known = _sizes(images, sizes)
    groups = _by_size(known)
    if len(groups) > 1 and _takes_sizes(corruption, condition):
        at_once = _at_once(images, corruption, condition, draws, known)
        if at_once is not None:
            return at_once
    out = images.clone() if sizes is not None else torch.empty_like(images)
    for (height, width), members in groups.items():
        for chunk in _chunks(members, _most_at_once(images, height, width)):
            rows = _places(chunk)
            part = pixels_of(images[rows, :, :height, :width])
            metres = None if depth is None else depth[rows, :height, :width]
            seen_by = [None if cameras is None else cameras[i] for i in chunk]
            own = (
                draws[rows] if isinstance(rows, slice) else [draws[i] for i in chunk if corruption.is_random]
            )
            made = _corrupt(_SameSize(part, own, metres, seen_by), corruption, condition)
            if made.data_ptr() == images.data_ptr():  # the recipe returned its input
                made = made.clone()
            if len(chunk) == len(images) and sizes is None:
                return planes_of(made, like=images)
            out[rows, :, :height, :width] = made.permute(0, 3, 1, 2)
    return out


def _takes_sizes(corruption: Corruption, condition: Condition) -> bool:
    """Whether a recipe may be tried on several sizes at once: its parameters are the same for all of them."""
    scaled = "scale" in dict(condition.params) and "scale" not in corruption.ladders
    return not corruption.needs and not scaled


def _at_once(
    images: Tensor, corruption: Corruption, condition: Condition, draws: Sequence[Draw], sizes: list[Size]
) -> Tensor | None:
    """Images of several sizes in one go; None if the recipe needs images of one size."""
    from stormproof.imaging.gpu.batch import OneByOne
    from stormproof.imaging.gpu.draws import Draws
    from stormproof.imaging.gpu.each import BySize
    from stormproof.imaging.gpu.ragged import Ragged, put_back, ragged_images
    from stormproof.imaging.gpu.tensors import device

    torch = _torch()
    values = corruption.parameters(condition)
    out: Tensor = torch.empty_like(images)
    recipe: Callable[..., Any] = corruption.recipe
    height, width = images.shape[2:]
    try:
        with imaging.on_device(), device(images.device):
            for chunk in _chunks(list(range(len(images))), _most_at_once(images, height, width)):
                rows = slice(chunk[0], chunk[-1] + 1)
                batch = ragged_images(images[rows], sizes[rows])
                made = recipe(batch, *((Draws(draws[rows]),) if corruption.is_random else ()), **values)
                if not isinstance(made, Ragged):
                    return None
                put_back(made, images[rows], out[rows])
    except (BySize, OneByOne):
        return None
    return out


def check_on_device(condition: Condition) -> None:
    """Refuse a condition that cannot be applied to batches on a device."""
    for corruption, part, _ in steps(condition):
        refuse_part(part)
        corruption.parameters(part)
        why = "its plugin is written for one image" if is_plugin(corruption) else corruption.one_image_only
        if why:
            fix = "leave --device out, or use corrupt_image"
            raise InvalidOption(f"{part} cannot run on batches on a device: {why}; {fix}.")


def _check(
    images: Tensor, ids: Sequence[str | Frame], sizes: Any, depth: Tensor | None, cameras: Any
) -> None:
    torch = _torch()
    tensor = isinstance(images, torch.Tensor)
    if not tensor or not (images.dtype == torch.uint8 or images.is_floating_point()) or images.ndim != 4:
        kind = f"{images.dtype} {tuple(images.shape)}" if tensor else type(images).__name__
        raise InvalidImage(
            f"A batch must be a tensor of N×3×H×W or N×1×H×W, uint8 or floats from 0 to 1, not {kind}."
        )
    if images.shape[1] not in (1, 3) or 0 in images.shape[2:]:
        raise InvalidImage(
            f"A batch must be N×3×H×W or N×1×H×W with pixels in it, not {tuple(images.shape)}."
        )
    if images.is_floating_point() and not bool(((images >= 0) & (images <= 1)).all()):
        low, high = images.min().item(), images.max().item()
        raise InvalidImage(
            f"A batch of floats must lie in 0 … 1, not {low:.3g} to {high:.3g}; corrupt images before they "
            "are normalised."
        )
    for name, given in (("ids", ids), ("sizes", sizes), ("depth", depth), ("cameras", cameras)):
        if given is not None and len(given) not in (len(images), 0 if name == "ids" else -1):
            raise InvalidOption(
                f"{name} has {len(given)} entries for {len(images)} images; give one per image."
            )
    if depth is not None and (depth.ndim != 3 or depth.shape[1:] != images.shape[2:]):
        raise InvalidOption(f"depth must be N×H×W like the images, not {tuple(depth.shape)}.")


def _sizes(images: Tensor, sizes: Any) -> list[Size]:
    """The size of each image."""
    whole = (int(images.shape[2]), int(images.shape[3]))
    if sizes is None:
        return [whole] * len(images)
    known = [(int(height), int(width)) for height, width in sizes]
    for i, size in enumerate(known):
        if not (0 < size[0] <= whole[0] and 0 < size[1] <= whole[1]):
            raise InvalidOption(f"sizes[{i}] is {size}; it must lie within the batch's {whole}.")
    return known


def _by_size(sizes: list[Size]) -> dict[Size, list[int]]:
    """For each size, the rows of its images."""
    members: dict[Size, list[int]] = {}
    for row, size in enumerate(sizes):
        members.setdefault(size, []).append(row)
    return members


def _most_at_once(images: Tensor, height: int, width: int) -> int:
    """How many images of a size fit in the device's memory, and in one launch, at once."""
    if not images.is_cuda:
        return len(images)
    need = _WORKING * images.shape[1] * height * width
    return min(max(int(_SHARE * _free_memory(images.device)) // need, 1), _LAUNCH // images.shape[1])


_FREE: dict[Any, tuple[float, int]] = {}  # device → when its memory was looked at, and the bytes then free


def _free_memory(device: Any) -> int:
    """Bytes of a device that this process could take, now or a moment ago."""
    asked, free = _FREE.get(device, (-_ASKED_EVERY, 0))
    now = time.monotonic()
    if now - asked >= _ASKED_EVERY:
        torch = _torch()
        free = torch.cuda.mem_get_info(device)[0]
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        _FREE[device] = now, free
    return free


def _chunks(members: list[int], most: int) -> Iterator[list[int]]:
    if len(members) > most:
        count = len(members)
        log.info("A batch of %d images is split into parts of %d to fit on the device.", count, most)
    for start in range(0, len(members), most):
        yield members[start : start + most]


def _places(members: list[int]) -> slice | list[int]:
    """Rows of a batch; consecutive ones as a slice, which torch does not copy."""
    run = members == list(range(members[0], members[0] + len(members)))
    return slice(members[0], members[-1] + 1) if run else members


class _SameSize(NamedTuple):
    """Images of one size, N×H×W×C, with the draws, depth and cameras that belong to them."""

    images: Tensor
    draws: Sequence[Draw]  # none if the recipe draws nothing
    depth: Tensor | None
    cameras: list[Camera | None]

    def one_by_one(self) -> Iterator[_SameSize]:
        for row in (slice(i, i + 1) for i in range(len(self.images))):
            depth = None if self.depth is None else self.depth[row]
            yield _SameSize(self.images[row], self.draws[row], depth, self.cameras[row])


def _corrupt(part: _SameSize, corruption: Corruption, condition: Condition) -> Tensor:
    """N×H×W×C under a condition, in one go or, if the recipe needs it, image by image."""
    from stormproof.imaging.gpu.batch import OneByOne
    from stormproof.imaging.gpu.tensors import device

    torch = _torch()
    with imaging.on_device(), device(part.images.device):
        if part.depth is not None:
            part = part._replace(depth=_usable(part.depth, corruption.name))
        try:
            return _apply_to_part(part, corruption, condition)
        except OneByOne:
            batch: Tensor = torch.cat(
                [_apply_to_part(one, corruption, condition) for one in part.one_by_one()]
            )
            return batch


def _usable(depth: Tensor, user: str) -> Tensor:
    torch = _torch()
    host = depth.cpu().numpy()
    checked = [usable_depth(one, one.shape, user) for one in host]
    usable: Tensor = torch.from_numpy(np.stack(checked)).to(depth.device)
    return usable


def _apply_to_part(part: _SameSize, corruption: Corruption, condition: Condition) -> Tensor:
    from stormproof.imaging.gpu.batch import Batch, OneByOne
    from stormproof.imaging.gpu.draws import Draws

    recipe: Callable[..., Any] = corruption.recipe
    images, draws, depth, cameras = part
    values = corruption.parameters(condition, images.shape[1:3])
    scene: dict[str, Any] = (
        {"depth": Batch(depth)} if "depth" in corruption.needs and depth is not None else {}
    )
    if "camera" in corruption.needs:
        if any(other != cameras[0] for other in cameras):
            raise OneByOne
        size = (int(images.shape[1]), int(images.shape[2]))
        scene["camera"] = cameras[0] or pinhole(size, float(values.pop("view")))
        values.pop("view", None)
    drawn = (Draws(draws),) if corruption.is_random else ()
    made: Batch = recipe(Batch(images), *drawn, **scene, **values)
    data: Tensor = made.data
    return data


def check_device(name: str) -> None:
    """Raise an error if this machine has no such device."""
    torch = _torch()
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cuda", "cpu"):
        raise InvalidOption(f"There is no device {name!r}; write cuda, cuda:1 or cpu.")
    if device.type == "cpu":
        return
    if torch.version.cuda is None and torch.version.hip is None:
        fix = "install torch with CUDA, or use --device cpu"
        raise InvalidOption(f"device {name}: torch {torch.__version__} is built without CUDA; {fix}.")
    try:
        torch.cuda.init()
        count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:  # no driver, a driver too old for this torch, or no GPU
        why = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise InvalidOption(f"device {name}: {why}. Without --device, corruption runs on the CPU.") from None
    if (device.index or 0) >= count:
        raise InvalidOption(f"device {name}: this machine has {count} GPUs, cuda:0 to cuda:{count - 1}.")


def upload(images: Sequence[Image], device: str) -> Iterator[tuple[list[int], Tensor]]:
    """Images of any sizes, those in grey together and those in colour: their positions in `images`, and
    N×C×H×W on the device, each in the upper left corner, in the padding that recipes need."""
    torch = _torch()
    from stormproof.imaging.gpu.ragged import STEP

    by_channels: dict[int, list[int]] = {}
    for i, image in enumerate(images):
        by_channels.setdefault(image[0, 0].size, []).append(i)
    for channels, members in by_channels.items():
        sizes = {images[i].shape[:2] for i in members}
        step = STEP if len(sizes) > 1 else 1
        height, width = (-(-max(size[axis] for size in sizes) // step) * step for axis in (0, 1))
        stack = np.zeros((len(members), height, width, channels), np.uint8)
        for place, i in zip(stack, members, strict=True):
            place[: images[i].shape[0], : images[i].shape[1]] = images[i].reshape(*images[i].shape[:2], -1)
        yield members, torch.from_numpy(stack).to(device).permute(0, 3, 1, 2).contiguous()


def download(batch: Tensor, sizes: Sequence[Size]) -> list[Image]:
    """Images of a batch as arrays H×W×C on the host."""
    host = batch.permute(0, 2, 3, 1).contiguous().cpu().numpy()
    return [np.ascontiguousarray(image[:h, :w]) for image, (h, w) in zip(host, sizes, strict=True)]


def corrupt_images(
    images: Sequence[Image], condition: Condition | str, *, ids: Sequence[str | Frame], seed: int, device: str
) -> list[Image]:
    """`corrupt_image` for each image, computed on a device in batches of any sizes."""
    made: dict[int, Image] = {}
    for members, batch in upload(images, device):
        sizes = [(images[i].shape[0], images[i].shape[1]) for i in members]
        own = [ids[i] for i in members]
        corrupted = download(corrupt_batch(batch, condition, ids=own, seed=seed, sizes=sizes), sizes)
        made |= {i: one.reshape(images[i].shape) for i, one in zip(members, corrupted, strict=True)}
    return [made[i] for i in range(len(images))]


def _torch() -> Any:
    return framework("torch", extra="gpu")
