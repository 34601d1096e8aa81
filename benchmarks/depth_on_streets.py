"""Estimated depth on streets whose depth is exact: what haze makes of it, and whether its confidence tells.

    python benchmarks/depth_on_streets.py                     100 scenes of seeds that nothing was tuned on
    python benchmarks/depth_on_streets.py --figure docs/depth-confidence.svg

Stereo, and a laser like KITTI's (`wrong_depth.py`), on ten scenes of each of ten seeds, of all kinds of hours
and districts. Limits were set on seeds 101 to 110 of `world:train` and 1 to 20 of `world:test`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from stormproof import apply
from stormproof.core.sample import Sample
from stormproof.core.table import Table
from stormproof.datasets import read_dataset
from stormproof.datasets.depthmaps import DOUBT, MOST_DOUBTFUL, DepthEstimate, Map
from stormproof.depth.estimate import FromGiven, FromStereo
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section, View
from stormproof.report.figures import write_figures
from wrong_depth import with_laser

SEEDS, SCENES, APART = range(501, 511), 10, 37  # scenes 0, 37, 74 … of each seed
BETAS = (0.004, 0.012, 0.04)
WRONG = 1.25  # factor by which a wrong depth is off
PATCH, OFF = 0.003, 40  # of the image, and grey levels: a patch one sees


@dataclass(frozen=True, slots=True)
class Result:
    """One kind of depth on one scene. `right` and `wrong` count pixels by confidence in per cent."""

    off: list[float]  # grey levels, by β
    patches: list[int]  # by β
    sky: npt.NDArray[np.int64]  # found, in all, taken wrongly, not sky in all
    right: npt.NDArray[np.int64]
    wrong: npt.NDArray[np.int64]
    doubtful: float


def judge(sample: Sample, found: DepthEstimate) -> Result:
    exact = sample.context.depth
    assert exact is not None
    guessed = replace(sample, context=replace(sample.context, depth=found.depth))
    pairs = [[apply(s, f"haze[beta={beta}]").image for s in (guessed, sample)] for beta in BETAS]
    change = [np.abs(a.astype(np.int16) - b) for a, b in pairs]
    sky, taken = np.isinf(exact), np.isinf(found.depth)
    off, percent = is_wrong(found.depth, exact), np.rint(100 * found.confidence).astype(int)
    return Result(
        [float(c.mean()) for c in change],
        [_patches(c.mean(axis=2)) for c in change],
        np.array([(sky & taken).sum(), sky.sum(), (taken & ~sky).sum(), (~sky).sum()]),
        np.bincount(percent[~off], minlength=101),
        np.bincount(percent[off], minlength=101),
        found.doubtful,
    )


def is_wrong(depth: Map, exact: Map) -> npt.NDArray[np.bool_]:
    """Pixels whose depth is off by more than a quarter, or that are sky in one map only."""
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isinf(depth) & np.isinf(exact), 1, depth / exact)
    return ~((ratio < WRONG) & (ratio > 1 / WRONG))


def _patches(change: npt.NDArray[np.float64]) -> int:
    _, _, stats, _ = cv2.connectedComponentsWithStats((change > OFF).astype(np.uint8), connectivity=4)
    return int((stats[1:, cv2.CC_STAT_AREA] > PATCH * change.size).sum())


def curve(results: Sequence[Result]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
    """Of the right and of the wrong pixels, the share with a confidence up to each per cent; the area."""
    right, wrong = (
        np.append(0, np.cumsum(np.sum(counts, axis=0))).astype(np.float64)
        for counts in ([r.right for r in results], [r.wrong for r in results])
    )
    right, wrong = right / right[-1], wrong / wrong[-1]
    return right, wrong, float(np.trapezoid(wrong, right))


def describe(kind: str, results: Sequence[Result]) -> str:
    off = np.mean([r.off for r in results], axis=0)
    patches = np.array([r.patches for r in results])
    found, of_sky, taken, of_rest = np.sum([r.sky for r in results], axis=0)
    right, wrong, area = curve(results)
    below = round(100 * DOUBT)
    many = sum(r.doubtful > MOST_DOUBTFUL for r in results)
    return (
        f"{kind}, {len(results)} scenes: haze {' / '.join(f'{m:.2f}' for m in off)} grey levels; "
        f"scenes with a patch {(patches > 0).sum(axis=0)}, patches {patches.sum(axis=0)}; "
        f"of the sky found {found / of_sky:.1%}, of the rest taken for sky {taken / of_rest:.2%}; area under "
        f"the ROC {area:.2f}; below {DOUBT} lie {wrong[below]:.0%} of the wrong and {right[below]:.0%} of "
        f"the right pixels; more than {MOST_DOUBTFUL:.0%} doubtful in {many} scenes"
    )


def figure(curves: dict[str, Sequence[Result]]) -> Figure:
    rows: list[Datum] = []
    for kind, results in curves.items():
        right, wrong, area = curve(results)
        label = f"{kind}, area {area:.2f}"
        places = sorted({*range(0, 101, 5), 100})
        rows += [{"x": 100 * right[k], "y": 100 * wrong[k], "series": label} for k in places]
    axes = (
        Axis("right pixels with less confidence (%)", percent=True),
        Axis("wrong pixels with less confidence (%)", percent=True),
    )
    return Figure("depth-confidence", "Does confidence tell?", Kind.LINES, *axes, rows, series="depth from")


def draw(made: Figure, out: Path) -> None:
    section = Section("depth", "Depth", "", (made,))
    view = View("Depth", (), Table("none", "", [], []), (section,))
    path = next(iter(write_figures(view, out.parent / ".drawn", style="slides", formats=[out.suffix[1:]])))
    path.replace(out)
    for left in path.parent.iterdir():
        left.unlink()
    path.parent.rmdir()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figure", type=Path, help="where to draw the ROC")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    results: dict[str, list[Result]] = {"stereo": [], "laser": []}
    for seed in SEEDS:
        scenes = read_dataset(f"world:test,seed={seed},stereo=true,count={APART * SCENES}")
        for sample in (scenes[k * APART] for k in range(SCENES)):
            results["stereo"].append(judge(sample, FromStereo()(sample)))
            laser = FromGiven()(with_laser(sample, scenes.semantic_classes))
            results["laser"].append(judge(sample, laser))
    for kind, found in results.items():
        print(describe(kind, found))
    if options.figure:
        draw(figure(dict(results)), options.figure)


if __name__ == "__main__":
    main()
