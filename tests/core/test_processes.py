"""Worker processes: what becomes of them, and of the work, when one side is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stormproof.core import processes
from stormproof.core.errors import RunError
from stormproof.core.processes import spread

_PLANNER = """
import sys, time
from pathlib import Path
from stormproof.core.processes import spread
from test_processes import sign_and_wait
for _ in spread(sign_and_wait, [sys.argv[1]] * 2, workers=2):
    pass
"""


@pytest.fixture(autouse=True)
def pools_of_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    from helpers import preloaded  # not above: processes without our folder of tests import this module

    monkeypatch.setattr(processes, "_kernel_pool", preloaded.kernel_pool)


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_whoever_forked_me(_: int) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)  # no answer may come before the loss is noticed


def family(_: int) -> tuple[int, int, bool]:
    """This process, its parent, and whether kernels were there before it was asked for anything."""
    return os.getpid(), os.getppid(), "stormproof.core.worker_preload" in sys.modules


def sign_and_wait(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_reports_a_killed_worker_and_what_to_do() -> None:
    with pytest.raises(RunError, match="Run the same command again"):
        list(spread(die, range(4), workers=2))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workers")
def test_one_process_loads_kernels_for_all_workers() -> None:
    found = list(spread(family, range(12), workers=3))
    assert all(started for _, _, started in found)
    parents = {parent for _, parent, _ in found}
    assert len(parents) == 1
    assert os.getpid() not in parents


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workers")
def test_the_next_call_works_after_the_fork_server_was_killed() -> None:
    with pytest.raises(RunError, match="Run the same command again"):
        list(spread(kill_whoever_forked_me, [0], workers=2))
    assert sorted(spread(abs, [-3, -1, -2], workers=2)) == [1, 2, 3]


def test_an_empty_list_of_jobs_gives_no_results() -> None:
    assert list(spread(abs, [], workers=2)) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_workers_exit_when_their_planner_is_killed(tmp_path: Path) -> None:
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    planner = subprocess.Popen([sys.executable, "-c", _PLANNER, str(tmp_path)], env=here)
    deadline = time.monotonic() + 300
    while not (workers := [int(path.name) for path in tmp_path.iterdir()]) and time.monotonic() < deadline:
        assert planner.poll() is None
        time.sleep(0.01)
    planner.kill()
    planner.wait()
    while any(map(_runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers
    assert not any(map(_runs, workers))
