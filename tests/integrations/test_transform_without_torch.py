"""The training transform on Pillow images, in an environment without torch."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
sys.modules["torch"] = None  # as if it were not installed: importing it fails
import numpy as np, PIL.Image
from stormproof import CorruptionTransform
image = PIL.Image.fromarray(np.full((24, 32, 3), 128, np.uint8))
transform = CorruptionTransform("gaussian_noise@3", share=1)
first, second = transform(image), transform(image)
named = transform(image, "a.png"), transform(image, "a.png")
print(first.size, np.array_equal(first, second), np.array_equal(*named), np.array_equal(image, first))
"""


def test_a_pillow_image_needs_no_torch() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["(32,", "24)", "False", "True", "False"]
