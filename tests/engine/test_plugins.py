"""Corruptions of packages and files: found, run, and scored where the truth moves with the pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from helpers.fake_models import MODELS
from helpers.forked import outcome
from helpers.scenes import write_scene
from stormproof.datasets import read_dataset

SHIFT = '''
import numpy as np
from stormproof.corruptions.corruption import corruption, ladder

def to_the_left(size, *, pixels):
    return np.zeros(size, np.float32), np.full(size, pixels, np.float32)

@corruption(family="mine", cite="", moves=to_the_left, labels="moved", pixels=ladder(1, 2, 3, 4, 5))
def nudge(image, *, pixels):
    """The camera was knocked."""
    return np.roll(image, -int(pixels), axis=1)
'''


def run_words(out: Path, data: str, condition: str) -> list[str]:
    words = ["--model", f"{MODELS}:brightness_boxes", "--data", data, "-c", condition, "--engine", "local"]
    return ["run", *words, "--out", str(out)]


def test_a_package_offers_corruptions_by_entry_point(tmp_path: Path) -> None:
    package, run = tmp_path / "installed", tmp_path / "run"
    about = package / "knocks-1.0.dist-info"
    about.mkdir(parents=True)
    (package / "knocks.py").write_text(SHIFT)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: knocks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[stormproof.corruptions]\nknocks = knocks\n")
    listing, data = ["list", "corruptions"], write_scene(tmp_path / "scene", images=3)
    words = [listing, run_words(run, data, "nudge@4"), ["score", str(run)]]  # installed: not to be named
    codes, texts = zip(*(outcome(line, tmp_path, path=str(package)) for line in words), strict=True)
    assert codes == (0, 0, 0), texts
    assert "The camera was knocked." in texts[0]
    assert "nudge" in texts[2]
    _, without = outcome(listing, tmp_path)
    assert "The camera was knocked." not in without


def test_scoring_needs_the_plugin_that_moved_the_labels(tmp_path: Path) -> None:
    plugin, data, run = tmp_path / "mine.py", write_scene(tmp_path / "scene", images=3), str(tmp_path / "run")
    plugin.write_text(SHIFT)
    named = ["--plugin", str(plugin)]
    words = [[*run_words(tmp_path / "run", data, "nudge@4"), *named], ["score", run], ["score", run, *named],
             ["export", run, "--truth", "--out", str(tmp_path / "truth"), *named]]  # fmt: skip
    codes, texts = zip(*(outcome(line, tmp_path) for line in words), strict=True)
    assert codes == (0, 2, 0, 0), texts
    needed = "nudge needs the code of a plugin; give its file with --plugin FILE"
    assert needed in " ".join(texts[1].split())
    images = data.partition("images=")[2]
    before = read_dataset(data).truth(0).instances
    after = read_dataset(f"coco:{tmp_path}/truth/nudge@4.json,images={images}").truth(0).instances
    assert before is not None
    assert after is not None
    moved = before.boxes - [4, 0, 4, 0]
    np.testing.assert_allclose(after.boxes, np.clip(moved, 0, None), atol=1)  # to the pixel of its mask
