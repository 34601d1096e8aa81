"""Measures a style network on images it was not trained on: `python evaluate.py --shared DIR`.

Reconstruction: PSNR at α = 0. Style: squared distance of channel means and deviations to the style at
relu1_1 … relu4_1 of the distilled encoder, output ÷ content, at α = 1; medians over images and pairs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from stormproof.core.imagefile import read_image
from stormproof.core.sample import Image
from stormproof.style.adain import Run, shorter_side, to_planes
from stormproof.style.graph import onnx_graph
from stormproof.style.layers import DISTILLED_ENCODER, TAPS, Conv
from stormproof.style.networks import StyleNetwork, open_network, read_weights
from stormproof.style.runtime import runner
from stormproof.style.sources import read_style

Vector = np.ndarray


def judges(shared: Path) -> list[Run]:
    """The distilled encoder cut after each of the four levels."""
    weights = read_weights(shared / "models/wct16x_4SE.pth")
    places = [
        k for k, layer in enumerate(DISTILLED_ENCODER) if isinstance(layer, Conv) and layer.name in TAPS
    ]
    return [runner(onnx_graph(DISTILLED_ENCODER[: k + 1], weights)) for k in places]


def statistics(image: Image, levels: Sequence[Run]) -> list[Vector]:
    """Means and deviations of all channels, level by level."""
    planes = to_planes(image)
    found = []
    for run in levels:
        features = run(planes)[0]
        flat = features.reshape(len(features), -1)
        found.append(np.concatenate([flat.mean(1), np.sqrt(flat.var(1, ddof=1) + 1e-5)]))
    return found


def distance(a: Sequence[Vector], b: Sequence[Vector]) -> float:
    return float(sum(np.square(x - y).sum() for x, y in zip(a, b, strict=True)))


def psnr(a: Image, b: Image) -> float:
    return float(10 * np.log10(255**2 / np.square(a.astype(float) - b).mean()))


def read(path: Path) -> Image:
    image = read_image(path)
    return np.repeat(image[..., None], 3, 2) if image.ndim == 2 else image


def reconstruction(network: StyleNetwork, photographs: Sequence[Path]) -> list[float]:
    """PSNR of each photograph at α = 0, in dB."""
    found = []
    for image in map(read, photographs):
        again = network.paint(network.encode_content(image), network.encode_style(image), 0.0)
        found.append(psnr(again, image))
    return found


def distances_left(
    network: StyleNetwork, photographs: Sequence[Path], paintings: Sequence[Path], levels: Sequence[Run]
) -> dict[str, list[float]]:
    """What is left of the distance to each painting, photograph by photograph."""
    contents = [read(path) for path in photographs]
    encoded = [network.encode_content(image) for image in contents]
    before = [statistics(image, levels) for image in contents]
    left: dict[str, list[float]] = {}
    for path, k in product(paintings, range(len(contents))):
        style = shorter_side(read_style(path), 512)
        wanted = statistics(style, levels)
        painted = network.paint(encoded[k], network.encode_style(style), 1.0)
        ratio = distance(statistics(painted, levels), wanted) / distance(before[k], wanted)
        left.setdefault(path.name, []).append(ratio)
    return left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--network", default="built-in")
    parser.add_argument("--photographs", type=int, default=6, help="used with every painting")
    options = parser.parse_args()
    photographs = sorted((options.shared / "data/coco/val2017").glob("*.jpg"))
    paintings = sorted((options.shared / "data/paintings").glob("*.jpg"))
    network = open_network(options.network)
    again = reconstruction(network, photographs)
    some = photographs[:: len(photographs) // options.photographs][: options.photographs]
    left = distances_left(network, some, paintings, judges(options.shared))
    found = {
        "psnr": float(np.median(again)),
        "at least 20 dB": float(np.mean(np.array(again) >= 20)),
        "distance_left": float(np.median([value for values in left.values() for value in values])),
        "by_painting": {name: round(float(np.median(values)), 3) for name, values in left.items()},
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
