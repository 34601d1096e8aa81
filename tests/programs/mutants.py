"""Apply the faults of mutants.toml one by one, and see whether the tests named beside them notice.

python tests/programs/mutants.py [WORDS …]

With words, only the faults whose description, file or tests hold one of them: `kitti`, `report/charts.py`,
`tests/results/test_slices.py`. Each fault names the tests that must see it, so that one takes seconds. A
fault is applied to a copy of the package, which the tests import instead of it; without a fault they must
pass. Prints killed, survived or stale (the text is not there once), and how many; exits 1 unless every fault
was killed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_suffix(".toml")
FAILED = 1  # pytest's exit code where tests ran and some failed
# Loaded once; tests run in forks of this process, which has not loaded the package.
_LOADED = ("cv2", "hypothesis", "numba", "pandas", "PIL.Image", "pyarrow.parquet", "scipy.stats", "yaml")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One replacement of source text, and the tests that must fail with it."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def is_about(self, words: Sequence[str]) -> bool:
        """Whether its description, its file or one of its tests holds any of the words; all hold none."""
        held = " ".join((self.what, self.file, *self.tests)).lower()
        return not words or any(word.lower() in held for word in words)

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
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "xdist", *(["--doctest-modules"] if own else [])]
    said = package.parent / "said"
    child = os.fork()
    if child == 0:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(ROOT)
        os.environ |= {"PYTHONPATH": str(package.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        sys.path.insert(0, str(package.parent))
        code = pytest.main([*words, *own, *rest])
        sys.stdout.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said.read_text(encoding="utf-8", errors="replace")[-4000:]


def main(words: Sequence[str]) -> int:
    chosen = [mutant for mutant in read_mutants() if mutant.is_about(words)]
    if not chosen:
        raise SystemExit(f"no fault is about {' or '.join(words)}; see {LIST}")
    counts: Counter[str] = Counter()
    for name in _LOADED:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "stormproof"
        shutil.copytree(ROOT / "src" / "stormproof", package)  # with the compiled loops that are cached there
        code, said = _test(sorted({test for mutant in chosen for test in mutant.tests}), package)
        if code != 0:
            raise SystemExit(f"the tests fail without a fault (exit code {code})\n{said}")
        for mutant in chosen:
            found = outcome(mutant, package)
            counts[found.split()[0]] += 1
            print(f"{mutant.file}: {mutant.what}: {found}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 0 if counts["killed"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
