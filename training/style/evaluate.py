"""Measures style networks on images they were not trained on: `python evaluate.py --shared DIR --network …`.

AP in per cent of AP on clean images: of two detectors on photographs at their size, at several α, with the
whole image, objects alone or backgrounds alone painted in the style of a held-out painting; and of the
built-in street detectors on scenes, painted at their size, and at twice their size and reduced. Strength
of the style: the distance of channel means and deviations to the painting's, output ÷ content (not squared),
in a network that no training here has used, the first stages of YOLOX-nano; median over pairs. Lattice: the
deviation of a pattern with a period of eight pixels where the content is flat, at α = 1, in grey levels,
minus that of the content itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from stormproof.core.sample import Image, Sample, as_rgb
from stormproof.core.sessions import open_session
from stormproof.corruptions.needs import part_mask
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.coco import box_numbers
from stormproof.metrics.records import DetectionTruth
from stormproof.models import load_model
from stormproof.models.classes import match_classes
from stormproof.style.adain import shorter_side
from stormproof.style.networks import StyleNetwork, open_built_in, open_network
from stormproof.style.sources import read_style

STANDARD = ("yolox_nano_416_coco", "ssdlite_mobilenetv2_300_coco_w16")
STREET = ("street-grid", "street-centre")
HELD_OUT_PAINTINGS = ("munch_scream_1893.jpg", "picabia_udnie_1913.jpg", "van_gogh_wheat_field.jpg")
CARDS = Path(__file__).parents[2] / "tests/models/cards"
CELL, WINDOW, FLAT = 8, 32, 3.0  # pixels, pixels, grey levels of detail below which a window counts as flat
WITNESS, WITNESS_SIDE = "yolox_nano_416_coco", 416
STAGES = ("687", "721", "781")  # tensors of YOLOX-nano: outputs of its stem and its first two stages
ALPHAS = (0.0, 0.5, 1.0)
PARTS = ("image", "objects", "background")

Change = Callable[[Sample], Image]


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """The first stages of a detector, which sees how much of a style arrived."""

    opened: Any

    @classmethod
    def read(cls, shared: Path) -> Witness:
        import onnx

        model = onnx.load(shared / f"models/{WITNESS}.onnx")
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in STAGES)
        return cls(open_session(model.SerializeToString()))

    def statistics(self, image: Image) -> list[np.ndarray]:
        """Means and deviations of all channels, stage by stage, over the middle of the image."""
        shown = shorter_side(image, WITNESS_SIDE) if min(image.shape[:2]) < WITNESS_SIDE else image
        top, left = ((length - WITNESS_SIDE) // 2 for length in shown.shape[:2])
        middle = shown[top : top + WITNESS_SIDE, left : left + WITNESS_SIDE, ::-1]
        planes = np.ascontiguousarray(middle.transpose(2, 0, 1)[None], np.float32)
        stages = self.opened.run(list(STAGES), {"images": planes})
        flat = [stage[0].reshape(stage.shape[1], -1) for stage in stages]
        return [np.concatenate([values.mean(1), values.std(1)]) for values in flat]

    def distance_left(self, output: Image, content: Image, style: Image) -> float:
        """The remaining distance to the style, mean over stages: 0 is the style's look, 1 the content's."""
        got, had, wanted = map(self.statistics, (output, content, style))
        shares = [
            np.linalg.norm(a - c) / np.linalg.norm(b - c) for a, b, c in zip(got, had, wanted, strict=True)
        ]
        return float(np.mean(shares))


def at_twice_the_size(network: StyleNetwork, image: Image, style: Any, alpha: float) -> Image:
    """Paint an image at twice its size, and reduce the painting."""
    height, width = image.shape[:2]
    large = cv2.resize(image, (2 * width, 2 * height), interpolation=cv2.INTER_CUBIC)
    painted = network.paint(network.encode_content(large), style, alpha)
    return np.asarray(cv2.resize(painted, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


class Detectors:
    """Detectors, a dataset, and the AP of each on it."""

    def __init__(self, models: Sequence[str], data: Dataset, count: int) -> None:
        self.models, self.data = [load_model(name) for name in models], data
        self.matches = [match_classes(model.classes, data.classes) for model in self.models]
        step = max(len(data) // count, 1)
        self.samples = [data[k] for k in range(0, len(data), step)][:count]
        known = [(sample.id, sample.truth.instances) for sample in self.samples]
        self.truth = DetectionTruth.of(known, data.classes)
        self.clean = self.precision([lambda sample: as_rgb(sample.image)])[0]

    def precision(self, changes: Sequence[Change]) -> list[list[float]]:
        """AP in per cent of each model, for every way to change the images."""
        predictions = [[{} for _ in self.models] for _ in changes]
        for sample in self.samples:
            for change, mine in zip(changes, predictions, strict=True):
                image = change(sample)
                for model, match, rows in zip(self.models, self.matches, mine, strict=True):
                    rows[sample.id] = match.apply(model([image])[0])
        return [[100 * box_numbers(self.truth, rows)["AP"] for rows in mine] for mine in predictions]

    def kept(self, changes: Sequence[Change]) -> list[list[float]]:
        """AP in per cent of AP on clean images."""
        return [
            [round(100 * now / before, 1) for now, before in zip(row, self.clean, strict=True)]
            for row in self.precision(changes)
        ]

    def part(self, sample: Sample, name: str) -> np.ndarray:
        known = {"classes": self.data.classes, "semantic_classes": self.data.semantic_classes}
        return part_mask(sample, name, **known)


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


class Painted:
    """Samples painted by one network, each in one of the styles, painted once for every α."""

    def __init__(self, network: StyleNetwork, styles: Sequence[Image], samples: Sequence[Sample]) -> None:
        self.network, self.looks = network, [network.encode_style(style) for style in styles]
        self.turns = {sample.id: k % len(styles) for k, sample in enumerate(samples)}
        self.last: tuple[str, dict[float, Image], Any] = ("", {}, None)

    def whole(self, sample: Sample, alpha: float) -> Image:
        if self.last[0] != sample.id:
            self.last = (sample.id, {}, self.network.encode_content(as_rgb(sample.image)))
        _, images, content = self.last
        if alpha not in images:
            images[alpha] = self.network.paint(content, self.looks[self.turns[sample.id]], alpha)
        return images[alpha]

    def part(self, detectors: Detectors, name: str, alpha: float) -> Change:
        """Only that part of each image painted."""

        def change(sample: Sample) -> Image:
            painted = self.whole(sample, alpha)
            if name == "image":
                return painted
            return np.where(detectors.part(sample, name)[..., None], painted, as_rgb(sample.image))

        return change


def psnr(a: Image, b: Image) -> float:
    return float(10 * np.log10(255**2 / np.square(a.astype(float) - b).mean()))


def opened(text: str) -> StyleNetwork:
    """A style network by name, or a folder that export.py wrote."""
    return open_built_in(Path(text)) if Path(text).is_dir() else open_network(text)


class Measurement:
    """The images, the detectors and their AP on clean images."""

    def __init__(self, shared: Path, photographs: int, scenes: int, pairs: int) -> None:
        standard = [f"onnx:{shared}/models/{name}.onnx,card={CARDS}/{name}.yaml" for name in STANDARD]
        data = read_dataset(f"coco:{shared}/data/coco/instances_val2017.json")
        self.photographs = Detectors(standard, data, photographs)
        streets = read_dataset(f"world:test,count={scenes}")
        self.scenes = Detectors([f"builtin:{name}" for name in STREET], streets, scenes)
        self.witness = Witness.read(shared)
        self.styles = [
            shorter_side(read_style(shared / "data/paintings" / name), 512) for name in HELD_OUT_PAINTINGS
        ]
        self.pairs = self.photographs.samples[:pairs]

    def of(self, network: StyleNetwork, twice: bool = True) -> dict[str, object]:
        """Everything measured of one network."""
        table = {}
        shown = Painted(network, self.styles, self.photographs.samples)
        rows = [(alpha, part) for alpha in ALPHAS for part in PARTS]
        kept = self.photographs.kept([shown.part(self.photographs, part, alpha) for alpha, part in rows])
        for (alpha, part), values in zip(rows, kept, strict=True):
            table[f"photographs, alpha {alpha:g}, {part}"] = values
        street = Painted(network, self.styles, self.scenes.samples)
        changes = [street.part(self.scenes, "image", alpha) for alpha in (0.0, 1.0)]
        names = ["scenes, alpha 0", "scenes, alpha 1"]
        if twice:
            look = street.looks[0]
            changes.append(lambda sample: at_twice_the_size(network, as_rgb(sample.image), look, 0.0))
            names.append("scenes, alpha 0, twice the size")
        table |= dict(zip(names, self.scenes.kept(changes), strict=True))
        return {"AP kept": table, **self.looks(network)}

    def looks(self, network: StyleNetwork) -> dict[str, object]:
        """How near every pair comes to the style, the lattice in flat areas, and how exact α = 0 is."""
        styles = [network.encode_style(style) for style in self.styles]
        left: dict[float, list[float]] = {alpha: [] for alpha in ALPHAS[1:]}
        patterns, exact = [], []
        for sample in self.pairs:
            image = as_rgb(sample.image)
            content = network.encode_content(image)
            exact.append(psnr(network.paint(content, styles[0], 0.0), image))
            for look, style in zip(styles, self.styles, strict=True):
                for alpha, shares in left.items():
                    painted = network.paint(content, look, alpha)
                    shares.append(self.witness.distance_left(painted, image, style))
                patterns.append(lattice(painted, image))
        seen = [value for value in patterns if value is not None]
        return {
            "PSNR at alpha 0": round(float(np.median(exact)), 1),
            "distance to the style left": {a: round(float(np.median(v)), 3) for a, v in left.items()},
            "lattice": round(float(np.mean(seen)), 2) if seen else None,
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
        "--pairs", type=int, default=8, help="photographs to paint in the style of every painting"
    )
    options = parser.parse_args()
    measurement = Measurement(options.shared, options.photographs, options.scenes, options.pairs)
    clean = {
        name: round(value, 1)
        for names, detectors in ((STANDARD, measurement.photographs), (STREET, measurement.scenes))
        for name, value in zip(names, detectors.clean, strict=True)
    }
    print(json.dumps({"clean AP": clean}), flush=True)
    for text in options.network or ["built-in"]:
        print(json.dumps({"network": text, **measurement.of(opened(text))}), flush=True)


if __name__ == "__main__":
    main()
