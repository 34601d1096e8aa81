"""Kills at random moments: a command, killed and given again until it ends well, leaves the same bytes.

To be killed a thousand times, a run must start quickly. Planners are forked from a process that has loaded
everything, and the workers of the pool and of `corrupt` from their planner; `fresh` starts both as new
interpreters, as a user does. Ray's workers are always Ray's own, on one cluster for all kills.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import yaml

from helpers import forked, preloaded, scored_models
from helpers.fake_models import MODELS
from helpers.scenes import write_scene
from stormproof.engine.config import make_config
from stormproof.engine.run import run

SCORED = scored_models.MODELS
ENGINES = ("pool", "ray", "local", "corrupt", "plan", "score", "report", "figures", "export", "stylize")
_IMAGES, _SIDES = 24, (32, 32)
_CALM = 8  # attempts without a kill after which a folder must be whole
_CLUSTER = """
import sys, ray
options = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 << 20}
there = ray.init("local", log_to_driver=False, _node_ip_address="127.0.0.1", **options)
print(there.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""


class _Fresh:
    """A command as a new interpreter, with what is used here of a `preloaded.Process`."""

    def __init__(self, arguments: list[str], words: Path) -> None:
        command = [sys.executable, "-c", "from stormproof.cli import main; main()", *arguments]
        with words.open("wb") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
        self.pid = self._process.pid

    def join(self, patience: float | None) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)

    @property
    def exitcode(self) -> int | None:
        return self._process.returncode


@dataclass(frozen=True)
class Victim:
    """What is killed: the arguments of a command, with OUT for its folder, and where its workers are."""

    arguments: tuple[str, ...]
    fresh: bool
    cluster: int | None = None  # the process that holds Ray's cluster
    made_from: Path | None = None  # a folder whose copy the output folder is at first
    counts: Callable[[Path], bool] = lambda path: (
        path.suffix in (".parquet", ".png") or path.name == "manifest.json"
    )  # whether a file must be the same in the end

    whole: str = ""  # what the command says of a folder that lacks nothing, if it refuses that

    def prepare(self, out: Path) -> None:
        """Make the output folder, where the command does not."""
        if self.made_from is not None:
            shutil.copytree(self.made_from, out)

    def start(self, out: Path, words: Path) -> preloaded.Process | _Fresh:
        """Start the command in its own process group, with its output in a file."""
        arguments = [part.replace("OUT", str(out)) for part in self.arguments]
        return _Fresh(arguments, words) if self.fresh else forked.start(arguments, words)

    def workers(self, planner: int) -> list[int]:
        """The processes that do its work now."""
        if self.cluster is not None:
            return [child for child, words in _below(self.cluster) if words.startswith("ray::_RayWorker")]
        return [child for child, words in _below(planner) if "resource_tracker" not in words]


def kills(
    engine: str, count: int, seed: int, folder: Path, *, fresh: bool = False
) -> Iterator[tuple[str, str]]:
    """Kill at random moments until `count` kills are spent; yields what came of each, folder by folder."""
    rng = random.Random(seed)
    if engine == "ray":
        preloaded.load("ray")
    with ExitStack() as stack:
        victim = stack.enter_context(_victim(engine, folder, fresh))
        calm, words = folder / "calm", folder / "words.txt"
        victim.prepare(calm)
        started = time.monotonic()
        if code := forked.end(victim.start(calm, words)):
            raise SystemExit(f"An undisturbed run ends with {code}: {words.read_text()[-2000:]}")
        times, right, spent = [time.monotonic() - started], digest(calm, victim.counts), 0
        while spent < count:
            out = folder / f"killed-{spent}"
            victim.prepare(out)
            here, wrong = _torment(victim, out, words, times, rng, count - spent)
            wrong = wrong or ("" if digest(out, victim.counts) == right else "OTHER BYTES")
            wrong = wrong or ("LEFTOVERS" if list(out.rglob(".*.tmp")) else "")
            spent += here
            detail = f"after {here} kills: {words.read_text(errors='replace')[-600:]}" if wrong else ""
            for _ in range(here):
                yield wrong or "same bytes", detail
            shutil.rmtree(out)


