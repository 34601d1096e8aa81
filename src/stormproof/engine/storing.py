"""Storing the rows of a chunk: its part, and the record of its failures.

On a device this is done by a process beside the model's: sorting, packing and compressing rows is Python code
for which the thread that launches kernels would have to wait.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from stormproof.core.errors import RunError, StoreError, StormproofError
from stormproof.core.files import sweep
from stormproof.engine.beside import Beside, Line
from stormproof.engine.failures import Failure
from stormproof.engine.work import Work
from stormproof.models.model import fingerprint
from stormproof.results.store.parts import (
    PartWriter,
    failures_of,
    failures_path,
    held_rows,
    part_path,
    write_failures,
    writing_part,
)
from stormproof.results.store.schema import Cell, PackedRow, Row, RowBlock

Outcome = Row | PackedRow | Failure
Encoded = Sequence[Outcome] | RowBlock
_WAITING = 512  # batches that the process beside holds while it writes


@dataclass(frozen=True, slots=True)
class Order:
    """What is stored: the part of a chunk, and failures among the cells that are settled by it."""

    out: Path
    chunk: int
    key: str
    settled: frozenset[Cell]
    files: dict[str, str]  # that conditions and plugins use, with their digests

    @classmethod
    def of(cls, work: Work, chunk: int, settled: Iterable[Cell]) -> Order:
        known = failures_path(work.out, chunk).exists()  # else nothing is to be settled
        return cls(work.out, chunk, work.record.key, frozenset(settled if known else ()), work.record.files)


class Taken:
    """Takes rows and failures in the order of cells; rows go to the part, between those that it held."""

    def __init__(self, part: PartWriter, held: Iterator[tuple[Cell, Any]]) -> None:
        self._part, self._held, self._next = part, held, next(held, None)
        self._some: list[Encoded] = []
        self.done: Counter[str] = Counter()
        self.failures: list[Failure] = []

    def __call__(self, outcomes: Iterable[Outcome] | RowBlock) -> None:
        if isinstance(outcomes, RowBlock) and self._next is None:
            self._part.add_block(outcomes)
            self.done.update(str(head.condition) for head in outcomes.heads)
            return
        for outcome in outcomes:
            self._add_held(outcome.cell)
            if isinstance(outcome, Failure):
                self.failures.append(outcome)
            else:
                self._part.add(outcome)
                self.done[str(outcome.condition)] += 1

    def gather(self, encoded: Encoded) -> None:
        """Take rows in any order, until `sort`."""
        self._some.append(encoded)

    def sort(self) -> None:
        """Put what was gathered in order: all cells of some images, which follow those before."""
        made, self._some = self._some, []
        blocks = [one for one in made if isinstance(one, RowBlock)]
        if blocks and len(blocks) == len(made):
            self(RowBlock.in_order(blocks))
        else:
            self(sorted(chain.from_iterable(made), key=lambda row: row.cell))

    def end(self) -> None:
        """Add the held rows that are left."""
        self._add_held(None)

    def _add_held(self, before: Cell | None) -> None:
        """Add the held rows that come before a cell, or all that are left."""
        while self._next is not None and (before is None or self._next[0] < before):
            self._part.add(self._next[1])
            self._next = next(self._held, None)


@contextmanager
def storing(order: Order) -> Iterator[Taken]:
    """Takes the rows of a chunk; the part appears when the block ends."""
    path = part_path(order.out, order.chunk)
    with writing_part(path, order.key) as part:
        taken = Taken(part, held_rows(path, order.key))
        yield taken
        check_files(order.files)  # again: rows made with other files must not become a part
        # Written before the part gets its name: after a kill in between, the chunk is simply run again.
        record_failures(failures_path(order.out, order.chunk), taken.failures, order.settled, order.key)


class Sent:
    """What `Taken` is to a process beside, which has one."""

    def __init__(self, store: PartStore, order: Order) -> None:
        self._store, self._order = store, order
        self.done: Counter[str] = Counter()
        self.failures: list[Failure] = []

    def __call__(self, outcomes: Iterable[Outcome] | RowBlock) -> None:
        self.gather(outcomes if isinstance(outcomes, RowBlock) else [*outcomes])
        self.sort()

    def gather(self, encoded: Encoded) -> None:
        if not isinstance(encoded, RowBlock):  # a form may be declared in this process alone
            encoded = [PackedRow.of(one) if isinstance(one, Row) else one for one in encoded]
        self._store.send(self._order, ("gather", encoded))

    def sort(self) -> None:
        self._store.send(self._order, ("sort",))

    def end(self) -> None:
        self._store.send(self._order, ("end",))


class PartStore:
    """A process beside that stores parts, one after the other."""

    def __init__(self) -> None:
        self.process = Beside(serve_parts)
        self._orders: deque[Order] = deque()  # those without an answer

    @contextmanager
    def storing(self, order: Order) -> Iterator[Sent]:
        """As `storing`. A part may be completed while the next one's rows are sent."""
        sent = Sent(self, order)
        self._orders.append(order)
        try:
            self.send(order, order)
            yield sent
            sent.done, sent.failures = self._answer()
        except BaseException:
            self.process.end()  # and with it the part in progress
            raise

    def send(self, order: Order, message: object) -> None:
        """Send a message, unless the process has already said that it failed."""
        if self._orders[0] is order and self.process.has_message():
            self._answer()
        try:
            self.process.send(message)
        except OSError:
            raise _lost() from None

    def _answer(self) -> tuple[Counter[str], list[Failure]]:
        try:
            answer = self.process.receive()
        except (EOFError, OSError):
            raise _lost() from None
        self._orders.popleft()
        if isinstance(answer, BaseException):
            raise answer
        done, failures = answer
        return done, failures


