"""What travels between the process that plans and the workers: small, frozen, picklable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stormproof.core.condition import Condition
from stormproof.core.errors import StormproofError
from stormproof.engine.quota import Quota
from stormproof.results.store.schema import Cell


@dataclass(frozen=True, slots=True)
class Work:
    """Everything a worker must know to do any chunk of a run; workers open model and dataset by name."""

    model: str
    enhance: tuple[str, ...]
    data: str
    conditions: tuple[Condition, ...]  # sorted as strings, the order of rows
    recipes: Mapping[str, int]
    seed: int
    batch: int
    timeout: float | None
    chunk: int
    images: int
    out: Path
    key: str
    fingerprints: tuple[str, str]  # model, dataset
    folder: str  # where relative paths start
    modules: tuple[str, ...]  # where user modules are imported from
    quota: Quota | None = None  # none: every condition on every image
    plugins: tuple[str, ...] = ()  # files that register corruptions
    copies: str | None = None  # where corrupted images are read from
    device: str | None = None  # where batches are corrupted; none: image by image on the CPU

    def indices(self, chunk: int) -> range:
        """The images of a chunk."""
        return range(chunk * self.chunk, min((chunk + 1) * self.chunk, self.images))

    def cells(self, chunk: int) -> dict[int, list[tuple[Condition, str]]]:
        """The images of a chunk with the conditions they are put under, and those as strings."""
        named, quota = [(condition, str(condition)) for condition in self.conditions], self.quota
        return {
            index: [pair for pair in named if quota is None or quota.wants(index, pair[1])]
            for index in self.indices(chunk)
        }

    def recipe(self, condition: Condition) -> int:
        return self.recipes[condition.corruption] if condition.corruption else 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a chunk. After workers have died of it, it goes image by image, past the guilty cells."""

    work: Work
    chunk: int
    deaths: int = 0
    one_by_one: bool = False
    suspect: Cell | None = None  # in hand when the last worker died
    skip: Mapping[Cell, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell without an answer: what happened, in the words of whoever complained."""

    index: int
    image: str
    condition: str
    kind: str  # image, corruption, model, timeout, death
    error: str
    trace: str = ""  # where it happened, for whoever has to fix it

    @property
    def cell(self) -> Cell:
        return self.index, self.condition

    def as_dict(self) -> dict[str, str | int]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.image} under {self.condition}: {self.error}"


def alike(failures: Sequence[Failure]) -> list[str]:
    """Failures in words, one line for all that have the same cause.

    >>> one, two = (Failure(i, f"im{i}", "fog@3", "model", "KeyError") for i in (4, 5))
    >>> alike([one, two])
    ['im4 under fog@3: KeyError (and 1 more like it)']
    """
    causes: dict[str, list[Failure]] = {}
    for failure in failures:
        causes.setdefault(failure.error, []).append(failure)
    return [
        f"{same[0]}" + (f" (and {len(same) - 1} more like it)" if len(same) > 1 else "")
        for same in causes.values()
    ]


@dataclass(slots=True)
class Times:
    """Seconds spent, by what they were spent on; the rest of `total` is the engine's own."""

    decode: float = 0.0
    corrupt: float = 0.0
    model: float = 0.0
    total: float = 0.0
    decoded: int = 0

    def __add__(self, other: Times) -> Times:
        return Times(
            self.decode + other.decode,
            self.corrupt + other.corrupt,
            self.model + other.model,
            self.total + other.total,
            self.decoded + other.decoded,
        )


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What became of a chunk: new cells by condition, failures, time; or why its run cannot go on."""

    out: Path
    chunk: int
    done: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    times: Times = field(default_factory=Times)
    error: StormproofError | None = None
