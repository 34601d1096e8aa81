"""The training loop, for a number of seconds or of steps, of one network or of several side by side."""

from __future__ import annotations

import copy
import json
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from training.config import Source, Training
from training.evaluation import evaluate
from training.losses import TRUTHS
from training.networks import build
from training.pool import CLEAN
from training.scenes import Arrays, Scenes
from training.step import Step

FIRST = 2000  # scenes that must be rendered before the first step
WARM = 0.03  # share of the training in which the learning rate rises
EVERY = 20.0  # seconds between checks of the pool, the losses and the weights
SAVED = 60.0  # seconds between saved weights
SCORED = 150.0  # seconds between scores on some of the held-out scenes, which are slow to compute
PART, VAL = 60, 200  # held-out scenes scored along the way, and at the end


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: after a number of seconds, or of steps if given."""

    seconds: float
    steps: int | None = None

    def spent(self, seconds: float, steps: int) -> float:
        """The share of the training that is done."""
        return steps / self.steps if self.steps is not None else seconds / self.seconds


def rate(spent: float, base: float) -> float:
    """The learning rate: a short rise, then half a cosine down to 1 % of the base."""
    if spent < WARM:
        return base * (0.05 + 0.95 * spent / WARM)
    fall = 0.5 * (1 + math.cos(math.pi * min(1.0, (spent - WARM) / (1 - WARM))))
    return base * (0.01 + 0.99 * fall)


def decayed(network: nn.Module) -> list[dict[str, Any]]:
    """Parameter groups: weight decay for convolutions, none for biases and norms."""
    shrink = [p for p in network.parameters() if p.ndim > 1]
    keep = [p for p in network.parameters() if p.ndim <= 1]
    return [{"params": shrink}, {"params": keep, "weight_decay": 0.0}]


class Average:
    """The running average of a network's weights and statistics; this is what is saved."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.decay, self.steps = decay, 0
        self._mine = [t for t in self.network.state_dict().values() if t.is_floating_point()]

    @torch.no_grad()
    def follow(self, network: nn.Module) -> None:
        self.steps += 1
        theirs = [t for t in network.state_dict().values() if t.is_floating_point()]
        weight = 1 - min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self._mine, theirs, weight)


def train(
    training: Training, folder: Path, out: Path, budget: Budget, device: torch.device
) -> dict[str, Any]:
    """Train on `folder`/train, score on `folder`/val, and save weights and log as `out`/NAME.pt."""
    for log in train_together([(training, budget)], folder, out, device):
        return log
    raise RuntimeError(f"The training {training.name} failed; see its output above.")


def train_together(
    trainings: Sequence[tuple[Training, Budget]],
    folder: Path,
    out: Path,
    device: torch.device,
    at_once: int = 1,
) -> Iterator[dict[str, Any]]:
    """Train several networks in turns, a step each, `at_once` side by side; yields the log of each that ends.

    They share the scenes in the device's memory. On a GPU each has its own stream, so that the kernels of one
    fill the gaps of another: small networks leave a large GPU mostly idle.
    """
    started = time.monotonic()
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    if not trainings:
        return
    train, held_out = _loaded(trainings, folder, device)
    waiting = deque(trainings)
    running: list[tuple[_Run, Iterator[None], Any]] = []
    while waiting or running:
        while waiting and len(running) < at_once:
            training, budget = waiting.popleft()
            run = _begun(training, train, held_out, out, started)
            stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
            running.append((run, run.steps(budget), stream))
        for each in list(running):
            run, steps, stream = each
            try:
                with torch.cuda.stream(stream) if stream is not None else nullcontext():
                    if next(steps, _ENDED) is not _ENDED:
                        continue
            except RuntimeError as error:  # such as too little memory: it stops no other training
                _say(run.training, f"failed: {error}")
            else:
                yield run.log
            running.remove(each)
            started = time.monotonic()


_ENDED = object()


def _loaded(
    trainings: Sequence[tuple[Training, Budget]], folder: Path, device: torch.device
) -> tuple[Arrays, Arrays]:
    """Training and held-out scenes, with every array that one of the trainings needs."""
    seconds = max(budget.seconds for _, budget in trainings)
    truths = {name for training, _ in trainings for name in TRUTHS[training.network]}
    images = {source.array for training, _ in trainings for source in training.images}
    limits = [training.scenes for training, _ in trainings]
    train = Arrays(folder / "train", device, sorted(truths | images), max(limits) if all(limits) else 0)
    held_out = Arrays(folder / "val", device, sorted({CLEAN, *truths}))
    held_out.wait(VAL, seconds)
    train.wait(FIRST, seconds)
    return train, held_out


