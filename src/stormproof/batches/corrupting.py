"""Batches of images on a device: the same recipes over the GPU set of primitives, the same pixels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof import imaging
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.loading import framework
from stormproof.core.randomness import Draw
from stormproof.corruptions.needs import missing, usable_depth
from stormproof.corruptions.plugins import is_plugin
from stormproof.corruptions.registry import Corruption, find, refuse_part

if TYPE_CHECKING:
    from torch import Tensor

ALONE = {"style": "it needs a network of its own"}  # corruptions of single images only, and why

log = logging.getLogger(__name__)

# Bytes a recipe may need at once for each byte of its image; fog's clouds and the DCT's planes take most.
_WORKING = 160
_SHARE = 0.5  # of the device's free memory, which the model needs too


def corrupt_batch(
    images: Tensor,
    condition: Condition | str,
    *,
    ids: Sequence[str] = (),
    seed: int = 0,
    depth: Tensor | None = None,
    sizes: Sequence[tuple[int, int]] | None = None,
) -> Tensor:
    """A batch of images under a condition, on the device where they are; a new tensor.

    `images` is uint8, N×3×H×W (N×1×H×W for grey). The pixels are those of `corrupt_image` with the same ids
    and seed. `depth` is N×H×W in metres, for corruptions that need it. With `sizes`, (height, width) of each,
    images of different sizes lie in the top left corners of one padded batch; what lies beyond stays as it
    is. A batch too large for the device's memory is split.

    >>> import torch
    >>> corrupt_batch(torch.full((2, 3, 8, 8), 128, dtype=torch.uint8), "contrast@3").shape
    torch.Size([2, 3, 8, 8])
    """
    torch = import_torch()
    from stormproof.imaging.gpu.layout import pixels_of, planes_of

    _check(images, ids, sizes, depth)
    condition = Condition.parse(condition) if isinstance(condition, str) else condition
    check_offered(condition)
    if condition.corruption is None or len(images) == 0:
        return images.clone()
    found = find(condition.corruption)
    if found.needs and depth is None:
        raise missing(found.name)
    if found.is_random and not ids:
        fix = "give ids=[…], one string for each image, the same whenever it is the same image"
        raise InvalidOption(f"{condition} draws at random by image; {fix}.")
    draws = [Draw.keyed(seed, name, found.name, condition.rung or 0) for name in ids or [""] * len(images)]
    out = images.clone() if sizes is not None else torch.empty_like(images)
    for (height, width), members in _groups(images, sizes):
        for chunk in _chunks(members, _room(images, height, width)):
            rows = _places(chunk)
            part = pixels_of(images[rows, :, :height, :width])
            scene = None if depth is None else depth[rows, :height, :width]
            made = _corrupted(part, [draws[i] for i in chunk], found, condition, scene)
            made = made.clone() if made.data_ptr() == images.data_ptr() else made  # nothing was to be done
            if len(chunk) == len(images) and sizes is None:
                return planes_of(made, like=images)
            out[rows, :, :height, :width] = made.permute(0, 3, 1, 2)
    return out


def check_offered(condition: Condition) -> None:
    """Refuse a condition that only single images can be put under."""
    refuse_part(condition)
    if condition.corruption is None:
        return
    found = find(condition.corruption)
    found.parameters(condition)
    why = ALONE.get(found.name)
    if is_plugin(found):
        why = "it comes from a plugin, which is written for one image"
    if why is not None:
        fix = "leave --device out, or take corrupt_image"
        raise InvalidOption(f"{condition} is not offered for batches on a device: {why}; {fix}.")


def import_torch() -> Any:
    """torch, or one line on how to get it."""
    return framework("torch", extra="gpu")


def _check(images: Tensor, ids: Sequence[str], sizes: Any, depth: Tensor | None) -> None:
    torch = import_torch()
    if not isinstance(images, torch.Tensor) or images.dtype != torch.uint8 or images.ndim != 4:
        found = (
            f"{images.dtype} {tuple(images.shape)}"
            if isinstance(images, torch.Tensor)
            else type(images).__name__
        )
        raise InvalidImage(f"A batch must be a uint8 tensor of N×3×H×W or N×1×H×W, not {found}.")
    if images.shape[1] not in (1, 3) or 0 in images.shape[2:]:
        raise InvalidImage(
            f"A batch must be N×3×H×W or N×1×H×W with pixels in it, not {tuple(images.shape)}."
        )
    for name, given in (("ids", ids), ("sizes", sizes), ("depth", depth)):
        if given is not None and len(given) not in (len(images), 0 if name == "ids" else -1):
            raise InvalidOption(
                f"{name} has {len(given)} entries for {len(images)} images; give one for each."
            )
    if depth is not None and (depth.ndim != 3 or depth.shape[1:] != images.shape[2:]):
        raise InvalidOption(f"depth must be N×H×W like the images, not {tuple(depth.shape)}.")


def _groups(images: Tensor, sizes: Any) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """Images of one size, together."""
    whole = (int(images.shape[2]), int(images.shape[3]))
    members: dict[tuple[int, int], list[int]] = {}
    for i in range(len(images)):
        size = whole if sizes is None else (int(sizes[i][0]), int(sizes[i][1]))
        if not (0 < size[0] <= whole[0] and 0 < size[1] <= whole[1]):
            raise InvalidOption(f"sizes[{i}] is {size}; it must lie within the batch's {whole}.")
        members.setdefault(size, []).append(i)
    yield from members.items()


def _room(images: Tensor, height: int, width: int) -> int:
    """How many images of a size fit the device's memory at once."""
    if not images.is_cuda:
        return len(images)
    torch = import_torch()
    free = torch.cuda.mem_get_info(images.device)[0] + torch.cuda.memory_reserved(images.device)
    free -= torch.cuda.memory_allocated(images.device)
    return max(int(_SHARE * free) // (_WORKING * images.shape[1] * height * width), 1)


def _chunks(members: list[int], room: int) -> Iterator[list[int]]:
    if len(members) > room:
        log.info(
            "A batch of %d images is split into parts of %d to fit the device's memory.", len(members), room
        )
    for start in range(0, len(members), room):
        yield members[start : start + room]


def _places(members: list[int]) -> slice | list[int]:
    """Rows of a batch; neighbours as a slice, which torch need not copy."""
    run = members == list(range(members[0], members[0] + len(members)))
    return slice(members[0], members[-1] + 1) if run else members


def _corrupted(
    part: Tensor, draws: list[Draw], found: Corruption, condition: Condition, depth: Tensor | None
) -> Tensor:
    """N×H×W×C under a condition, at once or image by image."""
    from stormproof.imaging.gpu.batch import OneByOne
    from stormproof.imaging.gpu.tensors import device

    torch = import_torch()
    with imaging.on_device(), device(part.device):
        if depth is not None:
            depth = _usable(depth, found.name)
        try:
            return _applied(part, draws, found, condition, depth)
        except OneByOne:
            singles = (
                _applied(
                    part[i : i + 1],
                    draws[i : i + 1],
                    found,
                    condition,
                    None if depth is None else depth[i : i + 1],
                )
                for i in range(len(part))
            )
            together: Tensor = torch.cat(list(singles))
            return together


def _usable(depth: Tensor, user: str) -> Tensor:
    torch = import_torch()
    host = depth.cpu().numpy()
    checked = [usable_depth(one, one.shape, user) for one in host]
    usable: Tensor = torch.from_numpy(np.stack(checked)).to(depth.device)
    return usable


def _applied(
    part: Tensor, draws: list[Draw], found: Corruption, condition: Condition, depth: Tensor | None
) -> Tensor:
    from stormproof.imaging.gpu.batch import Batch
    from stormproof.imaging.gpu.draws import Draws

    recipe: Callable[..., Any] = found.recipe
    scene = {} if depth is None else {"depth": Batch(depth)}
    scene = {kind: scene[kind] for kind in found.needs}
    drawn = (Draws(draws),) if found.is_random else ()
    made: Batch = recipe(Batch(part), *drawn, **scene, **found.parameters(condition))
    data: Tensor = made.data
    return data
