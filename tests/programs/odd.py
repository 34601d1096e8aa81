"""Odd models: each is run in batches of one and of eight, with two workers, and interrupted and continued.

    python tests/programs/odd.py                     all of them
    python tests/programs/odd.py "halved" "exits"    some of them

A model passes if every way gives the same rows and the same failed cells, if the rows are those of the model
that it must equal (`helpers/odd_models.py`), and if nothing ends in a traceback. Each way is a process of its
own, so what one model does to its process reaches no other; the two workers start as new interpreters.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from helpers import forked
from helpers.odd_models import ODD, script
from helpers.runs import all_rows
from helpers.scenes import write_scene
from stormproof.results.store.parts import part_paths, read_failures

TRUNCATED = 2  # the image whose file is cut short
_FRESH_WORKERS = """
from multiprocessing.context import SpawnContext
from stormproof.core import processes
class Fresh(SpawnContext):
    Process = processes._WorkerProcess
processes._WorkerContext = Fresh
"""
_INTERRUPTED = """
from stormproof.engine.progress import RunProgress
def interrupt(self, result):
    raise KeyboardInterrupt
RunProgress.advanced = interrupt
"""
# The settings of each way to run a model, and the code before the command, once for each start.
WAYS: dict[str, tuple[list[str], list[str]]] = {
    "batch 1": (["--engine", "local", "--batch", "1"], [""]),
    "batch 8": (["--engine", "local", "--batch", "8"], [""]),
    "two workers": (["--workers", "2", "--batch", "3"], [_FRESH_WORKERS]),
    "continued": (["--engine", "local", "--batch", "3"], [_INTERRUPTED, ""]),
}


class Outcome(NamedTuple):
    """What came of a model run in one way."""

    rows: pa.Table | None  # None: no cell has one
    failed: list[tuple[str, ...]]  # image, condition and kind of the failed cells
    problem: str


def write_data(folder: Path) -> str:
    """A few small images, one of them with a file cut short."""
    spec = write_scene(folder, images=6)
    file = folder / "images" / f"{TRUNCATED:03d}.png"
    file.write_bytes(file.read_bytes()[:-200])
    return spec


def run_model(name: str, way: str, folder: Path, data: str) -> Outcome:
    """Run an odd model in one way, in a folder of its own."""
    place = folder / way
    place.mkdir(parents=True)
    (place / "odd.py").write_text(script(name), encoding="utf-8")
    flags, starts = WAYS[way]
    words = ["run", "--model", "odd.py:f", "--data", data, "-c", "gaussian_noise@3", "--out", "run",
             "--chunk", "2", "--allow-missing", *flags]  # fmt: skip
    ended, said = None, ""
    for code in starts:
        ended, told = forked.outcome(words, place, code=code + forked.COMMAND)
        said += told
    problem = ""
    if "Traceback" in said or ended not in (0, 1, 2):
        problem = f"ended with {ended}: {said[-600:]}"
    run = place / "run"
    failed = sorted({(row["image"], row["condition"], row["kind"]) for row in read_failures(run)})
    rows = all_rows(run) if part_paths(run) else None
    return Outcome(rows if rows is not None and len(rows) else None, failed, problem)


def problems_of(name: str, outcomes: dict[str, Outcome], expected: Outcome | None) -> Iterator[str]:
    """What is wrong with a model's outcomes, in words."""
    for way, outcome in outcomes.items():
        if outcome.problem:
            yield f"{way}: {outcome.problem}"
    if ODD[name][0] == "refused":
        yield from (f"{way}: has rows" for way, outcome in outcomes.items() if outcome.rows is not None)
        return
    first, *others = outcomes
    for way in others:
        if outcomes[way].failed != outcomes[first].failed:
            yield f"{way}: {outcomes[way].failed} failed, but {outcomes[first].failed} with {first}"
        if not _same_rows(outcomes[way], outcomes[first]):
            yield f"{way}: other rows than with {first}"
    if outcomes[first].rows is None:
        yield "has no rows"
    if expected is not None and not _same_rows(outcomes[first], expected):
        yield f"other rows than {ODD[name][0]!r}"
    if expected is not None and outcomes[first].failed != expected.failed:
        yield f"{outcomes[first].failed} failed, but {expected.failed} of {ODD[name][0]!r}"


def _same_rows(one: Outcome, other: Outcome) -> bool:
    if one.rows is None or other.rows is None:
        return one.rows is other.rows
    return bool(one.rows.equals(other.rows))


def attack(names: list[str], folder: Path, ways: list[str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Each model with what is wrong with it."""
    data = write_data(folder / "data")
    known: dict[str, Outcome] = {}
    for number, name in enumerate(names):
        place = folder / str(number)
        outcomes = {way: run_model(name, way, place, data) for way in ways or WAYS}
        like = ODD[name][0]
        known.setdefault(name, outcomes[next(iter(outcomes))])
        if like in ODD and like not in known:
            known[like] = run_model(like, "batch 1", place / "like", data)
        yield name, list(problems_of(name, outcomes, known.get(like) if like != name else None))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="names in helpers/odd_models.py; all if none is given")
    names = parser.parse_args().models or [*ODD]
    bad = 0
    with tempfile.TemporaryDirectory() as place:
        for name, problems in attack(names, Path(place)):
            bad += bool(problems)
            print("\n  ".join([f"{name}: {'WRONG' if problems else 'as it must be'}", *problems]), flush=True)
    print(
        f"{len(names)} odd models in {len(WAYS)} ways each: {len(names) - bad} as they must be, {bad} wrong"
    )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
