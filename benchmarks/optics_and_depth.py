"""Optics, mutators, patterns and depth: milliseconds on one core at 640×480, and others beside them.

    python benchmarks/optics_and_depth.py             times against their limits, then nrtk and albumentations
    python benchmarks/optics_and_depth.py --stereo    stereo depth against plain OpenCV matching, on ../shared

Times are medians of CPU milliseconds over whole calls: checks, draws, kernels and all. Packages that are
not installed are left out; `pip install nrtk pybsm albumentations` in an environment of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import cv2
import numpy as np
import skimage.data

from stormproof import apply
from stormproof.core.condition import Condition
from stormproof.core.sample import Context, Sample
from stormproof.corruptions import find, find_suite

SIZE = (480, 640)
LIMITS = {"haze": 2.0, "defocus": 60.0, "psf_blur": 25.0, "geometric_distortion": 4.0}  # ms; others 10
LIMITS |= {"rain": 60.0}  # it draws tens of thousands of drops
LATER = ("foggy-cityscapes", "3dcc", "street-physics", "imagenet-c-bar")  # suites with a limit of 25 ms

Call = Callable[[], object]


def street() -> Sample:
    """A photograph with the depth of a street: road, sky, and posts at 3 and 8 m."""
    image = cv2.resize(skimage.data.astronaut(), SIZE[::-1], interpolation=cv2.INTER_CUBIC)
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    depth = np.where(y > 200, 1.6 * 500 / np.maximum(y - 199, 1), np.inf)
    depth = np.minimum(depth, np.where(x // 80 % 3 == 1, 8, np.inf))
    depth = np.minimum(depth, np.where(x // 40 % 9 == 2, 3, np.inf))
    return Sample("street", np.ascontiguousarray(image), context=Context(depth=depth.astype(np.float32)))


def cpu_ms(call: Call, *, repeats: int = 9) -> float:
    """Median CPU milliseconds of a call, after one to compile and fill tables."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(1000 * (time.process_time() - start))
    return median(times)


def own_times(sample: Sample) -> None:
    print(f"{'corruption':<28}{'slowest condition':<50}{'ms':>7}{'limit':>7}")
    for suite in ("optics", "mutators", "contextual", *LATER):
        slowest: dict[str, tuple[float, str]] = {}
        for condition in find_suite(suite):
            name = condition.corruption or ""
            took = cpu_ms(lambda c=condition: apply(sample, c))  # type: ignore[misc]
            slowest[name] = max(slowest.get(name, (0.0, "")), (took, str(condition)))
        for name, (took, text) in slowest.items():
            limit = LIMITS.get(name, 25.0 if suite in LATER else 10.0)
            print(f"{name:<28}{text:<50}{took:>7.2f}{limit:>7.0f}{'' if took <= limit else '  OVER'}")


def rows(sample: Sample) -> list[tuple[str, str, str, Call]]:
    """What others share with us: (their name, what it does, our condition, their call)."""
    found: list[tuple[str, str, str, Call]] = []
    if find_spec("albumentations"):
        found += _albumentations(sample)
    if find_spec("nrtk"):
        found += _nrtk(sample)
    return found


def _albumentations(sample: Sample) -> list[tuple[str, str, str, Call]]:
    import albumentations as others

    image = sample.image
    listed = [
        ("haze", "haze[beta=0.04]", others.RandomFog(p=1)),
        (
            "radial distortion",
            "geometric_distortion@5",
            others.OpticalDistortion(distort_limit=(0.2, 0.2), p=1),
        ),
        ("sensor noise", "intensity_noise@3", others.ISONoise(p=1)),
        ("additive noise", "additive_noise[zeta_w=15,zeta_u=0.5,psi=0.5]", others.GaussNoise(p=1)),
        ("salt and pepper", "salt_and_pepper[amount=0.05]", others.SaltAndPepper(amount=(0.05, 0.05), p=1)),
        # A disk of radius 7 is as wide as a Gaussian of σ 3.6; theirs knows no depth.
        ("defocus", "defocus[kappa=3.6,focus=1]", others.Defocus(radius=(7, 7), p=1)),
    ]
    return [
        ("albumentations", what, ours, lambda t=theirs: t(image=image))  # type: ignore[misc]
        for what, ours, theirs in listed
    ]


