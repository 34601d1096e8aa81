"""How much of a detector's AP a style network leaves, with intervals: `python strength.py --shared DIR`.

Photographs of COCO val2017, on none of which a style network was trained: the 119 of evaluate.py, on which
the strength was chosen, and those that `coco_panoptic` has besides. Each is painted at α = 1 in the style of
each held-out painting, whole or its objects alone, and at α = 0 in that of the first. Printed is AP in per
cent of AP on clean photographs, the mean over the paintings, with its 95 % interval for new photographs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from evaluate import CARDS, HELD_OUT_PAINTINGS, STANDARD, opened

from stormproof.core.sample import Floats, Image, Prediction, Sample, as_rgb
from stormproof.corruptions.needs import OBJECTS, part_mask
from stormproof.datasets import read_dataset
from stormproof.metrics.coco import coco_scored
from stormproof.metrics.cocomatching import match_boxes
from stormproof.metrics.metric import mean_of_known
from stormproof.metrics.records import DetectionTruth, lay_out
from stormproof.models import load_model
from stormproof.models.classes import match_classes
from stormproof.results.interval import draws, interval_around
from stormproof.results.weights import half_weights
from stormproof.style.adain import shorter_side
from stormproof.style.networks import StyleNetwork
from stormproof.style.sources import read_style

Key = tuple[float, str, int]  # α, what is painted, in the style of which painting
CLEAN: Key = (0.0, "nothing", 0)
Found = dict[Key, dict[str, Prediction]]  # predictions by image


def painted(
    sample: Sample, network: StyleNetwork, looks: Sequence[Any], classes: Sequence[str]
) -> dict[Key, Image]:
    """The photograph, and every version of it."""
    image = as_rgb(sample.image)
    content, objects = network.encode_content(image), part_mask(sample, OBJECTS, classes=classes)[..., None]
    versions = {CLEAN: image}
    for alpha, used in ((0.0, looks[:1]), (1.0, looks)):
        for k, look in enumerate(used):
            whole = network.paint(content, look, alpha)
            versions[alpha, "image", k] = whole
            versions[alpha, "objects", k] = np.where(objects, whole, image)
    return versions


def average_precision(truth: DetectionTruth, predictions: dict[str, Prediction]) -> tuple[Floats, float]:
    """AP in per cent of all images and of random halves, and how much too high it is on so few images."""
    weights = np.concatenate([np.ones((1, len(truth.ids)), np.uint8), half_weights(truth.ids)])
    shown = {name: predictions[name] for name in truth.ids}
    scored = coco_scored(match_boxes(truth, lay_out(shown, truth)), weights)
    return 100 * scored.numbers["AP"], 100 * float(mean_of_known(scored.optimism["AP"]))


def left(truth: DetectionTruth, found: Found) -> dict[str, str]:
    """What is left of AP, the mean over paintings, and its interval."""
    clean, too_high = average_precision(truth, found[CLEAN])
    whole = draws(clean, too_high, clean=True)
    table = {"clean AP": f"{clean[0]:.1f}"}
    for alpha, part in sorted({key[:2] for key in found if key != CLEAN}):
        rows = [average_precision(truth, found[key]) for key in found if key[:2] == (alpha, part)]
        share = 100 * float(np.mean([values[0] for values, _ in rows])) / clean[0]
        drawn = 100 * np.mean([draws(*row) for row in rows], axis=0) / whole
        interval = interval_around(share, drawn, images=len(truth.ids))
        table[f"alpha {alpha:g}, {part}"] = f"{share:.1f} ± {interval.half_width:.1f} ({interval.span(1.0)})"
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument(
        "--network", default="built-in", help="a style network, or a folder that export.py wrote"
    )
    parser.add_argument("--limit", type=int, help="only so many photographs of each set")
    options = parser.parse_args()
    data, models = options.shared / "data", options.shared / "models"
    files = (data / "coco/instances_val2017.json", data / "coco_panoptic/instances_val2017.json")
    first, others = (read_dataset(f"coco:{file}") for file in files)
    known = {sample.id for sample in first}
    new = [sample for sample in others if sample.id not in known][: options.limit]
    network = opened(options.network)
    looks = [
        network.encode_style(shorter_side(read_style(data / "paintings" / name), 512))
        for name in HELD_OUT_PAINTINGS
    ]
    detectors = {name: load_model(f"onnx:{models}/{name}.onnx,card={CARDS}/{name}.yaml") for name in STANDARD}
    matches = {name: match_classes(model.classes, first.classes) for name, model in detectors.items()}
    found: dict[str, Found] = {name: {} for name in detectors}

    def tell(title: str, samples: Sequence[Sample]) -> None:
        known = [(sample.id, sample.truth.instances) for sample in samples]
        truth = DetectionTruth.of(known, first.classes)
        for name in detectors:
            row = {"photographs": title, "count": len(samples), "detector": name}
            print(json.dumps(row | left(truth, found[name]), ensure_ascii=False), flush=True)

    every: list[Sample] = []
    for title, samples in (("others", new), ("first", [*first][: options.limit])):
        for sample in samples:
            for key, image in painted(sample, network, looks, first.classes).items():
                for name, model in detectors.items():
                    found[name].setdefault(key, {})[sample.id] = matches[name].apply(model([image])[0])
        tell(title, samples)
        every += samples
    tell("all", every)


if __name__ == "__main__":
    main()