def _torment(
    victim: Victim, out: Path, words: Path, times: list[float], rng: random.Random, most: int
) -> tuple[int, str]:
    """Start, kill and start again until the command ends well: the kills spent, and what went wrong."""
    here = calm = 0
    code: int | None = None
    while calm < _CALM:
        process, started, before = victim.start(out, words), time.monotonic(), here
        planner = process.pid
        assert planner is not None
        code = None
        while code is None:
            code = forked.end(process, rng.uniform(0, 1) * median(times[-9:]) if here < most else None)
            if code is None:
                here += 1
                _kill(victim, planner, rng)
        if not victim.fresh:
            _wait_for_group(planner)  # forked workers hold the planner's lock until they end
        if "Traceback (most recent" in words.read_text(errors="replace"):
            return here, "RAW ERROR"
        if here == before and code == 0:
            times.append(time.monotonic() - started)
        if code == 0 or (victim.whole and victim.whole in " ".join(words.read_text().split())):
            return here, ""
        calm += here == before
    return here, f"ENDS WITH {code}"


def _kill(victim: Victim, planner: int, rng: random.Random) -> None:
    """Kill the planner, everything it started, or one of its workers."""
    what = rng.choice(("planner", "planner", "group", "worker", "worker"))
    workers = victim.workers(planner) if what == "worker" else []
    with suppress(ProcessLookupError):
        if workers:
            os.kill(rng.choice(workers), signal.SIGKILL)
        elif what == "group":
            os.killpg(planner, signal.SIGKILL)
        else:
            os.kill(planner, signal.SIGKILL)


def _wait_for_group(group: int) -> None:
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.002)


@contextmanager
def _victim(engine: str, folder: Path, fresh: bool) -> Iterator[Victim]:
    scene = write_scene(folder / "scene", images=_IMAGES, size=_SIDES)
    if engine == "corrupt":
        images = scene.partition("images=")[2]
        copying = ("corrupt", images, "OUT", "--conditions", "contrast@3,brightness@3", "--workers", "2")
        yield Victim((*copying, "--overwrite"), fresh)
        return
    if engine == "plan":
        yield Victim(("run", "--config", str(_plan(scene, folder / "plan.yaml")), "--out", "OUT"), fresh)
        return
    if engine in ("score", "report", "figures", "export", "stylize"):
        yield _derived(engine, scene, folder, fresh)
        return
    running = ("run", "--model", f"{MODELS}:brightness_boxes", "--data", scene, "--conditions",
               "contrast@3,brightness@3", "--chunk", "1", "--engine", engine, "--out", "OUT")  # fmt: skip
    if engine != "ray":
        yield Victim((*running, *(("--workers", "2") if engine == "pool" else ())), fresh)
        return
    os.environ["RAY_AUTH_MODE"] = "disabled"  # this cluster listens to this machine alone
    command = [sys.executable, "-c", _CLUSTER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        address = holder.stdout.readline().strip()
        try:
            on_ray = tuple(f"ray,address={address}" if word == "ray" else word for word in running)
            yield Victim(on_ray, fresh, holder.pid)
        finally:
            holder.stdin.close()


def _derived(command: str, scene: str, folder: Path, fresh: bool) -> Victim:
    """A command that makes something of a run, or of a dataset."""
    if command == "stylize":
        styled = ("stylize", scene, "--out", "OUT", "--workers", "2", "--sequence", "0.5:1:0.5")
        refused = "is not empty and holds no unfinished run"
        return Victim(styled, fresh, counts=lambda path: True, whole=refused)
    made = folder / "made"
    settings = {"model": f"{SCORED}:contrast_boxes", "data": scene, "conditions": ["contrast@3,fog@1-2"],
                "engine": "local", "out": str(made)}  # fmt: skip
    run(make_config(settings))
    if command == "score":
        asked = ("score", "OUT", "--interval", "--replicates", "50")
        return Victim(asked, fresh, made_from=made, counts=lambda path: path.parent.name == "scores")
    page = ("OUT/report.html",) if command == "report" else ("OUT",)
    # vl-convert orders the fonts of a PDF differently in every process.
    return Victim((command, str(made), "--out", *page), fresh, counts=lambda path: path.suffix != ".pdf")


def _plan(scene: str, path: Path) -> Path:
    """Six models on two images."""
    models = [{"model": f"{MODELS}:brightness_boxes", "name": f"m{k}"} for k in range(6)]
    shared = {"conditions": ["fog", "contrast"], "chunk": 1, "limit": 2, "engine": "local"}
    path.write_text(yaml.safe_dump({"models": models, "datasets": scene, **shared}))
    return path


def digest(folder: Path, counts: Callable[[Path], bool]) -> str:
    """The bytes of everything that counts in an output folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and counts(path):
            total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _below(ancestor: int) -> list[tuple[int, str]]:
    """Every process that descends from one, with its command line."""
    parents, words = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
    family, grown = {ancestor}, 0
    while grown != len(family):
        grown = len(family)
        family |= {child for child, parent in parents.items() if parent in family}
    return [(child, words[child]) for child in sorted(family - {ancestor}) if child in words]
