"""What the engine itself costs: time beside decoding, corrupting and predicting; cores; memory.

    python benchmarks/engine.py            every table, with the limit each number is held to
    python benchmarks/engine.py --quick    small sets, to see that it runs; the limits are not judged
    python benchmarks/engine.py --cores    only how throughput grows with workers, of a pool and of Ray

The model takes 20 ms per call of eight images and answers with a hundred boxes each, so the engine's
part is not hidden behind a slow network. Images are 640×480 JPEG.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from os import cpu_count, getloadavg
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from stormproof.core.sample import Image, Prediction

CALL = 0.020  # seconds
BOXES = 100
FULL = "imagenet-c"
LIMITS = {"share": 0.05, "speed-up": 1.8, "memory": 1.10, "suite": 1.20}


def _answers(images: Sequence[Image]) -> list[Prediction]:
    found = []
    for image in images:
        rng = np.random.default_rng(int(image[::37, ::41].sum()))
        low = rng.uniform(0, 400, (BOXES, 2))
        boxes = np.concatenate([low, low + rng.uniform(5, 60, (BOXES, 2))], axis=1)
        found.append(Prediction(boxes, rng.random(BOXES), rng.integers(0, 80, BOXES)))
    return found


def waiting_model(images: Sequence[Image]) -> list[Prediction]:
    """A model on a device of its own: the call takes 20 ms, the core is free."""
    until = time.perf_counter() + CALL
    found = _answers(images)
    time.sleep(max(0.0, until - time.perf_counter()))
    return found


def working_model(images: Sequence[Image]) -> list[Prediction]:
    """A model on the processor: the call takes 20 ms of a core."""
    until = time.thread_time() + CALL
    found = _answers(images)
    while time.thread_time() < until:
        pass
    return found


def write_images(folder: Path, count: int, size: tuple[int, int] = (480, 640)) -> str:
    """`count` files, of which the first 24 differ: the rest are links, so that 5,000 cost nothing."""
    import cv2

    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(count):
        path = folder / f"{i:05d}.jpg"
        if i >= 24:
            path.hardlink_to(folder / f"{i % 24:05d}.jpg")
            continue
        small = rng.integers(0, 255, (size[0] // 16, size[1] // 16, 3), np.uint8)
        cv2.imwrite(str(path), cv2.resize(small, size[::-1], interpolation=cv2.INTER_CUBIC))
    return f"images:{folder}"


def one_run(settings: dict[str, object]) -> dict[str, float]:
    """Run once in this process and say what it took; the first chunk warms up and is not counted."""
    import resource

    from stormproof.engine.config import make_config
    from stormproof.engine.plan import Survey
    from stormproof.engine.run import Summary, run
    from stormproof.engine.work import ChunkResult, Times
    from stormproof.results.store.record import RunRecord

    class Clock:
        times, cells, decoded, workers = Times(), 0, 0, int(str(settings.get("workers", 1)))
        marks: list[float] = []  # noqa: RUF012

        def started(self, record: RunRecord, survey: Survey) -> None: ...

        def advanced(self, result: ChunkResult) -> None:
            self.marks.append(time.perf_counter())
            self.decoded += result.times.decoded
            if len(self.marks) > self.workers:
                self.times.add(result.times)
                self.cells += sum(result.done.values())

        def ended(self, summary: Summary) -> None: ...

    clock = Clock()
    run(make_config(settings), [clock])
    times = clock.times
    used = times.decode + times.corrupt + times.model
    steady = clock.marks[-1] - clock.marks[clock.workers - 1] if len(clock.marks) > clock.workers else 0.0
    return {
        "decode": times.decode, "corrupt": times.corrupt, "model": times.model, "total": times.total,
        "share": 1 - used / times.total if times.total else 0.0, "decoded": clock.decoded,
        "rate": clock.cells / steady if steady else 0.0,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def measure(out: Path, **settings: object) -> dict[str, float]:
    """`one_run` in a fresh process."""
    wanted = {"engine": "local", "out": str(out), **settings}
    done = subprocess.run(
        [sys.executable, __file__, "--one", json.dumps(wanted)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def overhead(folder: Path, images: int, console: Console) -> bool:
    """Time outside decoding, corruption and model; one decode per image whatever the conditions.

    The fewer the conditions, the fewer cells a part file of a small set holds and the more its two fsyncs
    weigh (5 % with 16 conditions on 40 images); so the rows have more images, to be about as many cells.
    """
    spec = write_images(folder / "overhead", 25 * images)
    columns = ("cond.", "images", "decodes", "decode", "corrupt", "model", "engine", "share", "limit")
    table = Table(*columns, title="Where the time goes, in seconds", title_justify="left")
    good = True
    for name, number, count in ((FULL, 76, images), ("noise", 16, 5 * images), ("clean", 1, 25 * images)):
        found = measure(folder / f"out-{name}", model=f"{__file__}:waiting_model", data=spec, limit=count,
                        conditions=[name], batch=8)  # fmt: skip
        spent = [f"{found[kind]:.2f}" for kind in ("decode", "corrupt", "model")]
        mine = f"{found['share'] * found['total']:.2f}"
        table.add_row(str(number), f"{count:,}", f"{found['decoded']:.0f}", *spent, mine,
                      f"{100 * found['share']:.1f} %", f"≤ {100 * LIMITS['share']:.0f} %")  # fmt: skip
        good &= found["decoded"] == count and found["share"] <= LIMITS["share"]
    console.print(table)
    return good


def spin(seconds: float) -> int:
    """How much plain arithmetic one process gets done."""
    until, turns = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        turns += sum(range(1000)) > 0
    return turns


def ceiling() -> float:
    """What a second process adds on this machine right now, without any engine."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(spin, (0.1, 0.1)))
        alone = pool.submit(spin, 2.0).result()
        return sum(pool.map(spin, (2.0, 2.0))) / alone


