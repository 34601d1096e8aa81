"""The trainings of the study: one network for each cure and seed, several at once on one device.

    python studies/cures/trainings.py --pool POOL --out WEIGHTS --steps 1600

POOL is rendered, stylized and corrupted by `python -m training` (see README.md). A training whose
weights exist is not repeated, so a stopped study goes on.
"""

from __future__ import annotations

import argparse
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
BASES = {"grid": "street-grid", "plain": "street-plain"}
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
    return order + [(network, cure, SEEDS[0]) for network in ("plain", "grid") for cure in single]


def training_of(name: str) -> tuple[str, str, int]:
    """Network, cure and seed of a name such as grid-corrupted-blur-1."""
    network, _, rest = name.partition("-")
    cure, _, seed = rest.rpartition("-")
    if network not in BASES or cure not in CURES or not seed.isdecimal():
        raise argparse.ArgumentTypeError(f"{name!r} is not NETWORK-CURE-SEED, such as grid-combined-2")
    return network, cure, int(seed)


def settings(network: str, cure: str, seed: int) -> Training:
    base, chosen = load(BASES[network]), CURES[cure]
    return replace(
        base, name=f"{network}-{cure}-{seed}", kind=cure, seed=seed, images=chosen.images,
        adversarial=chosen.adversarial, augment=Augment(**{**asdict(base.augment), **chosen.augment}),
    )  # fmt: skip


def every(options: argparse.Namespace) -> None:
    """Work through the list, `--at-once` side by side."""
    import torch

    from training.loop import Budget, train_together

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    unfinished = options.out / "unfinished"
    work = [
        (
            replace(settings(network, cure, seed), scenes=options.scenes),
            Budget(1e9, options.steps * CURES[cure].steps),
        )
        for network, cure, seed in options.names
        if not (options.out / f"{network}-{cure}-{seed}.pt").exists()
    ]
    for log in train_together(work, options.pool, unfinished, device, options.at_once):
        name = f"{log['training']['name']}.pt"
        (unfinished / name).replace(options.out / name)
        print(f"{time.time():.0f} {name} is trained", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1600, help="of the standard training")
    parser.add_argument("--scenes", type=int, default=0, help="of the pool, at most")
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument(
        "--names", nargs="+", type=training_of, default=trainings(), metavar="NAME",
        help="trainings in this order, such as grid-combined-2",
    )  # fmt: skip
    every(parser.parse_args())


if __name__ == "__main__":
    main()
