"""The four stages of a cell: decode, corrupt, predict, encode.

Each is an object that can be called and tested alone. `engine.cells` joins them into a line, the same for a
pool, Ray, Slurm and a device. A stage may run ahead of the next; the order of rows and their bytes never
change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any, NamedTuple, TypeVar

from stormproof.core.condition import Condition
from stormproof.core.forms import Size
from stormproof.core.sample import Image, Sample, Truth
from stormproof.engine.failures import Failure
from stormproof.metrics.quality import ImageChange

Wanted = Mapping[int, Sequence[Condition]]  # under which conditions each image is wanted
_BETWEEN_CALLS = 0.001  # seconds in which the model's next call is expected
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class DecodedImage:
    """A sample as read, with the digest that identifies it."""

    index: int
    sample: Sample
    content: str


class PreparedCell(NamedTuple):
    """A cell whose corrupted image is ready for the model, or whose prediction was made before.

    `change` is asked for when the row is made: on a device, asking earlier would wait for its kernels. The
    truth under its condition is asked for only if the model predicts maps.
    """

    index: int  # type: ignore[assignment]  # tuples have a method of this name
    id: str
    condition: Condition
    image: Image
    size: Size
    truth: Callable[[], Truth]
    content: str | None
    change: Callable[[], ImageChange | None]

    def failed(self, kind: str, error: str, trace: str = "") -> Failure:
        return Failure(self.index, self.id, str(self.condition), kind, error, trace)


Answer = tuple[PreparedCell, object]  # a cell and what the model returned for it


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredBatch:
    """Cells that the model was called with, what it returned for each, and how long the call took: None for
    the first call since it was opened, which pays for its start."""

    cells: Sequence[PreparedCell]
    returned: Sequence[object]
    seconds: float | None = None

    def __iter__(self) -> Iterator[Answer]:
        return zip(self.cells, self.returned, strict=True)


class Pace:
    """When threads beside the model may use the interpreter: in the second half of its calls, in which most
    models wait for their device. In the first half they launch kernels, and the device would wait."""

    def __init__(self) -> None:
        self._usual = self._begin = 0.0

    @contextmanager
    def call(self) -> Iterator[None]:
        """The model's call."""
        start = perf_counter()
        self._begin = start + self._usual / 2
        yield
        now = perf_counter()
        self._usual = min(now - start, 1.1 * self._usual or now - start)
        self._begin = now + _BETWEEN_CALLS

    def keep(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function when it may be."""
        while (rest := self._begin - perf_counter()) > 0:
            sleep(rest)
        return function(*arguments)
