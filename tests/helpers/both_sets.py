"""The same images through the CPU set, image by image, and through torch, as a batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from stormproof.core.condition import Condition
from stormproof.core.randomness import Frame
from stormproof.core.sample import Context, Sample
from stormproof.corruptions import CORRUPTIONS, SUITES, apply, find
from stormproof.corruptions.corruption import every_severity
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.corruptions.plugins import is_plugin

SUITES_HELD = (
    "imagenet-c", "holdout", "optics", "camera", "camera-variants", "mutators", "contextual",
    "foggy-cityscapes", "3dcc", "street-physics", "imagenet-c-bar",
)  # fmt: skip
_OF_SUITES = {name for suite in SUITES.values() for name in suite.corruptions}
_OF_NO_SUITE = [n for n, one in CORRUPTIONS.items() if n not in _OF_SUITES and not is_plugin(one)]
EVERY = (
    *dict.fromkeys(c for suite in SUITES_HELD for c in SUITES[suite].conditions),
    *(condition for name in _OF_NO_SUITE for condition in every_severity(name)),
)
IDS = ["left.png", "right.png"]
CLIP = [Frame("left.png", "clip", 0.4), Frame("right.png", "clip", 1.3)]  # two frames of one clip


def _weakest_and_strongest() -> Iterator[Condition]:
    """The first and the last condition of each recipe, and of each set of parameters a suite gives it."""
    alike: dict[tuple[object, ...], list[Condition]] = {}
    for condition in EVERY:
        alike.setdefault((condition.corruption, *(key for key, _ in condition.params)), []).append(condition)
    for conditions in alike.values():
        yield from dict.fromkeys((conditions[0], conditions[-1]))


PAIRS = tuple(_weakest_and_strongest())


def photographs(height: int, width: int, channels: int = 3) -> np.ndarray:
    """Two images with flat parts, edges, slopes and grain."""
    rng = np.random.default_rng(height * width)
    slope = np.linspace(0, 180, width)[None, None, :, None] + np.zeros((2, height, 1, channels))
    slope[:, height // 3 :, : width // 3] = 240
    slope[1] = slope[1, ::-1, ::-1]
    return (slope + rng.integers(0, 15, slope.shape)).astype(np.uint8)


def depths(height: int, width: int) -> np.ndarray:
    metres = np.tile(np.geomspace(90, 3, height)[:, None], (2, 1, width)).astype(np.float32)
    metres[0, : height // 4] = np.inf
    return metres


def on_cpu(images: np.ndarray, condition: Condition, *, clip: bool = False) -> np.ndarray:
    scenes = depths(*images.shape[1:3])
    samples = (
        Sample(
            frame.id,
            image if image.shape[2] == 3 else image[..., 0],
            context=Context(depth=depth),
            sequence=frame.sequence if clip else "",
            time=frame.time if clip else 0.0,
        )
        for frame, image, depth in zip(CLIP, images, scenes, strict=True)
    )
    return np.stack([apply(sample, condition).image for sample in samples]).reshape(images.shape)


def on_torch(
    images: np.ndarray, condition: Condition, device: str = "cpu", *, clip: bool = False
) -> np.ndarray:
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).to(device)
    depth = (
        torch.from_numpy(depths(*images.shape[1:3])).to(device) if find(condition.corruption).needs else None
    )
    ids = CLIP if clip else IDS
    return corrupt_batch(pixels, condition, ids=ids, depth=depth).permute(0, 2, 3, 1).cpu().numpy()
