"""Exports trained weights as the two ONNX graphs of the package: `python export.py [--out DIR] FILE.npz …`.

The weights of several files, from stretches of one training, are averaged. `--read FILE.npz` goes the
other way: it writes the weights of the graphs, for a training to begin with.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stormproof.style.layers import BUILTIN_DECODER, BUILTIN_ENCODER
from stormproof.style.onnx import onnx_graph

FOLDER = Path(__file__).parents[2] / "networks/src/stormproof_networks/style"


def mean_weights(files: Sequence[Path]) -> dict[str, np.ndarray]:
    stored = [dict(np.load(file)) for file in files]
    return {name: np.mean([each[name].astype(np.float32) for each in stored], 0) for name in stored[0]}


def exported_weights(folder: Path) -> dict[str, np.ndarray]:
    """The weights within the two graphs of a folder, by part and layer."""
    import onnx

    found = {}
    for part in ("encoder", "decoder"):
        for tensor in onnx.load(folder / f"{part}.onnx").graph.initializer:
            name = tensor.name.removesuffix(".half")
            if name.endswith((".weight", ".bias")):
                found[f"{part}.{name}"] = onnx.numpy_helper.to_array(tensor)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, nargs="*")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--read", type=Path, help="write the weights of the graphs in --out to this file")
    options = parser.parse_args()
    if options.read:
        np.savez(options.read, **exported_weights(options.out))
        return
    if not options.weights:
        parser.error("name the weights to export, or --read")
    options.out.mkdir(parents=True, exist_ok=True)
    weights = mean_weights(options.weights)
    for part, layers in (("encoder", BUILTIN_ENCODER), ("decoder", BUILTIN_DECODER)):
        own = {
            name.removeprefix(f"{part}."): value for name, value in weights.items() if name.startswith(part)
        }
        (options.out / f"{part}.onnx").write_bytes(onnx_graph(layers, own, half=True))


if __name__ == "__main__":
    main()
