"""Where batches live: a device by name, and images on their way there and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.corruptions.on_device import corrupt_batch, import_torch
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Image

if TYPE_CHECKING:
    from torch import Tensor


def check_device(name: str) -> None:
    """Say in one line why there is no such device here."""
    torch = import_torch()
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cuda", "cpu"):
        raise InvalidOption(f"There is no device {name!r}; write cuda, cuda:1 or cpu.")
    if device.type == "cpu":
        return
    if torch.version.cuda is None and torch.version.hip is None:
        fix = "install a torch for CUDA, or give --device cpu"
        raise InvalidOption(f"device {name}: torch {torch.__version__} is built without CUDA; {fix}.")
    try:
        torch.cuda.init()
        count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:  # no driver, one too old for this torch, or no GPU
        why = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise InvalidOption(f"device {name}: {why}. Without --device corruption runs on the CPU.") from None
    if (device.index or 0) >= count:
        raise InvalidOption(f"device {name}: this machine has {count}, cuda:0 to cuda:{count - 1}.")


def upload(images: Sequence[Image], device: str) -> Iterator[tuple[list[int], Tensor]]:
    """Images of one shape together, N×C×H×W on the device, with their places in `images`."""
    torch = import_torch()
    places: dict[tuple[int, ...], list[int]] = {}
    for i, image in enumerate(images):
        places.setdefault(image.shape, []).append(i)
    for shape, members in places.items():
        stack = np.stack([images[i] for i in members]).reshape(len(members), *shape[:2], -1)
        yield members, torch.from_numpy(stack).to(device).permute(0, 3, 1, 2)


def download(batch: Tensor) -> Any:
    """The batch as an array N×H×W×C."""
    return batch.permute(0, 2, 3, 1).contiguous().cpu().numpy()


def corrupt_images(
    images: Sequence[Image], condition: Condition | str, *, ids: Sequence[str], seed: int, device: str
) -> list[Image]:
    """`corrupt_image` of each, computed on a device in batches of one size."""
    made: dict[int, Image] = {}
    for members, batch in upload(images, device):
        corrupted = download(corrupt_batch(batch, condition, ids=[ids[i] for i in members], seed=seed))
        made |= {i: one.reshape(images[i].shape) for i, one in zip(members, corrupted, strict=True)}
    return [made[i] for i in range(len(images))]
