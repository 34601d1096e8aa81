"""Processes that feed the one that holds the model: the same bytes, whoever is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stormproof as sp
from helpers.runs import Configure, all_bytes
from helpers.scenes import write_scene
from stormproof.core.condition import CLEAN
from stormproof.core.errors import RunError, StoreError, StormproofError
from stormproof.core.sample import Sample, Truth
from stormproof.engine import cells, feeding
from stormproof.engine.plan import make_plan
from stormproof.engine.run import run
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.work import Times

FED = {"engine": "feed", "workers": 2}


def detector(before: Callable[[], None] = lambda: None) -> Any:
    """A model that does something before each answer."""

    def detect(images: list[Any]) -> list[dict[str, list[Any]]]:
        before()
        return [{"boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": [0]} for _ in images]

    detect.fingerprint = "one"  # type: ignore[attr-defined]
    return detect


@pytest.mark.parametrize("model", ["thresholds", "raises_on_marked", "scribbles"])
def test_fed_by_other_processes_a_model_says_the_same(configure: Configure, model: str) -> None:
    one, two = configure(model, out="one"), configure(model, out="two", **FED)
    first, second = run(one), run(two)
    assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))
    assert [(one.cell, one.error) for one in first.failures] == [(f.cell, f.error) for f in second.failures]
    assert second.times.corrupt > 0
    assert second.times.decoded >= first.times.decoded


def test_images_are_made_by_the_processes_that_feed(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: object) -> None:
        raise AssertionError("read in the model's process")

    monkeypatch.setattr("stormproof.engine.stages.decode.Decoder.read", never)
    assert run(configure(**FED)).complete


def test_adding_times_of_feeding_keeps_the_counts_of_the_model() -> None:
    """The thread that receives images adds it while the model's thread counts by condition."""
    times = Times(model=2.0, model_by_condition=Counter({"clean": 2.0}))
    counted = times.model_by_condition
    times.add(Times(decode=0.5, corrupt=0.25, decoded=1))
    assert times.model_by_condition is counted
    assert (times.decode, times.corrupt, times.model, times.decoded) == (0.5, 0.25, 2.0, 1)


def test_a_killed_process_is_reported_and_the_same_call_goes_on(scene: str, tmp_path: Path) -> None:
    settings = {"conditions": "fog@2,contrast@4", "progress": False}
    sp.run(detector(), scene, out=tmp_path / "one", **settings)

    def kill() -> None:
        for process in [*cells._feeding[0]._pool._processes.values()]:
            process.kill()

    with pytest.raises(RunError, match="A worker process was killed"):
        sp.run(detector(kill), scene, out=tmp_path / "two", **FED, **settings)
    sp.run(detector(), scene, out=tmp_path / "two", **FED, **settings)
    assert all_bytes(tmp_path / "one") == all_bytes(tmp_path / "two")


def test_a_file_that_cannot_be_read_fails_alone_and_says_why(configure: Configure, tmp_path: Path) -> None:
    data = write_scene(tmp_path / "scene")
    broken = sorted((tmp_path / "scene").rglob("*.png"))[1]
    broken.write_bytes(broken.read_bytes()[:60])
    one, two = (configure(out=out, data=data, **more) for out, more in (("one", {}), ("two", FED)))
    first, second = run(one).failures, run(two).failures
    assert first
    assert [(f.cell, f.error) for f in first] == [(f.cell, f.error) for f in second]
    assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))


def test_truth_that_cannot_be_moved_is_left_to_the_process_that_asked(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Truth:
        raise ValueError

    monkeypatch.setattr(feeding, "_work", [make_plan(configure()).work])
    monkeypatch.setattr(feeding, "_last", [])
    assert feeding._make((0, CLEAN)) is not None
    corrupt = Corruptor.__call__
    monkeypatch.setattr(Corruptor, "__call__", lambda self, *cell: corrupt(self, *cell)._replace(truth=fail))
    assert feeding._make((0, CLEAN)) is None


def test_an_image_that_changes_during_a_run_is_refused(scene: str, tmp_path: Path) -> None:
    data = write_scene(tmp_path / "scene")
    images = sorted((tmp_path / "scene").rglob("*.png"))
    settings = {"data": data, "out": tmp_path / "run", "progress": False, **FED}
    sp.run(detector(), conditions="fog@2", **settings)
    first = images[0].read_bytes()

    def change() -> None:
        images[-1].write_bytes(first)

    with pytest.raises(StoreError, match="is not the image that this run began with"):
        sp.run(detector(change), conditions="fog@2,contrast@4", batch=1, **settings)


def test_feeding_is_for_the_cpu_and_for_datasets_that_a_spec_opens(tmp_path: Path, scene: str) -> None:
    settings = {"out": tmp_path / "run", "conditions": "fog@2", "engine": "feed"}
    with pytest.raises(StormproofError, match="leave --device out"):
        sp.run(detector(), scene, device="cpu", **settings)
    with pytest.raises(StormproofError, match="was made in this Python process"):
        sp.run(detector(), [Sample("im", np.zeros((16, 16, 3), np.uint8))], **settings)


def test_processes_end_with_the_one_that_holds_the_model(scene: str, tmp_path: Path) -> None:
    there = tmp_path / "pids"
    script = (
        "import time, stormproof\n"
        "from pathlib import Path\n"
        "from stormproof.engine import cells\n"
        "def detect(images):\n"
        f"    there, new = Path({str(there)!r}), Path({str(there)!r} + '.new')\n"
        "    new.write_text(' '.join(str(pid) for pid in cells._feeding[0]._pool._processes))\n"
        "    new.rename(there)\n"
        "    time.sleep(600)\n"
        f"settings = {{'out': {str(tmp_path / 'run')!r}, 'engine': 'feed', 'workers': 2}}\n"
        f"stormproof.run(detect, {scene!r}, conditions='fog@2', **settings)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    try:
        wait_until(there.exists)
        pids = [*map(int, there.read_text().split())]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        process.kill()
        wait_until(lambda: not any(map(is_alive, pids)))
    finally:
        process.kill()
        process.wait()


def wait_until(true: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
