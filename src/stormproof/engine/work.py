"""The objects that pass between the planning process and the workers: small, frozen, picklable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import StormproofError
from stormproof.core.randomness import Draw
from stormproof.core.text import as_csv
from stormproof.engine.config import RunConfig
from stormproof.engine.failures import Failure
from stormproof.results.store.record import RunRecord
from stormproof.results.store.schema import Cell


@dataclass(frozen=True, slots=True)
class Quota:
    """Part of the grid: `size` images for each corrupted condition, and every image for the clean one.

    The images of a condition are consecutive in a random order of all images. Conditions start at places
    spread evenly over that order, so every image is used about equally often; using the same images for all
    conditions would give several times the error (docs/adr/0029). A larger size only adds images.
    """

    size: int
    ranks: tuple[int, ...]  # by image: its place in the order
    starts: dict[str, int]  # by corrupted condition

    @classmethod
    def of(cls, size: int, images: int, conditions: Iterable[Condition], seed: int) -> Quota:
        """The quota follows from the run alone, so that repeated commands agree.

        >>> texts = ("clean", "fog@1", "fog@2")
        >>> quota = Quota.of(1, 2, map(Condition.parse, texts), seed=0)
        >>> [sum(quota.wants(image, text) for image in (0, 1)) for text in texts]
        [2, 1, 1]
        """
        draw = Draw.keyed(seed, "quota")
        ranks = np.argsort(np.argsort(draw.uniforms("images", images), kind="stable"))
        texts = sorted(str(condition) for condition in conditions if not condition.is_clean)
        turns = np.argsort(np.argsort(draw.uniforms("conditions", len(texts)), kind="stable"))
        starts = {text: int(turn) * images // len(texts) for text, turn in zip(texts, turns, strict=True)}
        return cls(size, tuple(ranks.tolist()), starts)

    def wants(self, index: int, condition: str) -> bool:
        """Whether a condition is run on an image."""
        start = self.starts.get(condition)  # the clean condition has none
        return start is None or (self.ranks[index] - start) % len(self.ranks) < self.size


@dataclass(frozen=True, slots=True)
class Work:
    """Everything a worker needs for any chunk of a run; workers open the model and the dataset by name."""

    config: RunConfig  # with absolute paths
    record: RunRecord  # the run as planned
    conditions: tuple[Condition, ...]  # sorted as strings, the order of rows
    out: Path
    folder: str  # where relative paths start
    modules: tuple[str, ...]  # where user modules are imported from
    quota: Quota | None = None  # None: every condition on every image

    def indices(self, chunk: int) -> range:
        """The images of a chunk."""
        size = self.record.chunk
        return range(chunk * size, min((chunk + 1) * size, self.record.images))

    def following(self, chunk: int) -> range:
        """The images of the chunk that this worker will do next, if it is the only one."""
        alone = self.config.engine in ("local", "pool") and (self.config.workers or 1) == 1
        return self.indices(chunk + self.config.share[1]) if alone else range(0)

    def cells(self, chunk: int) -> dict[int, list[tuple[Condition, str]]]:
        """The images of a chunk with their conditions, each also as a string."""
        named, quota = [(condition, str(condition)) for condition in self.conditions], self.quota
        return {
            index: [pair for pair in named if quota is None or quota.wants(index, pair[1])]
            for index in self.indices(chunk)
        }


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a chunk. After workers have died, it goes image by image and skips the fatal cells."""

    work: Work
    chunk: int
    deaths: int = 0
    one_by_one: bool = False
    suspect: Cell | None = None  # the cell in progress when the last worker died
    skip: Mapping[Cell, str] = field(default_factory=dict)


@dataclass(slots=True)
class Times:
    """Seconds by activity; the rest of `total` is the engine's own."""

    decode: float = 0.0
    corrupt: float = 0.0
    model: float = 0.0
    total: float = 0.0
    decoded: int = 0  # images
    model_by_condition: Counter[str] = field(default_factory=Counter)

    def add(self, other: Times) -> None:
        """Add what another chunk or process took. What it has not measured is left alone: another thread may
        be counting that."""
        for one in fields(Times):
            if more := getattr(other, one.name):
                setattr(self, one.name, getattr(self, one.name) + more)

    def profile(self, done: Mapping[str, int]) -> str:
        """Milliseconds of the model for an image under each condition, the slowest first, as CSV; `done` is
        how many images there were.

        >>> times = Times(model_by_condition=Counter({"clean": 0.5, "fog@1": 1.0}))
        >>> times.profile({"clean": 50, "fog@1": 50})
        'condition,images,model_ms\\nfog@1,50,20.000\\nclean,50,10.000\\n'
        """
        each = {text: 1000 * self.model_by_condition[text] / count for text, count in done.items() if count}
        slowest = sorted(each.items(), key=lambda item: (-item[1], item[0]))
        rows = [(text, done[text], f"{spent:.3f}") for text, spent in slowest]
        return as_csv(("condition", "images", "model_ms"), rows)

    def in_words(self, *, beside: bool) -> str:
        """Where the time went; `beside` the model, threads decode and corrupt for a device.

        >>> Times(1.0, 2.0, 5.0, 9.0).in_words(beside=False)
        'decode 1.0 s, corrupt 2.0 s, model 5.0 s, rest 1.0 s'
        >>> Times(1.0, 2.0, 5.0, 6.0).in_words(beside=True)
        'model 5.0 s, rest 1.0 s; beside it, decode 1.0 s and corrupt 2.0 s'
        """
        decode, corrupt = f"decode {self.decode:.1f} s", f"corrupt {self.corrupt:.1f} s"
        model, rest = f"model {self.model:.1f} s", self.total - self.model
        if beside:
            return f"{model}, rest {max(rest, 0):.1f} s; beside it, {decode} and {corrupt}"
        return f"{decode}, {corrupt}, {model}, rest {max(rest - self.decode - self.corrupt, 0):.1f} s"


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The outcome of a chunk: new cells by condition, failures, times; or why the run cannot continue."""

    out: Path
    chunk: int
    done: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    times: Times = field(default_factory=Times)
    error: StormproofError | None = None
