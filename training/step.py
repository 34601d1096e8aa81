"""One step of a training: draw a batch, augment it, compare with the truth, change the weights.

Small networks keep a GPU waiting for the host, so on one the step is compiled, captured as a CUDA graph and
replayed: the host only fills in which scenes, and which random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from training.augment import CHANCES, Batch, varied
from training.boxes import constant
from training.config import Training
from training.losses import LOSSES
from training.mixing import mixed
from training.scenes import Scenes

STEEPEST = 10.0  # largest norm of the gradient
EAGER = 12  # steps before the capture, in which cuDNN chooses its algorithms and the optimizer its state
NOT_CAPTURED = ("masks",)  # whose loss draws on the host


def compared(network: nn.Module, kind: str, batch: Batch) -> dict[str, Tensor]:
    """The terms of the loss of a batch."""
    device = batch.images.device.type
    images = batch.images.contiguous(memory_format=torch.channels_last)
    # A cache of cast weights would outlive the recording of a graph.
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda", cache_enabled=False):
        outputs = network(images)
    return LOSSES[kind](outputs, batch)


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its kernels fused, once for all networks of the same architecture."""
    import torch._dynamo  # here: it loads for a second

    torch.compiler.assume_constant_result(constant)  # type: ignore[no-untyped-call]
    torch._dynamo.config.recompile_limit = 64  # architectures, sources and augmentations of one process
    torch._dynamo.config.suppress_errors = True  # what cannot be compiled runs as it is
    return torch.compile(function, dynamic=False)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@dataclass
class Step:
    """Call it once per step; returns the terms of the loss."""

    training: Training
    network: nn.Module
    optimizer: torch.optim.Optimizer
    scenes: Scenes
    _graph: torch.cuda.CUDAGraph | None = None
    _terms: dict[str, Tensor] = field(default_factory=dict)
    _done: int = 0

    def __post_init__(self) -> None:
        batch, device = self.training.batch, self.scenes.device
        self._indices = torch.zeros(batch, dtype=torch.long, device=device)
        self._chance = torch.zeros(CHANCES, batch, device=device)
        self._captures = device.type == "cuda" and self.training.network not in NOT_CAPTURED
        fuse = compiled if self._captures else _plain
        self._varied, self._compared = fuse(varied), fuse(compared)

    def __call__(self, generator: torch.Generator) -> dict[str, Tensor]:
        batch = self.training.batch
        self._indices.copy_(torch.randint(self.scenes.count, (batch,), generator=generator))
        self._chance.copy_(torch.rand((CHANCES, batch), generator=generator))
        if self._graph is not None:
            self._graph.replay()
            return self._terms
        self._done += 1
        if self._captures and self._done == EAGER:
            self._capture()
        else:
            self._terms = self._computed()
        return self._terms

    def _capture(self) -> None:
        """Record a step; should the recording fail, steps go on without it."""
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                terms = self._computed()
        except RuntimeError as error:
            print(f"[{self.training.name}] without a CUDA graph: {error}", flush=True)
            self._captures = False
            self._terms = self._computed()
            return
        self._graph, self._terms = graph, terms
        graph.replay()

    def _computed(self) -> dict[str, Tensor]:
        training = self.training
        batch = self._varied(self.scenes.mixed(self._indices), training.augment, self._chance)
        if training.augment.mix:
            images = mixed(training.augment.mix, batch.images, batch.boxes, batch.valid)
            batch = replace(batch, images=images)
        if training.adversarial:
            batch = self._attacked(batch)
        terms = self._losses(batch)
        self.optimizer.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), STEEPEST)
        self.optimizer.step()
        return {name: value.detach() for name, value in terms.items()}

    def _losses(self, batch: Batch) -> dict[str, Tensor]:
        terms: dict[str, Tensor] = self._compared(self.network, self.training.network, batch)
        return terms

    def _attacked(self, batch: Batch) -> Batch:
        """The first half of the batch moved one step against the network (Goodfellow et al. 2015)."""
        images = batch.images.detach().requires_grad_()
        total = torch.stack(list(self._losses(replace(batch, images=images)).values())).sum()
        (slope,) = torch.autograd.grad(total, images)
        half = len(images) // 2
        worse = images.detach().clone()
        worse[:half] += self.training.adversarial / 127.5 * slope[:half].sign()
        return replace(batch, images=worse.clamp_(-1, 1))
