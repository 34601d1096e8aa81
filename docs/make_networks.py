"""Renew docs/networks.md: its table of networks and its figure, and with --runs how they fare in the storm.

    python docs/make_networks.py --runs runs/networks

holds a scored run of each network, over imagenet-c on 200 scenes (docs/networks.md has the commands).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
from parts import write_part

from stormproof.core.condition import Condition
from stormproof.core.sample import Image, Prediction, Sample
from stormproof.corruptions import apply
from stormproof.models import load_model
from stormproof.models.builtin import builtins, training_record
from stormproof.report.tables import plus_minus
from stormproof.results.run import Run
from stormproof.results.store.record import RECORD
from stormproof.world.classes import OBJECTS
from stormproof.world.samples import render

HERE = Path(__file__).parent
PAGE = HERE / "networks.md"
SCENE = 11  # of world:test
SHOWN = ("street-grid", "street-masks", "street-context")
CONDITIONS = ("clean", "snow@3", "defocus_blur@3", "gaussian_noise@3")
SURE = 0.3  # score from which an object is drawn
WIDTH = 360  # pixels of one image of the figure
TOTALS = ("P", "mPC", "rPC")
MEASURES = {"detection": ("AP", "AP50"), "instance": ("AP", "mask AP", "mask AP50"), "semantic": ("mIoU",)}
COLOURS = np.random.default_rng(8).integers(60, 256, (12, 3))


def table() -> str:
    head = "| model | task | parameters | file | training scenes | steps | clean score on `world:test` |"
    rows = [head, "|---|---|---|---|---|---|---|"]
    for name, network in builtins().items():
        told = training_record(name)
        scores = ", ".join(f"{measure} {100 * value:.1f}" for measure, value in network.clean.items())
        facts = (
            f"`builtin:{name}`", network.task, f"{network.parameters / 1e6:.2f} M",
            f"{network.bytes / 1e6:.1f} MB", f"{told['scenes']:,}", f"{told['curve'][-1]['step']:,}",
            f"{scores} ({network.images} scenes)",
        )  # fmt: skip
        rows.append(f"| {' | '.join(facts)} |")
    return "\n".join(rows)


def storm(runs: Path) -> str:
    """P, mPC and rPC of every network, and what does not cost more at severity 5 than at severity 1.

    With intervals, which are kept with each run.
    """
    head = "| model | measure | P | mPC | rPC | severity 5 not below severity 1 |"
    rows = [head, "|---|---|---|---|---|---|"]
    for name, network in builtins().items():
        if not (runs / name / RECORD).exists():
            continue
        scores = Run(runs / name).score(interval=True)
        for measure in MEASURES[network.task]:
            clean = scores.score(measure)
            if measure in network.clean and abs(clean - network.clean[measure]) > 0.001:
                raise ValueError(f"{runs / name} is of another {name}: its clean {measure} is {clean}.")
            numbers = [plus_minus(scores.interval(total, measure)) for total in TOTALS]
            odd = ", ".join(not_worse(scores.per_condition[measure])) or "none"
            rows.append(f"| {' | '.join((f'`builtin:{name}`', measure, *numbers, odd))} |")
    return "\n".join(rows)


def not_worse(cells: Mapping[str, float]) -> list[str]:
    """The corruptions under which a score is no lower at severity 5 than at severity 1, with both."""
    by_name: dict[str, dict[int, float]] = {}
    for text, score in cells.items():
        condition = Condition.parse(text)
        if condition.corruption is not None:
            by_name.setdefault(condition.corruption, {})[int(condition.severity or 0)] = score
    return [
        f"{name} ({100 * of[1]:.1f} → {100 * of[5]:.1f})" for name, of in by_name.items() if of[5] >= of[1]
    ]


def drawn(sample: Sample, found: Prediction) -> Image:
    """What a network says, over what it saw."""
    image = sample.image.copy()
    if found.semantic is not None:
        return ((image.astype(np.uint16) + COLOURS[found.semantic]) // 2).astype(np.uint8)
    for k in np.flatnonzero(found.scores >= SURE):
        label = int(found.labels[k])
        colour = COLOURS[label].tolist()
        if found.masks is not None:
            inside = found.masks[k].to_mask()
            image[inside] = (image[inside].astype(np.uint16) + COLOURS[label]) // 2
        x1, y1, x2, y2 = found.boxes[k].round().astype(int).tolist()
        cv2.rectangle(image, (x1, y1), (x2 - 1, y2 - 1), colour, 2)
        if y2 - y1 > 30:
            cv2.putText(image, OBJECTS[label], (x1 + 2, y1 + 12), cv2.FONT_HERSHEY_SIMPLEX, 0.4, colour, 1)
    return image


def figure() -> Image:
    """One scene under some conditions (columns), as the networks see it (rows)."""
    scene = render(0, "test", SCENE).sample
    samples = [scene if c == "clean" else apply(scene, c) for c in CONDITIONS]
    rows = []
    for name in SHOWN:
        model = load_model(f"builtin:{name}")
        assert callable(model)
        seen = [drawn(s, model([s.image])[0]) for s in samples]
        size = (WIDTH, WIDTH * seen[0].shape[0] // seen[0].shape[1])
        rows.append(np.hstack([cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in seen]))
    return np.vstack(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, help="a folder of scored runs; without it that part stays")
    given = parser.parse_args()
    if given.runs is not None:
        write_part(PAGE, "storm", storm(given.runs))
    write_part(PAGE, "networks", table())
    cv2.imwrite(str(HERE / "networks.jpg"), figure()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])
