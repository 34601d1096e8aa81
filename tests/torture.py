"""Torture of the store: bits flipped in run folders, and processes killed at random moments.

    python tests/torture.py flips --count 10000 --seed 1
    python tests/torture.py kills --engine pool --count 400 --seed 1

Everything follows from the seed but the moment a kill lands. A flip survives if the score is what it was, or
the run is refused in our own words; a kill survives if the folder, continued, ends in the bytes of an
undisturbed one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from engine.scenes import write_scene, write_street
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.errors import StormproofError

MODELS = Path(__file__).parent / "engine" / "fake_models.py"
_COMMAND = [sys.executable, "-c", "from stormproof.cli import main; main()"]


def make_runs(folder: Path) -> list[Path]:
    """Small runs of boxes, masks and label maps, with a failed cell in one of them."""
    scene, street = write_scene(folder / "scene", images=6), write_street(folder / "street", images=4)
    for name, model, data in (("boxes", "brightness_boxes", scene), ("masks", "brightness_masks", scene),
                              ("maps", "thresholds", street)):  # fmt: skip
        settings = {"model": f"{MODELS}:{model}", "data": data, "conditions": ["fog@2"], "engine": "local",
                    "chunk": 2, "out": str(folder / name)}  # fmt: skip
        run(make_config(settings))
    return [folder / name for name in ("boxes", "masks", "maps")]


def scored(folder: Path) -> str:
    """Every number that follows from a run, as one string."""
    from stormproof.scoring.score import score_run
    from stormproof.scoring.tables import as_json

    return as_json(score_run(folder))


def flips(count: int, seed: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Flip single bits over all files of runs; yields what came of each, and where it was."""
    rng = random.Random(seed)
    runs = make_runs(folder)
    right = {place: scored(place) for place in runs}
    files = [(place, path) for place in runs for path in sorted(place.rglob("*"))
             if path.is_file() and not path.name.startswith(".")]  # fmt: skip
    sizes = [path.stat().st_size for _, path in files]
    for _ in range(count):
        ((place, path),) = rng.choices(files, sizes)
        content = path.read_bytes()
        at, bit = rng.randrange(len(content)), rng.randrange(8)
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        where = f"{path.relative_to(folder)} byte {at} bit {bit}"
        try:
            yield ("same score" if scored(place) == right[place] else "WRONG SCORE"), where
        except StormproofError as error:
            yield ("refused" if path.name in str(error) else "refused without the file's name"), where
        except Exception as error:
            yield f"RAW ERROR {type(error).__name__}", where
        finally:
            path.write_bytes(content)


def digest(folder: Path) -> str:
    """The bytes of everything that counts in an output folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and _counts(path)]
    total = hashlib.sha256()
    for path in files:
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _counts(path: Path) -> bool:
    return path.suffix in (".parquet", ".png") or path.name == "manifest.json"


def command(engine: str, scene: str, out: Path) -> list[str]:
    """What is killed: a run on an engine, or `corrupt`."""
    if engine == "corrupt":
        images = scene.partition("images=")[2]
        return [*_COMMAND, "corrupt", images, str(out), "--suite", "noise", "--workers", "2", "--overwrite"]
    workers = [] if engine in ("ray", "local") else ["--workers", "2"]
    return [*_COMMAND, "run", "--model", f"{MODELS}:brightness_boxes", "--data", scene, "--conditions",
            "fog,contrast,brightness,pixelate", "--chunk", "1", "--engine", engine, "--out", str(out),
            *workers]  # fmt: skip


def kills(engine: str, count: int, seed: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Kill a run at random moments until it ends by itself, then begin another, for `count` kills in all."""
    rng = random.Random(seed)
    scene = write_scene(folder / "scene", images=48)
    calm = folder / "calm"
    started = time.monotonic()
    subprocess.run(command(engine, scene, calm), check=True, capture_output=True)
    usual, right, spent = time.monotonic() - started, digest(calm), 0
    while spent < count:
        out, here = folder / f"killed-{spent}", 0
        while True:
            process = subprocess.Popen(
                command(engine, scene, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            try:
                _, words = process.communicate(
                    timeout=rng.uniform(0.2, 1.0) * usual if spent + here < count else None
                )
            except subprocess.TimeoutExpired:
                _kill(process, rng.choice(("planner", "planner", "group", "worker")))
                here += 1
                if process.poll() is None:  # a worker was killed, and is replaced
                    _, words = process.communicate()
                else:
                    process.communicate()
                    continue
            break
        spent += here
        left = list(out.rglob(".*.tmp"))
        ended = process.returncode == 0 and digest(out) == right and not left
        detail = f"{here} kills: exit {process.returncode}, {len(left)} leftovers, {words.decode()[-300:]}"
        for _ in range(here):
            yield ("same bytes" if ended else "OTHER BYTES"), detail
        shutil.rmtree(out)


def _kill(process: subprocess.Popen[bytes], what: str) -> None:
    """Kill the planner, everything it started, or one of its workers."""
    if what == "worker":
        children = _children(process.pid)
        if children:
            os.kill(random.choice(children), signal.SIGKILL)
            return
    try:
        if what == "group":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass
    process.wait()


def _children(parent: int) -> list[int]:
    """Workers of a process: those of its children that are no helpers of Python's."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            words = (place / "cmdline").read_text()
        except OSError:
            continue
        if int(fields[1]) == parent and "spawn_main" in words:
            found.append(int(place.name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("flips", "kills"))
    parser.add_argument("--engine", default="pool", choices=("pool", "ray", "local", "corrupt"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        results = (
            flips(asked.count, asked.seed, folder)
            if asked.what == "flips"
            else kills(asked.engine, asked.count, asked.seed, folder)
        )
        for outcome, where in results:
            told[outcome] += 1
            if outcome.isupper() or outcome.split()[0].isupper():
                print(f"{outcome}: {where}", flush=True)
            if told.total() % 100 == 0:
                print(json.dumps(told), flush=True)
    print(f"{told.total()} {asked.what}, seed {asked.seed}: {dict(told)}")
    sys.exit(any(outcome.split()[0].isupper() for outcome in told))


if __name__ == "__main__":
    main()
