"""Runs mutated input through everything that reads it; only our own errors may come out, within bounds.

    python tests/fuzz/attack.py --cases 100000 --first 0

Every case is made from its target and number alone: `--target coco --first 123 --cases 1` repeats a finding.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.targets import TARGETS
from stormproof.core.errors import StormproofError

SECONDS, BYTES = 5.0, 1 << 30
_WARMING = 40  # most cases before the first that counts


class TooSlow(BaseException):
    """The case took more processor time than any input may cost."""


@dataclass(frozen=True)
class Finding:
    target: str
    number: int
    what: str
    trace: str = ""


@cache
def warm_up(target: str) -> None:
    """Cases that are not counted: they pay for imports, kernels and the runs that targets keep.

    One that is refused early pays for little, so this goes on until one is read to its end.
    """
    for number in range(_WARMING):
        scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with scratch as folder, suppress(Exception):  # what it raises, it raises again when it is counted
            TARGETS[target](random.Random(f"{target} {number}"), Path(folder))
            return


def attack(target: str, number: int) -> Finding | None:
    """One case; None if only our own errors came out, within the bounds."""
    warm_up(target)
    folder = Path(tempfile.mkdtemp())
    before, start = _peak(), process_time()
    try:
        TARGETS[target](random.Random(f"{target} {number}"), folder)
    except StormproofError:
        pass
    except (Exception, TooSlow) as error:
        return Finding(
            target, number, f"{type(error).__name__}: {error!s:.200}", traceback.format_exc(limit=-4)[:3000]
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if process_time() - start > SECONDS:
        return Finding(target, number, f"took {process_time() - start:.1f} s of processor time")
    if _peak() - before > BYTES:
        return Finding(target, number, f"took {(_peak() - before) >> 20} MB of memory")
    return None


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _stop(*_: object) -> None:
    raise TooSlow


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=5000, help="how many, over all targets")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--target", choices=[*TARGETS], help="only this one")
    wanted = parser.parse_args()
    targets = [wanted.target] if wanted.target else [*TARGETS]
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGVTALRM, _stop)
    findings: dict[str, Finding] = {}
    count = 0
    for k in range(wanted.cases):
        target, number = targets[k % len(targets)], wanted.first + k // len(targets)
        warm_up(target)  # before the clock of the case starts
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SECONDS)
        found = attack(target, number)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if found is not None:
            count += 1
            alike = f"{found.target} {found.trace.splitlines()[-3:-1]}" if found.trace else found.what
            if alike not in findings:
                findings[alike] = found
                print(f"{found.target} {found.number}: {found.what}\n{found.trace}", flush=True)
        if (k + 1) % 10_000 == 0:
            print(f"{k + 1:,} cases, {count} findings", flush=True)
    print(
        f"{wanted.cases:,} cases over {len(targets)} targets, from number {wanted.first}: {count} findings."
    )
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
