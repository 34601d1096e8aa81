"""Exports trained weights as the two ONNX graphs of the package: `python export.py [--out DIR] FILE.npz …`.

The weights of several files, which began with the same weights, are averaged; one named twice counts twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stormproof.style.layers import BUILTIN_DECODER, BUILTIN_ENCODER, joins, level_names
from stormproof.style.onnx import onnx_graph

FOLDER = Path(__file__).parents[2] / "networks/src/stormproof_networks/style"


def mean_weights(files: Sequence[Path]) -> dict[str, np.ndarray]:
    stored = [dict(np.load(file)) for file in files]
    return {name: np.mean([each[name].astype(np.float32) for each in stored], 0) for name in stored[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    weights = mean_weights(options.weights)
    taps = level_names(BUILTIN_ENCODER, [join.source for join in joins(BUILTIN_DECODER)])
    for part, layers, kept in (("encoder", BUILTIN_ENCODER, taps), ("decoder", BUILTIN_DECODER, ())):
        own = {
            name.removeprefix(f"{part}."): value for name, value in weights.items() if name.startswith(part)
        }
        (options.out / f"{part}.onnx").write_bytes(onnx_graph(layers, own, taps=kept, half=True))


if __name__ == "__main__":
    main()
