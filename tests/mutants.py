"""Apply the faults of tests/mutants.toml one by one, and see whether the tests named beside them notice.

python tests/mutants.py [WORDS …]

With words, only the faults whose description or file holds one of them. A fault is applied to a copy of the
package, which the tests import instead of it. Prints killed, survived or stale (the text is not there once),
and how many; exits 1 unless every fault was killed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
FAILED = 1  # pytest's exit code where tests ran and some failed


@dataclass(frozen=True, slots=True)
class Mutant:
    """One replacement of source text, and the tests that must fail with it."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str | None:
        """The text with the fault in it; None where the place is not there, or not only once."""
        return text.replace(self.old, self.new) if text.count(self.old) == 1 else None


def read_mutants(path: Path = LIST) -> list[Mutant]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def outcome(mutant: Mutant, package: Path) -> str:
    """Apply a fault to a copy of the package, run its tests, and take it out again."""
    target = package / mutant.file
    whole, times = target.read_text(encoding="utf-8"), target.stat()
    changed = mutant.applied(whole)
    if changed is None:
        return "stale"
    target.write_text(changed, encoding="utf-8")
    try:
        code, said = _test(mutant.tests, package)
    finally:
        target.write_text(whole, encoding="utf-8")
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))  # or everything would be compiled again
    if code not in (0, FAILED):
        raise SystemExit(f"{mutant.what}: the tests could not be run (exit code {code})\n{said}")
    return f"killed by {_killer(said)}" if code == FAILED else "survived"


def _killer(said: str) -> str:
    """The test that failed first."""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return found[1] if found else "a test"


def _test(tests: Sequence[str], package: Path) -> tuple[int, str]:
    """Run the tests on a copy of the package; doctests of the package are those of the copy."""
    own = [str(package.parent / name.removeprefix("src/")) for name in tests if name.startswith("src/")]
    rest = [name for name in tests if not name.startswith("src/")]
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    words = ["-x", "-q", "-p", "no:cacheprovider", *(["--doctest-modules"] if own else [])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *own, *rest],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout[-3000:] + done.stderr[-1000:]


def main(words: Sequence[str]) -> int:
    chosen = [m for m in read_mutants() if not words or any(w in f"{m.what} {m.file}" for w in words)]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "stormproof"
        shutil.copytree(ROOT / "src" / "stormproof", package)  # with the compiled loops that are cached there
        for mutant in chosen:
            found = outcome(mutant, package)
            counts[found.split()[0]] += 1
            print(f"{mutant.file}: {mutant.what}: {found}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 0 if counts["killed"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
