"""Write docs/corruptions/: a page for each suite, made from what every corruption declares.

python docs/make_corruptions.py            pages and images
python docs/make_corruptions.py snow fog   pages, and the images of these
python docs/make_corruptions.py --text     the pages alone
"""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

import cv2
import numpy as np
import PIL.Image

from stormproof import published
from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import UnknownName
from stormproof.core.sample import Image
from stormproof.corruptions import CORRUPTIONS, SUITES, apply
from stormproof.corruptions.corruption import Corruption
from stormproof.world.samples import render

OUT = Path(__file__).parent / "corruptions"
PAGES = (
    "imagenet-c",
    "holdout",
    "optics",
    "mutators",
    "contextual",
    "foggy-cityscapes",
    "3dcc",
    "street-physics",
    "imagenet-c-bar",
    "camera",
    "camera-variants",
    "object-centric",
)
SCENE = 11  # of world:test
WIDTH, GAP = 220, 4  # pixels of one image, and between two
SHOWN = 3  # conditions of a corruption in its image
QUALITY = 62
OTHERS = {
    "hendrycks2019": "D. Hendrycks, T. Dietterich: Benchmarking Neural Network Robustness to Common "
    "Corruptions and Perturbations. ICLR, 2019.",
    "sakaridis2018": "C. Sakaridis, D. Dai, L. Van Gool: Semantic Foggy Scene Understanding with Synthetic "
    "Data. IJCV, 2018.",
    "kar2022": "O. F. Kar, T. Yeo, A. Atanov, A. Zamir: 3D Common Corruptions and Data Augmentation. CVPR, "
    "2022.",
    "marshall1948": "J. S. Marshall, W. McK. Palmer: The Distribution of Raindrops with Size. Journal of "
    "Meteorology, 1948.",
    "unece112": "UN Regulation No. 112: Headlamps Emitting an Asymmetrical Passing Beam.",
    "cie146": "CIE 146: CIE Equations for Disability Glare. 2002.",
    "mintun2021": "E. Mintun, A. Kirillov, S. Xie: On Interaction Between Augmentations and Corruptions in "
    "Natural Corruption Robustness. NeurIPS, 2021.",
}  # papers of which Stormproof holds no numbers
INTRODUCTION = """\
# Corruptions

Made by `python docs/make_corruptions.py` from what every corruption declares. How to write your own:
[adding a corruption](../adding/corruption.md).

| corruption | what happens | suite |
|---|---|---|
"""


def cited(key: str) -> str:
    """A paper by its key, such as liu2024."""
    if key in OTHERS:
        return OTHERS[key]
    try:
        return published(key.rstrip("0123456789")).citation
    except UnknownName:
        return key


def members() -> dict[str, list[Corruption]]:
    """The corruptions of each page: those that no page before it has."""
    left = dict(CORRUPTIONS)
    found = {name: [left.pop(c) for c in SUITES[name].corruptions if c in left] for name in PAGES}
    return {**found, **({"others": [*left.values()]} if left else {})}


def conditions(corruption: Corruption) -> list[Condition]:
    """What its image shows: its least, middle and hardest severity, or some conditions of its suite."""
    every = [Condition.of(corruption.name, s) for s in corruption.severities]
    if not every:
        suite = next(s for s in SUITES.values() if corruption.name in s.corruptions)
        every = [c for c in suite.conditions if c.corruption == corruption.name]
    places = np.linspace(0, len(every) - 1, min(SHOWN, len(every))).round().astype(int)
    return [every[place] for place in places.tolist()]


def strip(corruption: Corruption) -> Image:
    """The clean scene and the scene under some conditions, side by side."""
    scene = render(0, "test", SCENE).sample
    height = round(WIDTH * scene.image.shape[0] / scene.image.shape[1])
    tiles = []
    for condition in (CLEAN, *conditions(corruption)):
        made = scene if condition.is_clean else apply(scene, condition)
        tiles.append(cv2.resize(made.image, (WIDTH, height), interpolation=cv2.INTER_AREA))
        tiles.append(np.full((height, GAP, 3), 255, np.uint8))
    return np.hstack(tiles[:-1])


