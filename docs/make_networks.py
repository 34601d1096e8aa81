"""Renew docs/networks.md: its table of networks and its figure, and with --runs how they fare in the storm.

    python docs/make_networks.py --runs runs/networks

Runs go on where they were stopped: every network over imagenet-c on 200 scenes, an hour of one core each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
from parts import write_part

import stormproof as sp
from stormproof.condition import Condition
from stormproof.confidence.intervals import intervals
from stormproof.confidence.resample import resample
from stormproof.corruptions import apply
from stormproof.models import open_model
from stormproof.networks import builtins, story
from stormproof.sample import Image, Prediction, Sample
from stormproof.scoring.score import Scores, score_run
from stormproof.world import OBJECTS, render

HERE = Path(__file__).parent
PAGE = HERE / "networks.md"
SCENE = 11  # of world:test
SHOWN = ("street-grid", "street-masks", "street-context")
CONDITIONS = ("clean", "snow@3", "defocus_blur@3", "gaussian_noise@3")
SURE = 0.3  # score from which an object is drawn
WIDTH = 360  # pixels of one image of the figure
SCENES = 200  # of world:test, that the networks are put into the storm on
MEASURES = {"detection": ("AP", "AP50"), "instance": ("AP", "mask AP", "mask AP50"), "semantic": ("mIoU",)}
COLOURS = np.random.default_rng(8).integers(60, 256, (12, 3))


def table() -> str:
    head = "| model | task | parameters | file | training scenes | steps | clean score on `world:test` |"
    rows = [head, "|---|---|---|---|---|---|---|"]
    for name, network in builtins().items():
        told = story(name)
        scores = ", ".join(f"{measure} {100 * value:.1f}" for measure, value in network.clean.items())
        facts = (
            f"`builtin:{name}`", network.task, f"{network.parameters / 1e6:.2f} M",
            f"{network.bytes / 1e6:.1f} MB", f"{told['scenes']:,}", f"{told['curve'][-1]['step']:,}",
            f"{scores} ({network.images} scenes)",
        )  # fmt: skip
        rows.append(f"| {' | '.join(facts)} |")
    return "\n".join(rows)


def storm(runs: Path, workers: int) -> str:
    """P, mPC and rPC of every network with intervals, and what does not cost more at severity 5 than at 1."""
    head = "| model | measure | P | mPC | rPC | severity 5 not below severity 1 |"
    rows = [head, "|---|---|---|---|---|---|"]
    for name, network in builtins().items():
        out = runs / name
        sp.run(
            f"builtin:{name}", "world:test", conditions="imagenet-c", limit=SCENES, out=out, workers=workers
        )
        scores = score_run(out)
        sure = intervals(scores, resample(out)).aggregates
        for measure in MEASURES[network.task]:
            totals = (sure[measure][total] for total in ("P", "mPC", "rPC"))
            numbers = (f"{100 * one.estimate:.1f} ± {100 * one.half_width:.1f}" for one in totals)
            odd = ", ".join(not_worse(scores, measure)) or "none"
            rows.append(f"| {' | '.join((f'`builtin:{name}`', measure, *numbers, odd))} |")
    return "\n".join(rows)


def not_worse(scores: Scores, measure: str) -> list[str]:
    """The corruptions under which a score is no lower at severity 5 than at severity 1, with both."""
    by_name: dict[str, dict[int, float]] = {}
    for text, score in scores.by_measure[measure].items():
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
        model = open_model(f"builtin:{name}")
        assert callable(model)
        seen = [drawn(s, model([s.image])[0]) for s in samples]
        size = (WIDTH, WIDTH * seen[0].shape[0] // seen[0].shape[1])
        rows.append(np.hstack([cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in seen]))
    return np.vstack(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, help="where the runs go; without it that part of the page stays")
    parser.add_argument("--workers", type=int, default=0, help="processes; one per core unless given")
    given = parser.parse_args()
    if given.runs is not None:
        write_part(PAGE, "storm", storm(given.runs, given.workers))
    write_part(PAGE, "networks", table())
    cv2.imwrite(str(HERE / "networks.jpg"), figure()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])
