"""Ray and submitit for real: the same bytes as in one process, a node lost or not."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from helpers import forked
from helpers.fake_models import GATE, MODELS
from helpers.runs import Configure, all_bytes, all_rows
from helpers.scenes import MARKED
from stormproof.core.errors import RunError
from stormproof.engine import executors
from stormproof.engine.executors import Local, _connect_ray
from stormproof.engine.plan import make_plan
from stormproof.engine.run import execute, run
from stormproof.results.store.merge import merge
from stormproof.results.store.parts import failures_path, write_failures

LONG = {"conditions": ["noise"], "chunk": 1}


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the jobs of submitit."""
    monkeypatch.setattr(executors, "_POLL", 0.02)


@pytest.fixture
def quick_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs of submitit run in forks of a process that has loaded everything."""
    local = pytest.importorskip("submitit.local.local", reason="needs the extra 'slurm'").LocalExecutor
    python = tmp_path / "python"
    with forked.quick_command(forked.MODULE) as text:
        python.write_text(text)
        python.chmod(0o755)
        monkeypatch.setattr(local, "__init__", partialmethod(local.__init__, python=str(python)))
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes on this machine, one core each."""
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    from ray.cluster_utils import Cluster

    try:
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        made.add_node(num_cpus=1)
    except Exception as error:  # Ray gives a node 30 seconds, whatever else the machine does
        if "timed out" not in str(error):
            raise
        pytest.skip(f"this machine is too busy for Ray: {error}")
    yield made
    made.shutdown()


