"""Processes beside the model's, which read images and store parts: the same bytes, whoever is killed."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import stormproof as sp
from helpers.runs import Configure, all_bytes
from helpers.scenes import write_scene
from stormproof.core.errors import RunError, StoreError, StormproofError
from stormproof.core.sample import Sample
from stormproof.engine import cells, reading, storing, work
from stormproof.engine.beside import Beside, Line
from stormproof.engine.run import run

ON = {"device": "cpu", "batch": 2}


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Beside]]:
    """Every process that is started, also for a small run; all must have ended with the test."""
    started: list[Beside] = []
    start = Beside.__init__

    def watched(self: Beside, *given: object) -> None:
        start(self, *given)
        started.append(self)

    monkeypatch.setattr(Beside, "__init__", watched)
    monkeypatch.setattr(work, "MANY_CELLS", 0)
    yield started
    assert all(one.has_ended for one in started)


def wait_for_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask processes only once they have opened the dataset, so that they do read."""

    def patient(self: reading.Readers) -> Beside | None:
        process = self._starting.popleft()
        return process if process.receive() == self._fingerprint else None

    monkeypatch.setattr(reading.Readers, "_opened", patient)


@pytest.mark.parametrize("model", ["brightness_boxes", "brightness_masks", "thresholds", "raises_on_marked"])
def test_bytes_are_those_of_one_process(
    configure: Configure, beside: list[Beside], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    wait_for_readers(monkeypatch)
    one, two = configure(model, out="one"), configure(model, out="two", **ON)
    summary, other = run(one), run(two)
    assert beside
    assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))
    assert summary.done == other.done
    assert [(one.cell, one.kind) for one in summary.failures] == [(f.cell, f.kind) for f in other.failures]


def test_images_are_read_by_the_processes(
    configure: Configure, beside: list[Beside], monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_readers(monkeypatch)

    def never(*given: object) -> None:
        raise AssertionError("read in the model's process")

    monkeypatch.setattr("stormproof.engine.stages.decode.read_sample", never)
    assert run(configure(**ON)).complete


def test_a_file_that_cannot_be_read_fails_alone_and_says_why(
    configure: Configure, beside: list[Beside], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wait_for_readers(monkeypatch)
    data = write_scene(tmp_path / "scene")
    broken = sorted((tmp_path / "scene").rglob("*.png"))[1]
    broken.write_bytes(broken.read_bytes()[:60])
    one, two = (configure(out=out, data=data, **more) for out, more in (("one", {}), ("two", ON)))
    first, second = run(one).failures, run(two).failures
    assert first
    assert [(f.cell, f.error) for f in first] == [(f.cell, f.error) for f in second]
    assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))