def _nrtk(sample: Sample) -> list[tuple[str, str, str, Call]]:
    from nrtk.impls.perturb_image.environment import HazePerturber
    from nrtk.impls.perturb_image.optical import RadialDistortionPerturber
    from nrtk.impls.perturb_image.photometric import noise

    image, depth = sample.image, sample.context.depth
    assert depth is not None
    deep = np.repeat(np.minimum(depth, 1000)[..., None], 3, axis=2)
    haze, radial = HazePerturber(factor=0.04), RadialDistortionPerturber(k=[0.2, 0, 0])
    pepper = noise.SaltAndPepperNoisePerturber(amount=0.05, seed=1)
    normal, speckle = noise.GaussianNoisePerturber(var=0.003, seed=1), noise.SpeckleNoisePerturber(seed=1)
    additive = "additive_noise[zeta_w=15,zeta_u=0.5,psi=0.5]"
    listed: list[tuple[str, str, str, Call]] = [
        ("nrtk", "haze", "haze[beta=0.04]", lambda: haze.perturb(image=image, depth_map=deep)),
        ("nrtk", "radial distortion", "geometric_distortion@5", lambda: radial.perturb(image=image)),
        ("nrtk", "salt and pepper", "salt_and_pepper[amount=0.05]", lambda: pepper.perturb(image=image)),
        ("nrtk", "additive noise", additive, lambda: normal.perturb(image=image)),
        (
            "nrtk",
            "signal noise",
            "additive_noise[zeta_w=5,zeta_u=2.5,psi=0.5]",
            lambda: speckle.perturb(image=image),
        ),
    ]
    if find_spec("pybsm"):
        from nrtk.impls.perturb_image.optical.otf import DefocusPerturber

        defocus = DefocusPerturber(w_x=1e-6, w_y=1e-6)
        call: Call = lambda: defocus.perturb(image=image, img_gsd=0.05)  # noqa: E731
        listed.append(("nrtk", "defocus", "defocus[kappa=3.6,focus=1]", call))
    return listed


def side_by_side(sample: Sample) -> None:
    listed = rows(sample)
    if not listed:
        print("\nneither nrtk nor albumentations is installed: nothing to compare with")
        return
    print(f"\n{'what':<20}{'ours':<48}{'ms':>7}  {'theirs':<16}{'ms':>8}{'times':>7}")
    alone = Sample(sample.id, sample.image)  # they move and read nothing but the image
    for package, what, condition, call in listed:
        ours_on = sample if find(Condition.parse(condition).corruption or "").needs else alone
        ours = cpu_ms(lambda c=condition, s=ours_on: apply(s, c))  # type: ignore[misc]
        theirs = cpu_ms(call, repeats=5)
        slower = "" if ours <= theirs else "  SLOWER"
        print(
            f"{what:<20}{condition:<48}{ours:>7.2f}  {package:<16}{theirs:>8.2f}{theirs / ours:>7.1f}{slower}"
        )


def stereo() -> None:
    """Share of bad pixels and median relative error of depth, ours and OpenCV's."""
    root = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(root / "tests"))
    from depth import test_stereo as check

    print(f"\n{'pair':<13}{'':<9}{'off by > 1 px':>14}{'> 3 px':>8}{'median error':>14}{'ms':>8}")
    for name in check.NAMES:
        given = check.pair(root.parent / "shared", name)
        known = given.truth > 0
        for who in ("OpenCV", "ours"):
            start = time.process_time()
            disparity = check.plain(given) if who == "OpenCV" else check.search(given)
            took = 1000 * (time.process_time() - start)
            ratio = (given.truth + given.offset)[known] / (disparity + given.offset)[known]
            off = np.median(np.nan_to_num(np.abs(ratio - 1), nan=np.inf))
            shares = [check.bad(disparity, given.truth, limit) for limit in (1, 3)]
            print(f"{name:<13}{who:<9}{shares[0]:>14.1%}{shares[1]:>8.1%}{off:>14.2%}{took:>8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stereo", action="store_true", help="stereo depth only")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    if options.stereo:
        stereo()
        return
    sample = street()
    own_times(sample)
    side_by_side(sample)


if __name__ == "__main__":
    main()