def _begun(training: Training, train: Arrays, held_out: Arrays, out: Path, started: float) -> _Run:
    device = train.device
    network: nn.Module = build(training.network, training.options, training.seed).to(device)
    network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    average = Average(network, training.ema)
    optimizer = torch.optim.AdamW(
        decayed(network), torch.tensor(training.rate, device=device), weight_decay=training.decay,
        fused=device.type == "cuda", capturable=device.type == "cuda",
    )  # fmt: skip
    if device.type == "cuda":
        torch.cuda.synchronize()  # it is trained on another stream
    truths = TRUTHS[training.network]
    scenes = Scenes(train, training.images, truths, training.scenes)
    log: dict[str, Any] = {
        "training": asdict(training),
        "world": train.pool.world,
        "parameters": sum(p.numel() for p in network.parameters()),
        "curve": [],
    }
    _say(training, f"{log['parameters']} parameters, {scenes.count} scenes")
    seen = Scenes(held_out, (Source(),), truths)
    return _Run(training, network, average, optimizer, scenes, seen, log, out, started)


@dataclass(slots=True)
class _Run:
    training: Training
    network: nn.Module
    average: Average
    optimizer: torch.optim.Optimizer
    scenes: Scenes
    held_out: Scenes
    log: dict[str, Any]
    out: Path
    started: float

    def steps(self, budget: Budget) -> Iterator[None]:
        """Train until the budget is spent; yields after every step."""
        generator = torch.Generator().manual_seed(self.training.seed)
        good = copy.deepcopy(self.network.state_dict())
        begun = looked = saved = scored = time.monotonic()
        step = Step(self.training, self.network, self.optimizer, self.scenes)
        steps, caution = 0, 1.0
        losses: dict[str, Tensor] = {}
        # The wait for scenes is part of the seconds, not of the schedule.
        window = Budget(max(1.0, budget.seconds - (begun - self.started)), budget.steps)
        while (spent := window.spent(time.monotonic() - begun, steps)) < 1:
            for group in self.optimizer.param_groups:
                group["lr"].fill_(caution * rate(spent, self.training.rate))
            losses = step(generator)
            self.average.follow(self.network)
            steps += 1
            yield
            if time.monotonic() - looked < EVERY:
                continue
            looked = time.monotonic()
            self.scenes.arrays.grow()
            if _healthy(self.network) and _healthy(self.average.network):
                good = copy.deepcopy(self.network.state_dict())
            else:
                _say(self.training, f"step {steps}: not finite; back to the last good weights")
                self.network.load_state_dict(good)
                self.average = Average(self.network, self.training.ema)
                for state in self.optimizer.state.values():  # in place: a graph holds these tensors
                    for value in state.values():
                        value.zero_()
                caution *= 0.5
            self.note(steps, spent, losses)
            if looked - scored > SCORED:
                scored = looked
                self.score(PART)
            if looked - saved > SAVED:
                saved = looked
                self.save()
        self.note(steps, 1.0, losses)
        self.save()  # before the last score, in case there is no time left for it
        self.score(VAL)
        self.save()

    def note(self, steps: int, spent: float, losses: dict[str, Tensor]) -> None:
        row: dict[str, Any] = {"step": steps, "spent": round(spent, 4), "scenes": self.scenes.count}
        row |= {name: round(float(value.detach()), 4) for name, value in losses.items()}
        self.log["curve"].append(row)
        self.log["scenes"], self.log["seconds"] = self.scenes.count, _since(self.started)

    def score(self, scenes: int) -> None:
        begun = time.monotonic()
        scores = evaluate(self.average.network, self.training.network, self.held_out, scenes)
        rounded = {name: round(value, 4) for name, value in scores.items()}
        row = self.log["curve"][-1]
        row |= rounded
        self.log["val"] = rounded
        _say(self.training, f"{_since(self.started)} s {row} (scored in {_since(begun)} s)")

    def save(self) -> None:
        """Save the weights as float16 and the log, in one file that is replaced atomically."""
        self.out.mkdir(parents=True, exist_ok=True)
        weights = {
            name: (t.half() if t.is_floating_point() else t).cpu()
            for name, t in self.average.network.state_dict().items()
        }
        target = self.out / f"{self.training.name}.pt"
        scratch = target.with_suffix(".part")
        torch.save({"weights": weights, "log": json.dumps(self.log)}, scratch)
        scratch.replace(target)


def _healthy(network: nn.Module) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in network.parameters())


def _since(moment: float) -> int:
    return round(time.monotonic() - moment)


def _say(training: Training, text: str) -> None:
    print(f"[{training.name}] {text}", flush=True)
