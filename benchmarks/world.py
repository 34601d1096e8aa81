"""How many scenes a second one core renders, with all truth: `python benchmarks/world.py`."""

from __future__ import annotations

from time import perf_counter, process_time

from stormproof.world.samples import render

SIZES = ((512, 320), (1024, 512))
SCENES = 24
REPEATS = 3


def rate(width: int, height: int) -> tuple[float, float]:
    """Scenes per second of processor time and of wall time, each scene at its best of several runs."""
    busy = wall = 0.0
    for index in range(SCENES):
        render(
            0, "val", index, width=width, height=height
        )  # makes the models it needs, as a long run has them
        runs = []
        for _ in range(REPEATS):
            started, used = perf_counter(), process_time()
            render(0, "val", index, width=width, height=height)
            runs.append((process_time() - used, perf_counter() - started))
        busy += min(run[0] for run in runs)
        wall += min(run[1] for run in runs)
    return SCENES / busy, SCENES / wall


def main() -> None:
    print(f"{SCENES} scenes of world:val, image and all truth, one core, best of {REPEATS}")
    for width, height in SIZES:
        busy, wall = rate(width, height)
        print(
            f"{width}x{height}: {busy:.1f} scenes/s of processor time, {wall:.1f} by the clock, "
            f"{1e9 / busy / width / height:.0f} ns a pixel"
        )


if __name__ == "__main__":
    main()