_stores: list[PartStore] = []  # the one that runs


def store_for(*, beside: bool) -> Callable[[Order], AbstractContextManager[Taken | Sent]]:
    """What stores the rows of a chunk: this process, or one beside it."""
    if not beside:
        return storing
    if not _stores or _stores[0].process.has_ended:
        _stores[:] = [PartStore()]
    return _stores[0].storing


def end_store() -> None:
    """End the process that stores, if there is one."""
    while _stores:
        _stores.pop().process.end()


def _lost() -> RunError:
    return RunError(
        "The process that writes parts was killed, perhaps because memory ran out. The same command goes on."
    )


def serve_parts(line: Line) -> None:
    """Store part after part; an answer says what each holds, or why it could not be made."""
    messages: Queue[Any] = Queue(_WAITING)
    Thread(target=_listen, args=(line, messages), daemon=True).start()

    def receive() -> Any:
        message = messages.get()
        if message is None:
            raise EOFError
        return message

    while True:
        order, ended = receive(), False
        try:
            with storing(order) as taken:
                while not ended:
                    verb, *given = receive()
                    ended = verb == "end"
                    getattr(taken, verb)(*given)
            answer: Any = taken.done, taken.failures
        except EOFError:
            raise
        except StormproofError as error:
            answer = error
        except Exception as error:
            answer = RunError(f"The part could not be written: {type(error).__name__}: {error}")
        line.send(answer)
        while not ended:
            ended = receive()[0] == "end"


def _listen(line: Line, messages: Queue[Any]) -> None:
    """Receive while rows are sorted and written: the model's process need not wait. None is the end."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(line.receive())
    messages.put(None)


def check_files(files: dict[str, str]) -> None:
    """Stop if a file that conditions or plugins use has changed since the run was planned."""
    for name, digest in files.items():
        if fingerprint([Path(name)], {}) != digest:
            raise StoreError(f"{name} changed during the run. Restore it, or run into another folder.")


def record_failures(path: Path, failures: Iterable[Failure], settled: frozenset[Cell], key: str) -> None:
    """Write failures, and keep those of cells that only an earlier command asked for."""
    try:
        known = failures_of(path, key)
    except StoreError:  # the cells of a damaged record are tried again when they are asked for
        known = []
    sweep(path)
    earlier = [row for row in known if (row["index"], row["condition"]) not in settled]
    write_failures(path, [*earlier, *map(asdict, failures)], key)
