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

from stormproof.style.layers import BUILTIN_DECODER, BUILTIN_ENCODER, Layer
from stormproof.style.torchnet import Network, adain, statistics
from training.pool import array, read

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
    half = torch.float16 if device.type == "cuda" else torch.float32
    encoder, decoder = (
        _network(layers, weights, part).to(device, half)
        for part, layers in (("encoder", BUILTIN_ENCODER), ("decoder", BUILTIN_DECODER))
    )
    generator = torch.Generator().manual_seed(pool.seed)
    images = [PIL.Image.open(file).convert("RGB") for file in sorted(styles.glob("*.jpg"))]
    looks = [
        statistics(encoder(_unit(_cut(image, generator)[None], device, half)))
        for image in images
        for _ in range(CUTS)
    ]
    means, deviations = (torch.cat(values) for values in zip(*looks, strict=True))
    for start in range(0, pool.count, AT_ONCE):
        rows = slice(start, min(start + AT_ONCE, pool.count))
        which = torch.randint(len(looks), (rows.stop - rows.start,), generator=generator).to(device)
        scenes = _unit(torch.from_numpy(clean[rows]), device, half)
        features = encoder(functional.interpolate(scenes, scale_factor=ENLARGED, mode="bicubic").clamp(0, 1))
        output = decoder(adain(features, (means[which], deviations[which])).to(half)).float().clamp(0, 1)
        output = (functional.avg_pool2d(output, ENLARGED)[..., : pool.height, : pool.width] * 255).round()
        painted[rows] = output.permute(0, 2, 3, 1).to(torch.uint8).cpu().numpy()
    return folder / f"{NAME}.raw"


def _network(layers: Sequence[Layer], weights: Path, part: str) -> Network:
    if weights.is_dir():
        graph = onnx.load(str(weights / f"{part}.onnx")).graph
        own = {one.name.removesuffix(".half"): numpy_helper.to_array(one) for one in graph.initializer}
    else:
        with np.load(weights) as held:
            own = {name.removeprefix(f"{part}."): held[name] for name in held.files if name.startswith(part)}
    return Network(layers, own).eval()


def _cut(image: PIL.Image.Image, generator: torch.Generator) -> Tensor:
    """A square crop of half the image's side or more, resized to 256 pixels, its channels permuted."""
    across, down, size = torch.rand(3, generator=generator).tolist()
    side = round(min(image.size) * (0.5 + 0.5 * size))
    left, top = round(across * (image.width - side)), round(down * (image.height - side))
    pixels = np.asarray(image.crop((left, top, left + side, top + side)).resize((256, 256)))
    return torch.from_numpy(pixels[..., torch.randperm(3, generator=generator).numpy()].copy())


def _unit(images: Tensor, device: torch.device, kind: torch.dtype) -> Tensor:
    """uint8 N×H×W×3 → N×3×H×W from 0 to 1."""
    return images.to(device).permute(0, 3, 1, 2).to(kind) / 255