def cores(folder: Path, images: int, console: Console) -> bool:
    """Throughput of two workers against one, in turn, best of two; of Ray too, where it is installed."""
    spec = write_images(folder / "cores", images)
    engines = ("pool", "ray") if find_spec("ray") else ("pool",)
    rates: dict[tuple[str, int], list[float]] = {(engine, n): [] for engine in engines for n in (1, 2)}
    possible = ceiling()
    for turn in range(2):
        for (engine, workers), kept in rates.items():
            out = folder / f"cores-{engine}-{workers}-{turn}"
            found = measure(out, model=f"{__file__}:working_model", data=spec, conditions="noise,blur",
                            engine=engine, workers=workers, chunk=2)  # fmt: skip
            kept.append(found["rate"])
    best = {each: max(kept) for each, kept in rates.items()}
    columns = ("engine", "workers", "cells/s", "times one", "limit", "two plain processes")
    load = f"load {getloadavg()[0]:.1f}, {cpu_count()} cores"
    table = Table(*columns, title=f"Throughput ({load})", title_justify="left")
    for engine in engines:
        ratio = best[engine, 2] / best[engine, 1]
        table.add_row(engine, "1", f"{best[engine, 1]:.1f}", "1.00", "", "")
        limit = f"≥ {LIMITS['speed-up']}" if engine == "pool" else ""
        table.add_row("", "2", f"{best[engine, 2]:.1f}", f"{ratio:.2f}", limit, f"{possible:.2f}")
    console.print(table)
    return best["pool", 2] / best["pool", 1] >= LIMITS["speed-up"]


def memory(folder: Path, images: tuple[int, int], console: Console) -> bool:
    """Peak memory of one worker over dataset and grid: it must not grow with images or conditions.

    Every corruption brings its machine code, tables and textures once, whatever the number of
    conditions; the last row shows what fifteen of them come to.
    """
    few, many = images
    spec = write_images(folder / "memory", many, (240, 320))
    sweep = ",".join(f"contrast[factor={k / 100}]" for k in range(5, 80))
    peaks: dict[str, float] = {}
    for name, count, conditions in (
        ("clean", few, "clean"), ("more images", many, "clean"), ("one", few, "contrast@1"),
        ("sweep", few, sweep), ("suite", few, FULL), ("suite, more images", 3 * few, FULL),
    ):  # fmt: skip
        found = measure(folder / f"memory-{name}", model=f"{__file__}:waiting_model", data=spec, limit=count,
                        conditions=[conditions])  # fmt: skip
        peaks[name] = found["peak"]
    table = Table("from", "to", "MiB", "", "ratio", "limit", title="Peak memory of one process",
                  title_justify="left")  # fmt: skip
    good = True
    for before, after, limit, first, second in (
        ("clean", "more images", "memory", f"{few:,} images", f"{many:,} images"),
        ("one", "sweep", "memory", "2 conditions", "76 of one corruption"),
        ("suite", "suite, more images", "memory", f"{few:,} images, 76 conditions", f"{3 * few:,} images"),
        ("clean", "suite", "suite", "1 condition (clean)", f"76 of fifteen ({FULL})"),
    ):  # fmt: skip
        ratio = peaks[after] / peaks[before]
        good &= ratio <= LIMITS[limit]
        table.add_row(first, second, f"{peaks[before]:.0f}", f"{peaks[after]:.0f}", f"{ratio:.2f}",
                      f"≤ {LIMITS[limit]:.2f}")  # fmt: skip
    console.print(table)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cores", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_run(json.loads(options.one))))
        return
    console = Console()
    small = options.quick
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        good = [cores(folder, 8 if small else 32, console)]
        if not options.cores:
            good.append(overhead(folder, 16 if small else 40, console))
            good.append(memory(folder, (20, 60) if small else (100, 5000), console))
    if not all(good) and not small:
        sys.exit("A limit is exceeded; on a machine that is busy with other work, run it again.")


if __name__ == "__main__":
    main()