@pytest.mark.slow
def test_a_lost_ray_node_changes_nothing(
    configure: Configure, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run stops at its gate, loses a node there, and goes on."""
    monkeypatch.chdir(tmp_path)
    config = configure("gated_boxes", engine=f"ray,address={cluster.address}", **LONG)
    out, gate = Path(config.out), tmp_path / GATE
    ended = threading.Event()

    def lose_a_node() -> None:
        while not list((out / "parts").glob("part-*")) and not ended.wait(0.02):
            pass
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        gate.touch()

    thief = threading.Thread(target=lose_a_node)
    thief.start()
    try:
        summary = run(config)
    finally:
        ended.set()
        thief.join()
    assert summary.complete
    assert not summary.failures
    assert not cluster.worker_nodes
    calm = configure("gated_boxes", out="calm", **LONG)
    run(calm)
    assert all_bytes(out) == all_bytes(Path(calm.out))


@pytest.mark.slow
def test_ray_workers_corrupt_on_their_device(configure: Configure, cluster: Any) -> None:
    """torch's CPU device stands for the GPU that Ray gives each task."""
    pytest.importorskip("torch", reason="needs torch")
    calm = configure(out="calm", chunk=12)
    run(calm)
    config = configure(engine=f"ray,address={cluster.address}", device="cpu", chunk=12)
    assert run(config).complete
    assert all_bytes(Path(config.out)) == all_bytes(Path(calm.out))


@pytest.mark.slow
def test_ray_workers_open_their_model_once_and_name_the_bad_cell(
    configure: Configure, cluster: Any, tmp_path: Path
) -> None:
    """A chunk per image, but each process opens the model once."""
    opened, script = tmp_path / "opened.txt", tmp_path / "noting.py"
    script.write_text(
        "import os, runpy\n"
        f"with open({str(opened)!r}, 'a') as file:\n"
        "    file.write(f'{os.getpid()}\\n')\n"
        f"detect = runpy.run_path({str(MODELS)!r})['raises_on_marked']\n"
    )
    config = configure(engine=f"ray,address={cluster.address}", chunk=1)
    summary = run(config.model_copy(update={"model": f"{script}:detect"}))
    assert [(f.image, f.condition) for f in summary.failures] == [("6", "clean")]
    pids = opened.read_text().split()
    assert len(pids) == len({*pids}) <= 3  # this process, and a worker on each node
    assert len(list((Path(config.out) / "parts").glob("part-*"))) > 3


@pytest.mark.slow
def test_ray_workers_that_never_start_end_the_run(
    configure: Configure, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a node lacks a package."""

    class Worker:
        def start(self) -> None:
            os._exit(1)

    monkeypatch.setattr(executors, "_RayWorker", Worker)
    monkeypatch.setattr(executors, "NEVER_OPENED", 2)
    with pytest.raises(RunError, match="2 Ray workers in a row did not start: "):
        run(configure(engine=f"ray,address={cluster.address}"))


@pytest.mark.slow
def test_reports_that_there_is_no_ray_cluster(configure: Configure) -> None:
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    with pytest.raises(RunError, match=r"No Ray cluster at '127.0.0.1:9'"):
        run(configure(engine="ray,address=127.0.0.1:9"))


def test_reports_a_ray_node_that_starts_too_slowly(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine: Ray gives up with a plain exception."""
    ray = pytest.importorskip("ray", reason="needs the extra 'ray'")

    def too_slow(**_: object) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", too_slow)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(RunError, match=r"Ray did not start: The current node timed out .*--engine pool"):
        run(configure(engine="ray"))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_jobs")
def test_submitit_jobs_give_the_same_bytes(configure: Configure) -> None:
    pytest.importorskip("submitit", reason="needs the extra 'slurm'")
    calm = configure(out="calm")
    run(calm)
    config = configure(engine="slurm,cluster=local", workers=2)
    summary = run(config)
    assert summary.complete
    assert all_bytes(Path(config.out)) == all_bytes(Path(calm.out))


@pytest.mark.slow
def test_reports_that_slurm_rejected_the_jobs(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    utils = pytest.importorskip("submitit.core.utils", reason="needs the extra 'slurm'")

    def refuse(*arguments: object) -> None:
        raise utils.FailedJobError("sbatch: error: Unable to contact slurm controller")

    monkeypatch.setattr("submitit.AutoExecutor.batch", refuse)
    with pytest.raises(RunError, match="Slurm rejected the jobs: sbatch: error: Unable to contact"):
        run(configure(engine="slurm,cluster=local"))


@pytest.mark.usefixtures("quick_jobs")
def test_reports_a_lost_job_and_does_its_chunks_in_the_next_run(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("submitit", reason="needs the extra 'slurm'")
    monkeypatch.setenv("DIES_ONCE", str(tmp_path / "died"))
    config = configure("loses_its_job_once", engine="slurm,cluster=local", workers=1)
    with monkeypatch.context() as impatient:
        impatient.setattr(
            "submitit.core.core.Job._results_timeout_s", 1
        )  # seconds for a file to appear, not 15
        with pytest.raises(RunError, match="1 of 1 jobs were lost"):
            run(config)
    assert run(config).complete


@pytest.mark.slow
@pytest.mark.usefixtures("quick_jobs")
def test_a_cell_that_kills_its_worker_does_not_end_the_job(configure: Configure) -> None:
    pytest.importorskip("submitit", reason="needs the extra 'slurm'")
    config = configure("dies_on_marked", engine="slurm,cluster=local", workers=1)
    summary = run(config)
    assert [(f.index, f.condition, f.kind) for f in summary.failures] == [(MARKED, "clean", "death")]
    assert len(all_rows(Path(config.out))) == 12 * 3 - 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sinfo") is None, reason="there is no Slurm on this machine")
def test_slurm_gives_the_same_bytes(configure: Configure) -> None:
    import subprocess

    pytest.importorskip("submitit", reason="needs the extra 'slurm'")
    idle = subprocess.run(["sinfo", "-h", "-t", "idle,mixed"], capture_output=True, text=True, check=False)
    if idle.returncode or not idle.stdout.strip():
        pytest.skip("Slurm is installed, but no node is up")
    calm = configure(out="calm")
    run(calm)
    config = configure(engine="slurm", workers=2)
    assert run(config).complete
    assert all_bytes(Path(config.out)) == all_bytes(Path(calm.out))


def test_shards_merge_into_the_whole(configure: Configure) -> None:
    whole = configure(out="whole", chunk=2)
    run(whole)
    out = Path(whole.out)
    shards = [configure(out=f"shard{i}", shard=f"{i}/3", chunk=2) for i in (1, 2, 3)]
    for shard in shards:
        plan = make_plan(shard)
        assert execute(plan, Local()).complete
    merge(out.with_name("merged"), [Path(shard.out) for shard in shards])
    assert all_bytes(out.with_name("merged")) == all_bytes(out)


def test_a_merge_that_was_killed_leaves_nothing_behind(configure: Configure, tmp_path: Path) -> None:
    shards = [configure(out=f"shard{i}", shard=f"{i}/2") for i in (1, 2)]
    for shard in shards:
        run(shard)
    failed = {"index": 0, "image": "1", "condition": "snow@2", "kind": "model", "error": "x"}
    write_failures(failures_path(Path(shards[0].out), 0), [failed])
    merged, places = tmp_path / "merged", [Path(shard.out) for shard in shards]
    merge(merged, places)
    written = [path for path in merged.rglob("*") if path.suffix in (".parquet", ".json", ".yaml")]
    assert {path.name for path in written} >= {"part-000000.parquet", "part-000000.json", "run.yaml"}
    for path in written:
        path.with_name(f".{path.name}.0123456789ab.tmp").write_bytes(b"half")
    merge(merged, places)
    assert not list(merged.rglob(".*.tmp"))


def test_a_stale_cluster_file_is_not_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ray, asked without an address, would follow the file of the last cluster, and wait for a dead one."""
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("192.0.2.1:6379")  # an address nobody has
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    asked: list[str] = []

    class Ray:
        @staticmethod
        def init(address: str, **_: object) -> None:
            asked.append(address)

    _connect_ray(Ray, None)
    assert asked == ["local"]  # which starts one, whatever the file says


def test_reports_a_closed_ray_address_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RunError, match="No Ray cluster"):
        _connect_ray(None, f"127.0.0.1:{port}")
