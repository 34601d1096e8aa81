"""The trainings of the study: one network for each cure and seed, several at once on one device.

    python studies/cures/trainings.py --pool POOL --out WEIGHTS --steps 1600

POOL is rendered, stylized and corrupted by `python -m training` (see README.md). A training whose
weights exist is not repeated, so a stopped study goes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from training.config import Augment, Source, Training, load

STYLIZED = "stylized"
# kamann, Section 6: one corruption of each category. Of spatter the mud, which needs no OpenCV.
CORRUPTED = {
    "blur": "gaussian_blur@5", "noise": "speckle_noise@3", "digital": "saturate@3", "weather": "spatter@4",
}  # fmt: skip
# kamann, Section 4.2: the segmenter with context, and what is taken from it; and its width.
ABLATIONS: dict[str, dict[str, Any]] = {
    "reference": {},
    "noatrous": {"context": "global"},
    "nomean": {"context": "atrous-local"},
    "nolink": {"links": 1},
    "narrow": {"width": 32, "widths": (16, 27, 43, 64, 69)},
    "wide": {"width": 72, "widths": (36, 60, 96, 144, 156)},
}
BASES = {"grid": "street-grid", "plain": "street-plain"} | dict.fromkeys(ABLATIONS, "street-context")
SEEDS = (1, 2)


@dataclass(frozen=True)
class Cure:
    """A way to train: what differs from the standard training.

    `steps` is relative to it, so that every cure sees as many clean images: a cure whose batches are half
    clean takes twice as many steps.
    """

    label: str
    steps: int = 1
    augment: dict[str, Any] = field(default_factory=dict)
    images: tuple[Source, ...] = (Source(),)
    adversarial: float = 0.0
    seen: tuple[str, ...] = ()  # corruptions that the training has seen


def _half(*arrays: str) -> tuple[Source, ...]:
    """Half of every batch clean, the other half from the arrays in equal shares."""
    return (Source(share=len(arrays)), *(Source(name) for name in arrays))


CURES = {
    "standard": Cure("standard"),
    "longer": Cure("standard, twice the steps", 2),
    "photometric": Cure(
        "photometric", augment={"brightness": 0.25, "contrast": 0.5, "saturation": 0.5, "hue": 0.15}
    ),
    "cutout": Cure("Cutout", augment={"mix": "cutout"}),
    "augmix": Cure("AugMix", augment={"mix": "augmix"}),
    "oamix": Cure("OA-Mix", augment={"mix": "oamix"}),
    "stylized": Cure("stylized", images=(Source(STYLIZED),)),
    "combined": Cure("clean and stylized", 2, images=_half(STYLIZED)),
    "corrupted": Cure(
        "clean and corrupted, all four", 2, images=_half(*CORRUPTED.values()), seen=tuple(CORRUPTED.values())
    ),
    "adversarial": Cure("adversarial", 2, adversarial=4.0),
    **{
        f"corrupted-{name}": Cure(f"clean and {condition}", 2, images=_half(condition), seen=(condition,))
        for name, condition in CORRUPTED.items()
    },
}


def trainings() -> list[tuple[str, str, int]]:
    """Network, cure and seed."""
    single = [name for name in CURES if name.startswith("corrupted-")]
    main = [name for name in CURES if name not in single]
    order = [(network, cure, seed) for seed in SEEDS for network in ("grid", "plain") for cure in main]
    order += [(network, "standard", seed) for seed in SEEDS for network in ABLATIONS]
    return order + [(network, cure, SEEDS[0]) for network in ("plain", "grid") for cure in single]


def by_name() -> dict[str, tuple[str, str, int]]:
    return {"-".join(map(str, training)): training for training in trainings()}


def settings(network: str, cure: str, seed: int) -> Training:
    base, chosen = load(BASES[network]), CURES[cure]
    return replace(
        base, name=f"{network}-{cure}-{seed}", kind=cure, seed=seed, images=chosen.images,
        options=base.options | ABLATIONS.get(network, {}),
        adversarial=chosen.adversarial, augment=Augment(**{**asdict(base.augment), **chosen.augment}),
    )  # fmt: skip


def one(network: str, cure: str, seed: int, options: argparse.Namespace) -> None:
    import torch

    from training.loop import Budget, train

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    budget = Budget(1e9, options.steps * CURES[cure].steps)
    training = replace(settings(network, cure, seed), scenes=options.scenes)
    train(training, options.pool, options.out / "unfinished", budget, device)
    name = f"{training.name}.pt"
    (options.out / "unfinished" / name).replace(options.out / name)


def every(options: argparse.Namespace) -> None:
    """Work through the list, `--at-once` side by side, until it is done or the time is up."""
    options.out.mkdir(parents=True, exist_ok=True)
    named = by_name()
    waiting = [named[name] for name in options.names if not (options.out / f"{name}.pt").exists()]
    running: dict[subprocess.Popen[bytes], str] = {}
    while (waiting or running) and time.time() < options.until:
        while waiting and len(running) < options.at_once:
            network, cure, seed = waiting.pop(0)
            order = [sys.executable, __file__, "--pool", str(options.pool), "--out", str(options.out)]
            order += ["--steps", str(options.steps), "--scenes", str(options.scenes)]
            order += ["--only", network, cure, str(seed)]
            process = subprocess.Popen(order, env=os.environ | {"OMP_NUM_THREADS": "1"})
            running[process] = f"{network}-{cure}-{seed}"
        time.sleep(0.5)
        for process in [p for p in running if p.poll() is not None]:
            print(f"{time.time():.0f} {running.pop(process)} ended with {process.returncode}", flush=True)
    for process in running:
        process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1600, help="of the standard training")
    parser.add_argument("--scenes", type=int, default=0, help="of the pool, at most")
    parser.add_argument("--at-once", type=int, default=6)
    names = list(by_name())
    parser.add_argument(
        "--names", nargs="+", choices=names, default=names, metavar="NAME",
        help="trainings in this order, such as grid-combined-2",
    )  # fmt: skip
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds since 1970")
    parser.add_argument("--only", nargs=3, metavar=("NETWORK", "CURE", "SEED"))
    options = parser.parse_args()
    if options.only:
        network, cure, seed = options.only
        one(network, cure, int(seed), options)
    else:
        every(options)


if __name__ == "__main__":
    main()