def test_a_changed_image_is_refused(
    configure: Configure, beside: list[Beside], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wait_for_readers(monkeypatch)
    data = write_scene(tmp_path / "scene")
    run(configure(data=data, conditions=["fog@2"], **ON))
    images = sorted((tmp_path / "scene").rglob("*.png"))
    images[0].write_bytes(images[1].read_bytes())
    with pytest.raises(StormproofError):
        run(configure(data=data, conditions=["fog@2,contrast@4"], **ON))


def killing(what: str) -> sp.Prediction:
    """A model that kills a process beside it, once."""

    def detect(images: list[object]) -> list[dict[str, list[object]]]:
        if not detect.killed:  # type: ignore[attr-defined]
            readers = cells._ahead[0].readers
            assert readers is not None
            chosen = readers.processes if what == "readers" else [storing._stores[0].process]
            for process in chosen:
                os.kill(process.pid, signal.SIGKILL)
                process._process.wait()
            detect.killed = True  # type: ignore[attr-defined]
        return [{"boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": [0]} for _ in images]

    detect.killed = what == ""  # type: ignore[attr-defined]
    detect.fingerprint = "one"  # type: ignore[attr-defined]
    return detect  # type: ignore[return-value]


def test_a_reader_that_is_killed_is_replaced_by_this_process(
    scene: str, beside: list[Beside], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wait_for_readers(monkeypatch)
    for out, what in (("one", ""), ("two", "readers")):
        sp.run(killing(what), scene, out=tmp_path / out, conditions="fog@2", progress=False, **ON)
    assert all_bytes(tmp_path / "one") == all_bytes(tmp_path / "two")


def test_a_store_that_is_killed_is_reported_and_the_same_call_goes_on(
    scene: str, beside: list[Beside], tmp_path: Path
) -> None:
    settings = {"conditions": "fog@2", "progress": False, **ON}
    sp.run(killing(""), scene, out=tmp_path / "one", **settings)
    with pytest.raises(RunError, match="process that writes parts was killed"):
        sp.run(killing("store"), scene, out=tmp_path / "two", **settings)
    sp.run(killing(""), scene, out=tmp_path / "two", **settings)
    assert all_bytes(tmp_path / "one") == all_bytes(tmp_path / "two")


def test_a_dataset_made_in_python_is_read_in_this_process(beside: list[Beside], tmp_path: Path) -> None:
    samples = [Sample(f"im{k}", np.full((16, 16, 3), 40 * k, np.uint8)) for k in range(4)]
    assert sp.run(killing(""), samples, out=tmp_path / "one", conditions="fog@2", progress=False, **ON)
    assert len(beside) == 1  # the store


@pytest.mark.parametrize("engine", ["local", "pool"])
def test_processes_end_with_the_one_that_holds_the_model(
    scene: str, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "waiting.py").write_text(
        "import json, os, time\n"
        "from pathlib import Path\n"
        "from stormproof.engine import cells, storing, work\n"
        "work.MANY_CELLS = 0\n"
        "def detect(images):\n"
        "    processes = [*cells._ahead[0].readers.processes, storing._stores[0].process]\n"
        "    there = Path(__file__).with_name('pids')\n"
        "    there.with_suffix('.new').write_text(json.dumps([os.getpid(), *(p.pid for p in processes)]))\n"
        "    there.with_suffix('.new').rename(there)\n"
        "    time.sleep(600)\n"
    )
    script = (
        "from stormproof.engine.run import run\n"
        "from stormproof.engine.config import make_config\n"
        f"run(make_config({{'model': {str(tmp_path / 'waiting.py')!r} + ':detect', 'data': {scene!r},\n"
        f"    'out': {str(tmp_path / 'run')!r}, 'conditions': ['fog@2'], 'device': 'cpu',\n"
        f"    'engine': {engine!r}}}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        there = tmp_path / "pids"
        wait_until(there.exists)
        pids = [int(pid) for pid in there.read_text().strip("[]").split(",")]
        assert len(pids) > 2
        os.kill(pids[0], signal.SIGKILL)  # of a pool, the worker
        wait_until(lambda: not any(map(is_alive, pids[1:])))
    finally:
        process.kill()
        process.wait()


def wait_until(true: object, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def echo(line: Line) -> None:
    while True:
        line.send(line.receive())


def test_messages_arrive_as_they_were(beside: list[Beside]) -> None:
    process = Beside(echo)
    sent = {
        "small": np.arange(3),
        "large": np.arange(1 << 20),
        "many": [np.full(5000, k) for k in range(600)],
    }
    process.send(sent)
    found = process.receive()
    assert np.array_equal(found["small"], sent["small"])
    assert np.array_equal(found["large"], sent["large"])
    assert [int(one[7]) for one in found["many"]] == list(range(600))
    found["large"][0] = 1  # which can be written to
    process.end()


def test_what_the_store_refuses_is_raised_here(beside: list[Beside], tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    file = tmp_path / "used"
    file.write_text("another")
    order = storing.Order(tmp_path, 0, "key", frozenset(), {str(file): "0" * 32})
    store = storing.PartStore()
    with pytest.raises(StoreError, match="changed during the run"), store.storing(order) as taken:
        taken.end()
    assert store.process.has_ended
    assert not [*(tmp_path / "parts").iterdir()]


@pytest.mark.parametrize("model", ["brightness_boxes", "thresholds", "raises_on_marked", "scribbles"])
def test_fed_by_other_processes_a_model_says_the_same(
    configure: Configure, beside: list[Beside], model: str
) -> None:
    one, two = configure(model, out="one"), configure(model, out="two", engine="feed", workers=3)
    first, second = run(one), run(two)
    assert len(beside) == 3
    assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))
    assert [(one.cell, one.error) for one in first.failures] == [(f.cell, f.error) for f in second.failures]
    assert second.times.corrupt > 0
    assert second.times.decoded >= first.times.decoded


def test_images_are_made_by_the_processes_that_feed(
    configure: Configure, beside: list[Beside], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: object) -> None:
        raise AssertionError("read in the model's process")

    monkeypatch.setattr("stormproof.engine.stages.decode.read_sample", never)
    assert run(configure(engine="feed", workers=2)).complete


def test_cells_of_a_killed_feeder_are_made_here(scene: str, beside: list[Beside], tmp_path: Path) -> None:
    def detect(images: list[object]) -> list[dict[str, list[object]]]:
        os.kill(beside[0].pid, signal.SIGKILL)
        return [{"boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": [0]} for _ in images]

    settings = {"conditions": "fog@2,contrast@4", "progress": False}
    sp.run(killing(""), scene, out=tmp_path / "one", **settings)
    detect.fingerprint = "one"  # type: ignore[attr-defined]
    sp.run(detect, scene, out=tmp_path / "two", engine="feed", workers=2, **settings)
    assert all_bytes(tmp_path / "one") == all_bytes(tmp_path / "two")


def test_feeding_is_for_the_cpu_and_for_datasets_that_a_spec_opens(tmp_path: Path, scene: str) -> None:
    with pytest.raises(StormproofError, match="leave --device out"):
        sp.run(killing(""), scene, out=tmp_path / "run", conditions="fog@2", engine="feed", device="cpu")
    samples = [Sample("im", np.zeros((16, 16, 3), np.uint8))]
    with pytest.raises(StormproofError, match="was made in this Python process"):
        sp.run(killing(""), samples, out=tmp_path / "run", conditions="fog@2", engine="feed")
