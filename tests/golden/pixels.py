"""Hashes of the pixels of every recipe at every severity, as they were when its version was given.

    python tests/golden/pixels.py           compare
    python tests/golden/pixels.py --write   store pixels of recipes that are new or have a new version

`style` is left out: its pixels follow from its networks' weights, whose hash is in the run's record.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from stormproof.core.condition import SEVERITIES, Condition
from stormproof.core.sample import RLE, Context, Instances, Sample, Truth
from stormproof.corruptions import CORRUPTIONS, SUITES, apply
from stormproof.corruptions.plugins import is_plugin

FILE = Path(__file__).with_name("pixels.json")
SIZES = ((61, 83, 3), (96, 40, 3), (33, 47, 1))  # height, width, channels: odd, portrait, grey
LEFT_OUT = ("style",)

Pixels = dict[str, dict[str, object]]  # corruption → its version, and the hashes of each condition


def image(height: int, width: int, channels: int) -> np.ndarray:
    """Slopes, edges, texture and saturated patches from whole numbers alone: the same on every machine."""
    y, x, c = np.ogrid[:height, :width, :channels]
    slope = 3 * x + 2 * y + 40 * c
    texture = (x * x * 7 + y * y * 13 + x * y * 5 + c * 31) % 37
    patches = 90 * ((x // 11 + y // 9 + c) % 3)
    return np.clip((slope // 2 + texture + patches) % 300 - 20, 0, 255).astype(np.uint8)


def sample(height: int, width: int, channels: int) -> Sample:
    """An image with everything a corruption may ask for."""
    mask = np.zeros((height, width), bool)
    mask[height // 4 : height // 2, width // 4 : width // 2] = True
    box = [[width // 4, height // 4, width // 2, height // 2]]
    rows = (60 - np.arange(height, dtype=np.float32) * 0.5)[:, None]
    depth = np.tile(np.maximum(rows, np.float32(2)), (1, width))
    truth = Truth(Instances(box, [0], masks=(RLE.from_mask(mask),)))
    return Sample(
        "golden.png", image(height, width, channels), truth, Context(depth=depth), classes=("thing",)
    )


def conditions(name: str) -> list[Condition]:
    """The five severities where there are any, and what suites name beside them."""
    listed = {c for suite in SUITES.values() for c in suite if c.corruption == name}
    return sorted(listed, key=str) or [Condition.of(name, severity) for severity in SEVERITIES]


def pixels(name: str) -> dict[str, object]:
    """A corruption's version, and a hash of each condition's pixels on each image."""
    samples = [sample(*size) for size in SIZES]
    found = {}
    for condition in conditions(name):
        made = (apply(each, condition, seed=1).image for each in samples)
        found[str(condition)] = " ".join(map(_hash, made))
    return {"version": CORRUPTIONS[name].version, "pixels": found}


def _hash(made: np.ndarray) -> str:
    return hashlib.blake2b(made.tobytes(), digest_size=5).hexdigest()


def recipes() -> list[str]:
    """Ours: plugins of other tests may be registered in the same process."""
    ours = {name: one for name, one in CORRUPTIONS.items() if not is_plugin(one)}
    return [name for name, one in ours.items() if one.family not in LEFT_OUT and name not in LEFT_OUT]


def complaint(name: str, stored: Pixels) -> str | None:
    """What is not as it was, and what to do about it."""
    if name not in stored:
        return f"{name} has no golden pixels; write them with 'make golden'."
    was, now = stored[name], pixels(name)
    if was == now:
        return None
    before, after = was["pixels"], now["pixels"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    moved = [text for text in after if before.get(text) != after[text]]
    if was["version"] == now["version"]:
        return (
            f"{name}: the pixels of {len(moved)} of {len(after)} conditions moved ({', '.join(moved[:3])}), "
            f"but its version is still {now['version']}. If they should, raise the recipe's version and run "
            "'make golden'; if not, a library moved them, and results cannot be compared any more."
        )
    return f"{name} has version {now['version']}, its pixels {was['version']}; write them with 'make golden'."


def kept(name: str, stored: Pixels) -> dict[str, object]:
    """What is stored for a recipe; only a new recipe or a new version gets new pixels."""
    same = name in stored and stored[name]["version"] == CORRUPTIONS[name].version
    return stored[name] if same else pixels(name)


def main() -> int:
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        lines = [f"{json.dumps(name)}: {json.dumps(kept(name, stored))}" for name in sorted(recipes())]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    found = [text for name in recipes() if (text := complaint(name, stored))]
    print(*found, f"{len(recipes())} recipes, {len(found)} moved.", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
