"""The trainings of the study: segmenters without one part each, and segmenters that saw one corruption.

    python studies/ablations/trainings.py --pool POOL --out WEIGHTS

POOL is rendered and corrupted by `python -m training` (see README.md). Seeds come one after another, so that
a study that is stopped has all networks of fewer seeds. A training whose weights exist is not repeated.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from training.config import Source, Training, load

REFERENCE: dict[str, Any] = {"context": "aspp", "dilation": 2}
# kamann, Section 4.2: what is taken from the reference, or exchanged, in two backbones; and its width.
ABLATIONS: dict[str, dict[str, Any]] = {
    "reference": {},
    "noaspp": {"context": "plain"},
    "noac": {"dilation": 1},
    "dpc": {"context": "dpc"},
    "nolink": {"links": 1},
    "mean": {"context": "aspp-mean"},
    "wide": {"width": 72, "widths": (36, 60, 96, 144, 156)},
}
DEEP = {"depths": (2, 4, 4, 2)}  # twice as many blocks
ABLATIONS |= {f"deep{name}": DEEP | ABLATIONS[name] for name in ("reference", "noac", "dpc")}
# kamann, Section 6: the reference trained on clean scenes and one corruption of each category.
SEEN = {
    "blur": "gaussian_blur@5", "noise": "speckle_noise@3", "digital": "saturate@3", "weather": "spatter@3",
}  # fmt: skip
SEEDS = (1, 2, 3, 4, 5)
BATCH = 16


def settings(name: str, seed: int) -> Training:
    """The reference without a part, or trained on half clean, half corrupted scenes."""
    base = load("street-context")
    images = (Source(), Source(SEEN[name])) if name in SEEN else (Source(),)
    return replace(
        base, name=f"{name}-{seed}", seed=seed, batch=BATCH, images=images,
        options=base.options | REFERENCE | ABLATIONS.get(name, {}),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--scenes", type=int, default=10000, help="of the pool, at most")
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--names", nargs="+", default=[*ABLATIONS, *SEEN], choices=[*ABLATIONS, *SEEN])
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    options = parser.parse_args()
    import torch

    from training.loop import Budget, train_together

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    unfinished = options.out / "unfinished"
    work = [
        (replace(settings(name, seed), scenes=options.scenes), Budget(1e9, options.steps))
        for seed in options.seeds
        for name in options.names
        if not (options.out / f"{name}-{seed}.pt").exists()
    ]
    for log in train_together(work, options.pool, unfinished, device, options.at_once):
        name = f"{log['training']['name']}.pt"
        (unfinished / name).replace(options.out / name)
        print(f"{time.time():.0f} {name} is trained", flush=True)


if __name__ == "__main__":
    main()
