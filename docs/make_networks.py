"""Renew the table and the figure of docs/networks.md: `python docs/make_networks.py`."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from parts import write_part

from stormproof.corruptions import apply
from stormproof.models import open_model
from stormproof.networks import builtins, story
from stormproof.sample import Image, Prediction, Sample
from stormproof.world import OBJECTS, render

HERE = Path(__file__).parent
PAGE = HERE / "networks.md"
SCENE = 11  # of world:test
SHOWN = ("street-grid", "street-masks", "street-context")
CONDITIONS = ("clean", "snow@3", "defocus_blur@3", "gaussian_noise@3")
SURE = 0.3  # score from which an object is drawn
WIDTH = 360  # pixels of one image of the figure
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
    write_part(PAGE, "networks", table())
    cv2.imwrite(str(HERE / "networks.jpg"), figure()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])
