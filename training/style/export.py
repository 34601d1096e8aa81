"""Trained weights as the two ONNX graphs the package ships: `python export.py style_weights.npz`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from stormproof.style.graph import onnx_graph
from stormproof.style.layers import BUILTIN_DECODER, BUILTIN_ENCODER

FOLDER = Path(__file__).parents[2] / "src/stormproof/style/weights"


def main(weights: Path, folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(weights) as stored:
        for part, layers in (("encoder", BUILTIN_ENCODER), ("decoder", BUILTIN_DECODER)):
            own = {
                name.removeprefix(f"{part}."): stored[name] for name in stored if name.startswith(f"{part}.")
            }
            (folder / f"{part}.onnx").write_bytes(onnx_graph(layers, own, half=True))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
