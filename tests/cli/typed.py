"""The command line as a person types it, in a process of its own; and images to type about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np


def stormproof(
    *arguments: object, cwd: Path | None = None, columns: int = 200
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"}
    command = [sys.executable, "-c", "from stormproof.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def make_image(seed: int, shape: tuple[int, ...] = (36, 48, 3)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