def described(corruption: Corruption) -> str:
    """A corruption's part of its page."""
    name = corruption.name
    first, _, rest = (inspect.getdoc(corruption.recipe) or "").partition("\n\n")
    shown = ", ".join(f"`{c}`" for c in conditions(corruption))
    parts = [f"## {name}", " ".join(first.split())]
    parts += [" ".join(paragraph.split()) for paragraph in rest.split("\n\n") if paragraph]
    parts += [f"![{name}: the same street clean and under {shown.replace('`', '')}]({name}.webp)"]
    parts += [f"Clean, {shown}.", severities(corruption), "\n".join(facts(corruption))]
    return "\n\n".join(part for part in parts if part)


def severities(corruption: Corruption) -> str:
    """Every parameter with its unit and its value at each severity."""
    levels = corruption.severities
    head = ["parameter", "unit", *(f"severity {level}" for level in levels)] + ([] if levels else ["value"])
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for key, ladder in corruption.ladders.items():
        if levels:
            values = [f"{ladder.at(level)}" for level in levels]
        elif ladder.values:
            values = [f"{ladder.values[0]}"]
        else:
            bounds = f"{ladder.low:g} to {ladder.high:g}"
            values = [f"given by the condition: {' or '.join(ladder.choices) or bounds}"]
        lines.append(f"| `{key}` | {ladder.unit or 'name'} | {' | '.join(values)} |")
    return "\n".join(lines)


IN_CLIPS = {
    "frame": "new in every frame of a clip",
    "camera": "the same in all frames of a clip",
    "scene": "moving with the scene in a clip",
}


def facts(corruption: Corruption) -> list[str]:
    """What else a user must know, and whom to cite."""
    found = []
    for key, _, names in corruption.alternatives():
        found.append(f"* Instead of `{key}`: {', '.join(f'`{name}`' for name in names)}.")
    if corruption.needs:
        found.append(f"* Needs {' and '.join(corruption.needs)} of every image.")
    if corruption.moves:
        default = "move with the pixels" if corruption.labels == "moved" else "stay where they are"
        found.append(
            f"* It moves pixels: labels {default}, unless `labels=moved` or `labels=fixed` says otherwise."
        )
    random = f"Random, {IN_CLIPS[corruption.owner]}"
    fixed = "The same for every image id"
    found.append(f"* {random if corruption.is_random else fixed}; version {corruption.version}.")
    return [*found, f"* {cited(corruption.cite)}"]


def heading(name: str, corruptions: list[Corruption]) -> str:
    """A page's beginning: the suite, its paper, and what of it stands on another page."""
    if name not in SUITES:
        return f"# {name}\n\nCorruptions of no suite."
    suite = SUITES[name]
    found = [f"# {name}", f"{suite.doc}. {cited(suite.cite)}"]
    elsewhere = [c for c in suite.corruptions if c not in {one.name for one in corruptions}]
    if elsewhere:
        found.append(f"Also in this suite: {', '.join(f'`{c}`' for c in elsewhere)}.")
    return "\n\n".join([*found, f"```\nstormproof run … --conditions {name}\n```"])


def pages() -> dict[str, str]:
    """Every page by its file name."""
    found, lines = {}, []
    for name, corruptions in members().items():
        parts = [heading(name, corruptions), *map(described, corruptions)]
        found[f"{name}.md"] = "\n\n".join(parts) + "\n"
        lines += [f"| [{one.name}]({name}.md#{one.name}) | {one.doc} | {name} |" for one in corruptions]
    return {"README.md": INTRODUCTION + "\n".join(lines) + "\n", **found}


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("names", nargs="*", help="corruptions whose images to make; default all")
    asked.add_argument("--text", action="store_true", help="leave the images as they are")
    options = asked.parse_args()
    OUT.mkdir(exist_ok=True)
    for name, text in pages().items():
        (OUT / name).write_text(text, encoding="utf-8")
    for name, corruption in CORRUPTIONS.items() if not options.text else ():
        if not options.names or name in options.names:
            image = PIL.Image.fromarray(strip(corruption))
            image.save(OUT / f"{name}.webp", quality=QUALITY, method=6)


if __name__ == "__main__":
    main()
