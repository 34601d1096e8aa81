"""`python -m training`: render scenes, train networks on them, export and score the results."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    render = verbs.add_parser("render", help="fill a pool with scenes of the street")
    render.add_argument("pool", type=Path)
    render.add_argument("--train", type=int, default=24000)
    render.add_argument("--val", type=int, default=200)
    render.add_argument("--seed", type=int, default=0)
    render.add_argument("--scenario", default="", help="only scenes of this kind, such as town-by-day")
    render.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    corrupt = verbs.add_parser("corrupt", help="add corrupted images to a pool's training scenes")
    corrupt.add_argument("pool", type=Path)
    corrupt.add_argument("condition", help="such as gaussian_noise@3; the array gets its name")
    corrupt.add_argument("--scenes", type=int, default=0, help="the first so many; all unless given")
    corrupt.add_argument("--device", default=None)
    stylize = verbs.add_parser("stylize", help="add stylized images to a pool's training scenes")
    stylize.add_argument("pool", type=Path)
    stylize.add_argument(
        "--weights",
        type=Path,
        required=True,
        help="a file of training/style/train.py, or a folder with the pair as ONNX",
    )
    stylize.add_argument("--styles", type=Path, required=True, help="a folder of style images")
    stylize.add_argument("--device", default=None)
    train = verbs.add_parser("train", help="train a network of training/configs on a pool")
    train.add_argument("name")
    train.add_argument("--pool", type=Path, required=True)
    train.add_argument("--out", type=Path, required=True)
    train.add_argument(
        "--seconds", type=float, default=400.0, help="time for all trainings; the configuration has its share"
    )
    train.add_argument("--until", type=float, help="the same as an end time, in seconds since 1970")
    train.add_argument("--steps", type=int, help="train for this many steps instead")
    train.add_argument("--name", dest="called", help="name of the files, instead of the configuration's")
    train.add_argument("--seed", type=int, help="instead of the configuration's")
    train.add_argument("--batch", type=int, help="instead of the configuration's")
    train.add_argument("--scenes", type=int, help="instead of the configuration's")
    train.add_argument("--device", default=None)
    everything = verbs.add_parser("train-all", help="render, and train several networks side by side")
    everything.add_argument("names", nargs="+")
    everything.add_argument("--pool", type=Path, required=True, help="an empty folder, best in memory")
    everything.add_argument("--out", type=Path, required=True)
    everything.add_argument("--train", type=int, default=24000, help="scenes to train on")
    everything.add_argument("--val", type=int, default=200, help="held-out scenes for scores along the way")
    everything.add_argument("--seconds", type=float, default=540.0, help="time for everything")
    everything.add_argument("--render-path", default="", help="PYTHONPATH for rendering, if it differs")
    export = verbs.add_parser("export", help="write trained weights as ONNX, with card and log")
    export.add_argument("weights", type=Path, nargs="+")
    export.add_argument("--out", type=Path, required=True)
    score = verbs.add_parser("score", help="score exported networks on clean scenes of world:test")
    score.add_argument("networks", type=Path, nargs="+", help="ONNX files; the score goes beside each")
    score.add_argument("--scenes", type=int, default=200)
    score.add_argument("--scratch", type=Path, required=True, help="where the runs go")
    storm = verbs.add_parser("storm", help="score trained weights under many conditions, on this device")
    storm.add_argument("weights", type=Path, nargs="+")
    storm.add_argument("--conditions", nargs="+", default=["imagenet-c"], help="conditions and suites")
    storm.add_argument("--scenes", type=int, default=300, help="of world:test")
    storm.add_argument("--scenario", default="", help="only scenes of this kind, such as town-by-day")
    storm.add_argument("--replicates", type=int, default=100, help="random halves, for intervals")
    storm.add_argument(
        "--remedies", nargs="*", default=[], metavar="NAME+REMEDY",
        help="networks scored with bn (normalised by the test images), clahe, nlm, restyled, rebuilt too",
    )  # fmt: skip
    storm.add_argument("--workers", type=int, default=1)
    storm.add_argument("--out", type=Path, required=True)
    # Each verb imports only what it needs: rendering works without PyTorch, training without Numba.
    arguments = parser.parse_args()
    run = {
        "render": _render, "corrupt": _corrupt, "stylize": _stylize, "train": _train, "train-all": _train_all,
        "export": _export, "score": _score, "storm": _storm,
    }  # fmt: skip
    run[arguments.verb](arguments)


def _render(a: argparse.Namespace) -> None:
    from stormproof.world.samples import VERSION
    from training.pool import Pool
    from training.rendering import fill

    counts = {"val": a.val, "train": a.train}
    pools = [Pool(s, n, 512, 320, a.seed, VERSION, min(a.workers, n), a.scenario) for s, n in counts.items()]
    fill([a.pool / s for s in counts], pools)


def _corrupt(a: argparse.Namespace) -> None:
    from training.corrupting import corrupt

    corrupt(a.pool / "train", a.condition, _device(a.device), a.scenes)


def _stylize(a: argparse.Namespace) -> None:
    from training.stylizing import stylize

    stylize(a.pool / "train", a.weights, a.styles, _device(a.device))


def _device(name: str | None) -> torch.device:
    import torch

    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def _train(a: argparse.Namespace) -> None:
    from dataclasses import replace

    from training.config import load
    from training.loop import Budget, train

    training = load(a.name)
    given = {"name": a.called, "seed": a.seed, "batch": a.batch, "scenes": a.scenes}
    training = replace(training, **{key: value for key, value in given.items() if value is not None})
    seconds = a.seconds if a.until is None else a.until - time.time()
    train(training, a.pool, a.out, Budget(seconds * training.share, a.steps), _device(a.device))


def _train_all(a: argparse.Namespace) -> None:
    from training.parallel import train_all

    train_all(a.names, a.pool, a.out, scenes=(a.train, a.val), seconds=a.seconds, render_path=a.render_path)


def _export(a: argparse.Namespace) -> None:
    from training.export import export

    for path in a.weights:
        print(export(path, a.out))


def _score(a: argparse.Namespace) -> None:
    from training.scoring import score

    for network in a.networks:
        print(network.stem, score(network, a.scenes, a.scratch), flush=True)


def _storm(a: argparse.Namespace) -> None:
    from stormproof.corruptions.grammar import read_conditions
    from training.storm import rendered, spread

    conditions = list(dict.fromkeys(["clean", *map(str, read_conditions(a.conditions))]))
    spread(
        a.weights, conditions, rendered(a.scenes, a.scenario), replicates=a.replicates, remedies=a.remedies,
        workers=a.workers, out=a.out,
    )  # fmt: skip


if __name__ == "__main__":
    main()
