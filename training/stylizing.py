"""Stylized images of a pool's scenes: another array beside the clean one, for a training to mix in.

Every scene gets its own style, as in michaelis, who use paintings: a crop of one of the style images with its
colour channels permuted, so that few images give many styles. Scenes are painted at twice their size and
reduced, because most objects of the street are smaller than three cells of the style network's bottleneck.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import PIL.Image
import torch
from onnx import numpy_helper
from torch import Tensor
from torch.nn import functional

from stormproof.style.layers import (
    BUILTIN_DECODER,
    BUILTIN_ENCODER,
    CELL,
    NOISE,
    NOISE_CHANNELS,
    TAPS,
    Layer,
    share_noise,
    strength,
)
from stormproof.world.samples import render
from training.pool import array, read, wait_for
from training.style.torchnet import TorchNetwork, adain, statistics

NAME = "stylized"
CUTS = 40  # crops of every style image
ENLARGED = 2
AT_ONCE = 16


@torch.no_grad()
def stylize(folder: Path, weights: Path, styles: Path, device: torch.device) -> Path:
    """Write a stylized image of every scene of a pool.

    `weights` is a file that style/train.py wrote, or a folder with encoder.onnx and decoder.onnx as shipped.
    """
    pool = read(folder)
    clean, painted = array(folder, pool, "images", "r"), array(folder, pool, NAME, "w+")
    painter = Painter(weights, device)
    generator = torch.Generator().manual_seed(pool.seed)
    images = [PIL.Image.open(file).convert("RGB") for file in sorted(styles.glob("*.jpg"))]
    looks = [painter.look(_cut(image, generator)[None]) for image in images for _ in range(CUTS)]
    means, deviations = (torch.cat(values) for values in zip(*looks, strict=True))
    for start in range(0, pool.count, AT_ONCE):
        rows = slice(start, min(start + AT_ONCE, pool.count))
        wait_for(folder, pool, rows.stop)
        which = torch.randint(len(looks), (rows.stop - rows.start,), generator=generator).to(device)
        scenes = torch.from_numpy(clean[rows])
        painted[rows] = painter(scenes, (means[which], deviations[which])).cpu().numpy()
    return folder / f"{NAME}.raw"


class Painter:
    """The style network in torch, at half precision on a GPU."""

    def __init__(self, weights: Path, device: torch.device) -> None:
        self.device, self.kind = device, torch.float16 if device.type == "cuda" else torch.float32
        self.encoder, self.decoder = (
            _network(layers, weights, part).to(device, self.kind)
            for part, layers in (("encoder", BUILTIN_ENCODER), ("decoder", BUILTIN_DECODER))
        )

    def look(self, images: Tensor, enlarged: int = 1) -> tuple[Tensor, Tensor]:
        """The statistics of the features of uint8 N×H×W×3 images."""
        return statistics(self._levels(images, enlarged)[-1])

    def __call__(self, images: Tensor, look: tuple[Tensor, Tensor], alpha: float = 1.0) -> Tensor:
        """Paint uint8 N×H×W×3 images at twice their size and reduce them."""
        *levels, own = self._levels(images, ENLARGED)
        features = torch.lerp(own.float(), adain(own, look), alpha).to(self.kind)
        others = {NOISE: self._noise(own), **dict(zip(TAPS[:-1], levels, strict=True))}
        output = functional.avg_pool2d(
            self.decoder(features, others, strength(alpha)).float().clamp(0, 1), ENLARGED
        )
        height, width = images.shape[1:3]
        return (output[..., :height, :width] * 255).round().permute(0, 2, 3, 1).to(torch.uint8)

    def _levels(self, images: Tensor, enlarged: int) -> list[Tensor]:
        """The encoder's levels, of images continued by reflection to whole cells."""
        unit = images.to(self.device).permute(0, 3, 1, 2).to(self.kind) / 255
        if enlarged > 1:
            unit = functional.interpolate(unit, scale_factor=enlarged, mode="bicubic").clamp(0, 1)
        height, width = unit.shape[2:]
        unit = functional.pad(unit, (0, -width % CELL, 0, -height % CELL), mode="reflect")
        return self.encoder.taps(unit, TAPS)

    def _noise(self, features: Tensor) -> Tensor:
        """Noise for a batch, different for its images and the same for every batch."""
        n, _, height, width = features.shape
        generator = torch.Generator().manual_seed(0)
        cells = torch.randn((n, NOISE_CHANNELS, height + 2, width + 2), generator=generator)
        noise: Tensor = share_noise(cells)
        return noise.to(self.device, self.kind)


class Restyled:
    """Paints images in the look of clean scenes: a remedy at test time.

    That look is the mean over the statistics of some training scenes. With `alpha` 0 an image keeps its own
    look and is only encoded and decoded, which shows what the network itself removes.
    """

    @torch.no_grad()
    def __init__(self, device: torch.device, alpha: float = 1.0, scenes: int = 32) -> None:
        from stormproof.style.networks import folder  # here: it needs OpenCV

        self.painter, self.alpha = Painter(folder(), device), alpha
        clean = [torch.from_numpy(render(0, "train", index).sample.image) for index in range(scenes)]
        mean, deviation = self.painter.look(torch.stack(clean), ENLARGED)
        self.look = mean.mean(0, keepdim=True), deviation.mean(0, keepdim=True)

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        painted = [self.painter(some, self.look, self.alpha) for some in images.split(AT_ONCE)]  # type: ignore[no-untyped-call]
        return torch.cat(painted)


def _network(layers: Sequence[Layer], weights: Path, part: str) -> TorchNetwork:
    if weights.is_dir():
        graph = onnx.load(str(weights / f"{part}.onnx")).graph
        own = {one.name.removesuffix(".half"): numpy_helper.to_array(one) for one in graph.initializer}
    else:
        with np.load(weights) as held:
            own = {name.removeprefix(f"{part}."): held[name] for name in held.files if name.startswith(part)}
    return TorchNetwork(layers, own).eval()


def _cut(image: PIL.Image.Image, generator: torch.Generator) -> Tensor:
    """A square crop of half the image's side or more, resized to 256 pixels, its channels permuted."""
    across, down, size = torch.rand(3, generator=generator).tolist()
    side = round(min(image.size) * (0.5 + 0.5 * size))
    left, top = round(across * (image.width - side)), round(down * (image.height - side))
    pixels = np.asarray(image.crop((left, top, left + side, top + side)).resize((256, 256)))
    return torch.from_numpy(pixels[..., torch.randperm(3, generator=generator).numpy()].copy())
