"""Does a processor without VNNI explain losses of static twins? valgrind emulates one: it has AVX2 at most.

    python studies/int8/processor.py --runs DIR      # writes processor.json; about ten minutes

Runs street-plain and its static twins on a few scenes, on this processor and in valgrind, clean and brighter.
Scores are the mIoU of the network's own map, a quarter of the image's size, without rescaling it smoothly.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
NETWORK = "street-plain"
TWINS = ("fp32", "static", "static, reduced range")
CONDITIONS = ("clean", "brightness@3")
EMULATED = ("valgrind", "--tool=none", "--quiet")
SCENES = 3
IGNORE = 255


def prepare(runs: Path) -> list[Path]:
    """Write the scenes' pixels and truth, and the twins."""
    from quantise import make_twin

    import stormproof as sp
    from stormproof.core.condition import Condition
    from stormproof.corruptions import apply

    samples = list(sp.open_dataset("world:test", limit=SCENES))
    kept = {"truth": np.stack([s.truth.semantic.labels for s in samples if s.truth.semantic])}
    for text in CONDITIONS:
        seen = [apply(sample, Condition.parse(text), seed=0).image for sample in samples]
        kept[text] = (np.stack(seen).astype(np.float32).transpose(0, 3, 1, 2) - 127.5) / 127.5
    np.savez(runs / "scenes.npz", **kept)
    return [make_twin(NETWORK, twin, runs) for twin in TWINS]


def answer(runs: Path, out: Path, paths: list[Path]) -> None:
    """Write the class maps of networks; loads little, since valgrind takes a hundred times as long."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    scenes, maps = np.load(runs / "scenes.npz"), {}
    for twin, path in zip(TWINS, paths, strict=True):
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        for text in CONDITIONS:
            scores = [session.run(None, {"image": image[None]})[0][0] for image in scenes[text]]
            maps[f"{twin}/{text}"] = np.stack(scores).argmax(1).astype(np.uint8)
    np.savez(out, **maps)


def miou(maps: npt.NDArray[np.uint8], truth: npt.NDArray[np.uint8]) -> float:
    """In %, over the classes that the scenes show."""
    larger = maps.repeat(truth.shape[1] // maps.shape[1], 1).repeat(truth.shape[2] // maps.shape[2], 2)
    known, kinds = truth != IGNORE, int(max(maps.max(), truth[truth != IGNORE].max())) + 1
    pairs = truth[known].astype(np.int64) * kinds + larger[known]
    counts = np.bincount(pairs, minlength=kinds**2).reshape(kinds, kinds)
    hits, shown = np.diagonal(counts), counts.sum(1) > 0
    union = counts.sum(0) + counts.sum(1) - hits
    return float(100 * (hits[shown] / union[shown]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="where networks and maps go")
    parser.add_argument("--answer", nargs="+", type=Path, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.answer:
        out, *paths = options.answer
        answer(options.runs, out, paths)
        return
    options.runs.mkdir(parents=True, exist_ok=True)
    paths = prepare(options.runs)
    truth = np.load(options.runs / "scenes.npz")["truth"]
    found = {}
    here = "with VNNI" if "vnni" in Path("/proc/cpuinfo").read_text() else "without VNNI"
    for processor, wrapper in {here: (), "AVX2, emulated": EMULATED}.items():
        out = options.runs / f"maps-{len(wrapper)}.npz"
        command = [*wrapper, sys.executable, __file__, "--runs", str(options.runs), "--answer"]
        subprocess.run([*command, str(out), *map(str, paths)], check=True)
        maps = np.load(out)
        found[processor] = {name: round(miou(maps[name], truth), 1) for name in maps.files}
    (HERE / "processor.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
