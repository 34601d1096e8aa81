"""The command line as a person types it; and images to type about."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from stormproof.cli import app, main


def stormproof(*arguments: object, columns: int = 200) -> subprocess.CompletedProcess[str]:
    """What a command prints and how it ends. It runs in this process, which has everything loaded."""
    words = ["stormproof", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code: object = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "argv", words)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code if isinstance(code, int) else 1, *said)


def say(*words: object, code: int | tuple[int, ...] = 0, columns: int = 200) -> str:
    """What a command prints that exits with this code, or one of these. An exception reaches the test."""
    wide = {"COLUMNS": str(columns)}
    shown = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False, env=wide)
    assert shown.exit_code in (code if isinstance(code, tuple) else (code,)), shown.output
    return shown.stdout


def make_image(seed: int, shape: tuple[int, ...] = (36, 48, 3)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
