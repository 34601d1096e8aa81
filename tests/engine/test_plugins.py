"""Corruptions of packages and files: found, run, and scored where the truth moves with the pixels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from engine.conftest import MODELS
from engine.scenes import write_scene
from stormproof.datasets import open_dataset

SHIFT = '''
import numpy as np
from stormproof.corruptions.registry import corruption, ladder

def to_the_left(size, *, pixels):
    return np.zeros(size, np.float32), np.full(size, pixels, np.float32)

@corruption(family="mine", cite="", moves=to_the_left, labels="moved", pixels=ladder(1, 2, 3, 4, 5))
def nudge(image, *, pixels):
    """The camera was knocked."""
    return np.roll(image, -int(pixels), axis=1)
'''


def stormproof(*words: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, which knows no plugin from before."""
    paths = [*([str(path)] if path else []), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "stormproof", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def ran(out: Path, data: str, condition: str, *more: object, path: Path | None = None) -> None:
    words = ["--model", f"{MODELS}:brightness_boxes", "--data", data, "-c", condition, "--engine", "local"]
    done = stormproof("run", *words, "--out", out, *more, path=path)
    assert done.returncode == 0, done.stderr


def test_a_package_offers_corruptions_by_entry_point(tmp_path: Path) -> None:
    (tmp_path / "knocks.py").write_text(SHIFT)
    about = tmp_path / "knocks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: knocks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[stormproof.corruptions]\nknocks = knocks\n")
    listed = stormproof("list", "corruptions", path=tmp_path)
    assert "The camera was knocked." in listed.stdout, listed.stderr
    assert "The camera was knocked." not in stormproof("list", "corruptions").stdout
    ran(tmp_path / "run", write_scene(tmp_path / "scene", images=3), "nudge@4", path=tmp_path)
    scored = stormproof("score", tmp_path / "run", path=tmp_path)  # installed, so nothing is to be named
    assert scored.returncode == 0, scored.stderr
    assert "nudge" in scored.stdout


def test_a_plugin_that_moves_labels_is_named_again_to_score(tmp_path: Path) -> None:
    plugin, data = tmp_path / "mine.py", write_scene(tmp_path / "scene", images=3)
    plugin.write_text(SHIFT)
    ran(tmp_path / "run", data, "nudge@4", "--plugin", plugin)
    without = stormproof("score", tmp_path / "run")
    assert without.returncode == 2
    assert "nudge needs the code of a plugin; give its file with --plugin FILE" in without.stderr
    scored = stormproof("score", tmp_path / "run", "--plugin", plugin)
    assert scored.returncode == 0, scored.stderr
    truth = stormproof("export", tmp_path / "run", "--truth", "--out", tmp_path / "truth", "--plugin", plugin)
    assert truth.returncode == 0, truth.stderr
    images = data.partition("images=")[2]
    before = open_dataset(data).truth(0).instances
    after = open_dataset(f"coco:{tmp_path}/truth/nudge@4.json,images={images}").truth(0).instances
    assert before is not None
    assert after is not None
    moved = before.boxes - [4, 0, 4, 0]
    np.testing.assert_allclose(after.boxes, np.clip(moved, 0, None), atol=1)  # to the pixel of its mask
