"""Measures style networks on images they were not trained on: `python evaluate.py --shared DIR --network …`.

Loss by reconstruction alone: AP at α = 0, in per cent of AP on clean images, of three detectors on
photographs at their size, and of the built-in street detectors on scenes painted at their size, and at twice
their size and reduced. Strength of the style: squared distance of channel means and deviations to the style
at relu1_1 … relu4_1 of the distilled encoder, output ÷ content, at α = 1, median over pairs. Lattice: the
deviation of a pattern with a period of eight pixels where the content is flat, at α = 1, in grey levels,
minus that of the content itself. Weave: the deviation of the detail painted on flat content, and of the part
of it that stays where the feature cells are when the content moves by a few pixels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from stormproof.core.sample import Image, as_rgb
from stormproof.datasets import open_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.coco import box_numbers
from stormproof.metrics.records import DetectionTruth
from stormproof.models import open_model
from stormproof.models.classes import match_classes
from stormproof.style.adain import AdaIN, shorter_side, to_planes
from stormproof.style.layers import DISTILLED_ENCODER, TAPS, Conv, Run
from stormproof.style.networks import StyleNetwork, open_network, read_weights
from stormproof.style.onnx import fingerprint, onnx_graph, runner
from stormproof.style.sources import read_style

STANDARD = ("yolox_nano_416_coco", "ssdlite_mobilenetv2_300_coco_w16", "efficientdet_lite0_coco_qdq")
STREET = ("street-grid", "street-centre")
HELD_OUT_PAINTINGS = ("munch_scream_1893.jpg", "picabia_udnie_1913.jpg", "van_gogh_wheat_field.jpg")
CARDS = Path(__file__).parents[2] / "tests/models/cards"
CELL, WINDOW, FLAT = 8, 32, 3.0  # pixels, pixels, grey levels of detail below which a window counts as flat
MOVE = (3, 5)  # pixels by which a content moves against the cells

Change = Callable[[Image], Image]


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """The distilled encoder, cut after each of the four levels."""

    levels: Sequence[Run]

    @classmethod
    def read(cls, shared: Path) -> Judge:
        weights = read_weights(shared / "models/wct16x_4SE.pth")
        places = [
            k for k, layer in enumerate(DISTILLED_ENCODER) if isinstance(layer, Conv) and layer.name in TAPS
        ]
        return cls([runner(onnx_graph(DISTILLED_ENCODER[: k + 1], weights)) for k in places])

    def statistics(self, image: Image) -> list[np.ndarray]:
        """Means and deviations of all channels, level by level."""
        found = []
        for run in self.levels:
            features = run(to_planes(image))[0]
            flat = features.reshape(len(features), -1)
            found.append(np.concatenate([flat.mean(1), np.sqrt(flat.var(1, ddof=1) + 1e-5)]))
        return found


def distance(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    return float(sum(np.square(x - y).sum() for x, y in zip(a, b, strict=True)))


def reconstructed(network: StyleNetwork) -> Change:
    """Encode and decode an image: α = 0."""

    def change(image: Image) -> Image:
        return network.paint(network.encode_content(image), network.encode_style(image[:64, :64]), 0.0)

    return change


def enlarged(change: Change) -> Change:
    """Apply a change at twice the size, and reduce the result."""

    def twice(image: Image) -> Image:
        height, width = image.shape[:2]
        large = cv2.resize(image, (2 * width, 2 * height), interpolation=cv2.INTER_CUBIC)
        return np.asarray(cv2.resize(change(large), (width, height), interpolation=cv2.INTER_AREA), np.uint8)

    return twice


def average_precision(models: Sequence[str], data: Dataset, count: int, change: Change) -> list[float]:
    """AP in per cent of each model on the first `count` images, each changed once."""
    opened = [open_model(name) for name in models]
    matches = [match_classes(model.classes, data.classes) for model in opened]
    truth, predictions = [], [{} for _ in opened]
    for k in range(min(count, len(data))):
        sample = data[k]
        truth.append((sample.id, sample.truth.instances))
        image = change(as_rgb(sample.image))
        for model, match, mine in zip(opened, matches, predictions, strict=True):
            mine[sample.id] = match.apply(model([image])[0])
    known = DetectionTruth.of(truth, data.classes)
    return [100 * box_numbers(known, mine)["AP"] for mine in predictions]


def lattice(image: Image, content: Image) -> float | None:
    """The strength of a pattern of eight pixels where the content is flat; None if no part of it is flat."""
    height, width = (length // WINDOW * WINDOW for length in content.shape[:2])
    windows = []
    for shown in (image, content):
        plain = shown.astype(np.float32)
        fine = (plain - cv2.blur(plain, (CELL + 1, CELL + 1)))[:height, :width]
        windows.append(fine.reshape(height // WINDOW, WINDOW, width // WINDOW, WINDOW, 3).swapaxes(1, 2))
    drawn, seen = windows
    flat = seen.std((2, 3, 4)) < FLAT
    if not flat.any():
        return None
    n = WINDOW // CELL
    folded = [w[flat].reshape(-1, n, CELL, n, CELL, 3).mean((1, 3)) for w in (drawn, seen)]
    return float(np.sqrt(np.square(folded[0]).mean()) - np.sqrt(np.square(folded[1]).mean()))


def weave(image: Image, moved: Image, content: Image) -> tuple[float, float] | None:
    """Mean squares where the content is flat: of the detail painted, and of what of it does not move along.

    `moved` is a painting of the content without its first rows and columns (MOVE).
    """
    kept = np.s_[MOVE[0] :, MOVE[1] :]
    plain = (part.astype(np.float32) for part in (image[kept], moved, content[kept]))
    here, other, seen = (part - cv2.blur(part, (2 * CELL + 1,) * 2) for part in plain)
    rows, columns = (length // WINDOW for length in seen.shape[:2])
    means = []
    for part in (here, (here - other) / np.sqrt(2), seen):
        square = np.square(part[: rows * WINDOW, : columns * WINDOW]).mean(2)
        by_window = square.reshape(rows, WINDOW, columns, WINDOW).mean((1, 3))
        means.append(by_window[1:-1, 1:-1])  # the outermost windows feel the borders
    flat = means[2] < FLAT**2
    return (float(means[0][flat].mean()), float(means[1][flat].mean())) if flat.any() else None


def styled(
    network: StyleNetwork, contents: Sequence[Image], paintings: Sequence[Path], judge: Judge
) -> Iterator[tuple[Path, int, Any, Image, float]]:
    """Every content in the style of every painting: the painting, the content's number, the encoded style,
    the image, and the share of the distance to the painting that is left."""
    encoded = [network.encode_content(image) for image in contents]
    before = [judge.statistics(image) for image in contents]
    for path in paintings:
        style = shorter_side(read_style(path), 512)
        wanted = judge.statistics(style)
        look = network.encode_style(style)
        for k in range(len(contents)):
            shown = network.paint(encoded[k], look, 1.0)
            yield (
                path,
                k,
                look,
                shown,
                distance(judge.statistics(shown), wanted) / distance(before[k], wanted),
            )


def painted(
    network: StyleNetwork, contents: Sequence[Image], paintings: Sequence[Path], judge: Judge
) -> dict[str, object]:
    """The remaining distance to each painting, and the lattice and the weave in flat areas."""
    left: dict[str, list[float]] = {}
    patterns, woven = [], []
    elsewhere = [network.encode_content(image[MOVE[0] :, MOVE[1] :]) for image in contents]
    for path, k, look, shown, share in styled(network, contents, paintings, judge):
        left.setdefault(path.name, []).append(share)
        patterns.append(lattice(shown, contents[k]))
        if path.name in HELD_OUT_PAINTINGS:
            woven.append(weave(shown, network.paint(elsewhere[k], look, 1.0), contents[k]))
    held = [value for name in HELD_OUT_PAINTINGS for value in left.get(name, [])]
    return {
        "left": round(float(np.median([value for values in left.values() for value in values])), 3),
        "left, paintings held out": round(float(np.median(held)), 3),
        "left by painting": {name: round(float(np.median(values)), 3) for name, values in left.items()},
        "lattice": round(float(np.mean([value for value in patterns if value is not None])), 2),
        "weave: detail on flat content, and what of it stays": [
            round(float(value), 2) for value in np.sqrt(np.mean([w for w in woven if w], axis=0))
        ],
    }


def psnr(a: Image, b: Image) -> float:
    return float(10 * np.log10(255**2 / np.square(a.astype(float) - b).mean()))


def opened(text: str) -> StyleNetwork:
    """A style network by name, or a folder that export.py wrote."""
    if not Path(text).is_dir():
        return open_network(text)
    files = [Path(text) / "encoder.onnx", Path(text) / "decoder.onnx"]
    return AdaIN(Path(text).name, runner(files[0]), runner(files[1]), fingerprint(files), channels=0)


class Measurement:
    """The images, the detectors and their AP on clean images."""

    def __init__(self, shared: Path, photographs: int, scenes: int, pairs: int) -> None:
        self.counts = photographs, scenes
        self.photographs = open_dataset(f"coco:{shared}/data/coco/instances_val2017.json,masks=false")
        self.scenes = open_dataset(f"world:test,count={scenes}")
        self.standard = [f"onnx:{shared}/models/{name}.onnx,card={CARDS}/{name}.yaml" for name in STANDARD]
        self.street = [f"builtin:{name}" for name in STREET]
        self.judge = Judge.read(shared)
        self.paintings = sorted((shared / "data/paintings").glob("*.jpg"))
        step = max(len(self.photographs) // pairs, 1)
        self.contents = [as_rgb(self.photographs[k * step].image) for k in range(pairs)]
        self.contents += [self.scenes[k].image for k in range(min(pairs // 2, scenes))]
        self.clean = self.precision(lambda image: image, lambda image: image)

    def precision(self, change: Change, twice: Change) -> dict[str, list[float]]:
        return {
            "photographs": average_precision(self.standard, self.photographs, self.counts[0], change),
            "scenes": average_precision(self.street, self.scenes, self.counts[1], change),
            "scenes, twice the size": average_precision(self.street, self.scenes, self.counts[1], twice),
        }

    def of(self, network: StyleNetwork) -> dict[str, object]:
        change = reconstructed(network)
        found = self.precision(change, enlarged(change))
        kept = {
            where: [
                round(100 * now / before, 1)
                for now, before in zip(found[where], self.clean[where], strict=True)
            ]
            for where in found
        }
        again = [psnr(change(image), image) for image in self.contents]
        return {
            "AP kept at alpha 0": kept,
            "PSNR": round(float(np.median(again)), 1),
            **painted(network, self.contents, self.paintings, self.judge),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument(
        "--network", action="append", help="a style network, or a folder that export.py wrote"
    )
    parser.add_argument("--photographs", type=int, default=119)
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument(
        "--pairs", type=int, default=6, help="photographs to paint in the style of every painting"
    )
    options = parser.parse_args()
    measurement = Measurement(options.shared, options.photographs, options.scenes, options.pairs)
    rounded = {where: [round(value, 1) for value in values] for where, values in measurement.clean.items()}
    print(json.dumps({"detectors": [*STANDARD, *STREET], "clean AP": rounded}), flush=True)
    for text in options.network or ["built-in"]:
        print(json.dumps({"network": text, **measurement.of(opened(text))}), flush=True)


if __name__ == "__main__":
    main()
