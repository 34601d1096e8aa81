"""Clocks, signals and deaths of workers."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.runs import Configure, all_bytes
from stormproof.core.files import make_folder
from stormproof.engine import executors, liveness
from stormproof.engine.chunk import NEVER_OPENED, after_death, do_chunk_safely
from stormproof.engine.liveness import NOTES, end_worker, write_note
from stormproof.engine.plan import make_plan
from stormproof.engine.run import run, running
from stormproof.engine.stages.predict import ModelTimeout, in_time
from stormproof.engine.work import Attempt


def test_a_call_that_ends_at_its_limit_returns_or_times_out() -> None:
    """Calls of about the limit's length: either an answer or a timeout, whenever the signal lands."""
    outcomes = set()

    def spin(turns: int) -> int:
        return sum(range(turns))

    for turns in range(0, 6000, 2):
        try:
            outcomes.add(type(in_time(0.00005, lambda turns=turns: spin(turns))))
        except ModelTimeout:
            outcomes.add(ModelTimeout)
    assert outcomes <= {int, ModelTimeout}


def test_warns_of_a_time_limit_that_cannot_be_kept() -> None:
    with ThreadPoolExecutor(1) as thread, pytest.warns(UserWarning, match="--timeout has no effect here"):
        assert thread.submit(in_time, 0.01, lambda: 7).result() == 7


def test_killed_workers_do_not_end_a_run(configure: Configure) -> None:
    """Eight kills in a row, before the first image and in the middle: nobody is blamed for any of them."""
    attempt = Attempt(make_plan(configure()).work, 0)
    make_folder(attempt.work.out / NOTES)
    for k in range(8):
        if k % 2:
            write_note(attempt, [(0, f"fog@{k}")])
        outcome = after_death(attempt, "killed")
        assert isinstance(outcome, Attempt)
        attempt = outcome
    assert not attempt.skip


def test_a_cell_that_kills_two_workers_is_blamed(configure: Configure) -> None:
    attempt = Attempt(make_plan(configure()).work, 0)
    make_folder(attempt.work.out / NOTES)
    for _ in range(4):
        write_note(attempt, [(3, "fog@2")])
        outcome = after_death(attempt, "the worker died")
        assert isinstance(outcome, Attempt)
        attempt = outcome
    assert attempt.skip == {(3, "fog@2"): "the worker died on this image"}


@pytest.mark.slow
def test_a_stopped_worker_is_replaced(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STOPS_ONCE", str(tmp_path / "stopped"))
    patience = 7200  # with a call of the model, however busy the machine is
    monkeypatch.setattr(liveness, "SILENCE", 3.0 - patience)  # so three seconds without a beat are too long
    calm, stopped = configure(out="calm"), configure("stops_once", engine="pool", workers=1, timeout=patience)
    run(calm)
    assert run(stopped).complete
    assert (tmp_path / "stopped").exists()
    rows = {name: len(content) for name, content in all_bytes(Path(stopped.out)).items()}
    assert rows.keys() == all_bytes(Path(calm.out)).keys()


def test_a_heartbeat_of_an_earlier_run_ends_no_process(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was killed with its run, and another may have its number."""
    plan = make_plan(configure(timeout=5.0, shard="1/2"))
    notes, killed = plan.work.out / NOTES, list[int]()
    with running(plan):
        pass
    for chunk in (0, 1):
        (notes / f"{chunk:06d}.beat").write_text(f"{platform.node()} 4242 7")
    monkeypatch.setattr(os, "kill", lambda number, _: killed.append(number))
    with running(plan):
        end_worker(Attempt(plan.work, 0))
    assert not killed
    assert (notes / "000001.beat").exists()  # of another shard, which may be at work


class Cluster:
    """Ray, of whose workers only the first ever starts; the others die while it works."""

    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        pass

    def __init__(self) -> None:
        self.exceptions, self.started = self, 0

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, int]:
        return {"CPU": 2}

    def remote(self, **_: object) -> Any:
        def start(turn: int) -> None:
            if turn:
                raise self.RayError("ActorDiedError: no module named 'torch'.")

        def make() -> Any:
            self.started += 1
            return SimpleNamespace(
                start=SimpleNamespace(remote=lambda turn=self.started - 1: partial(start, turn)),
                do=SimpleNamespace(remote=lambda attempt: partial(do_chunk_safely, attempt)),
            )

        return lambda _: SimpleNamespace(remote=make)

    def wait(self, references: list[Any], **_: object) -> tuple[list[Any], list[Any]]:
        dying = self.started <= 2 * NEVER_OPENED
        return references[:1] if dying else references[-1:], []

    def get(self, reference: Any) -> Any:
        return reference()

    def kill(self, worker: object) -> None:
        pass


def test_ray_workers_that_start_end_a_run_that_others_cannot_join(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where one node of several lacks a package."""
    cluster = Cluster()
    monkeypatch.setattr(executors, "framework", lambda *_, **__: cluster)
    assert run(configure(engine="ray")).complete
    assert cluster.started > 2 * NEVER_OPENED


def test_ctrl_c_while_a_worker_starts_is_delivered_afterwards() -> None:
    """It is neither raised in the middle nor lost, whichever thread the system gives it to."""
    steps = []

    def start() -> None:
        with executors._ignoring_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            steps.append("started")
        steps.append("not interrupted")

    waiting = threading.Event()
    other = threading.Thread(target=waiting.wait)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        start()
    assert steps == ["started"]
    with executors._ignoring_interrupts():
        pass  # and only once
    waiting.set()
    other.join()
