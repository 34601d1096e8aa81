"""Renders scenes and trains several networks in parallel on one machine, within a given time.

Small networks leave a large GPU mostly idle, so they share it; they begin as soon as the first scenes are
rendered. Each runs in its own process: a training that fails does not stop the others and is retried once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ENDING = 20.0  # seconds reserved for the last scores and files
OPENING = 300.0  # seconds in which rendering must create its files


def train_all(
    names: Sequence[str],
    pool: Path,
    out: Path,
    *,
    scenes: tuple[int, int],
    seconds: float,
    render_path: str = "",
) -> dict[str, int]:
    """Train all of `names` on one growing pool; returns their exit codes.

    `scenes` are the numbers of training and held-out scenes. `render_path` is a folder with Numba, for a
    Python that lacks it.
    """
    end = time.time() + seconds
    order = ["render", str(pool), "--train", str(scenes[0]), "--val", str(scenes[1])]
    rendering = _start(order, nice=5, path=render_path)
    try:
        _wait_for(pool / "train" / "pool.json", rendering)
        orders = {name: _order(name, pool, out, end - ENDING) for name in names}
        running = {name: _start(order) for name, order in orders.items()}
        codes: dict[str, int] = {}
        again = set(names)
        while len(codes) < len(names) and time.time() < end:
            time.sleep(0.5)
            for name, process in list(running.items()):
                code = process.poll()
                if code is None or name in codes:
                    continue
                if code and name in again and end - time.time() > 4 * ENDING:
                    again.discard(name)
                    print(f"[{name}] ended with {code}; trying again with half the batch", flush=True)
                    running[name] = _start([*orders[name], "--batch", "20"])
                else:
                    codes[name] = code
        for process in running.values():
            process.kill()
    finally:
        rendering.kill()
    return codes


def _order(name: str, pool: Path, out: Path, until: float) -> list[str]:
    return ["train", name, "--pool", str(pool), "--out", str(out), "--until", str(until)]


def _start(order: Sequence[str], nice: int = 0, path: str = "") -> subprocess.Popen[bytes]:
    here = str(Path(__file__).resolve().parents[1])
    places = [path, here, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places)), "PYTHONUNBUFFERED": "1"}
    command = ["nice", "-n", str(nice), sys.executable, "-m", "training", *order]
    return subprocess.Popen(command, env=environment)


def _wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.time() + OPENING
    while not file.is_file():
        if process.poll() is not None or time.time() > until:
            raise RuntimeError(f"Rendering ended or stalled before {file} existed; see its output above.")
        time.sleep(0.2)
