"""imagecorruptions 1.1.2, made to import and run on a current stack, for comparison only.

It imports pkg_resources (gone from setuptools 82) and a SciPy name that will go, uses np.float_ (gone
from NumPy 2) and scikit-image's `multichannel` (gone from 0.24). Each is fixed from outside, so that
the reference's own arithmetic runs unchanged. Drops of spatter get OpenCV's own distances, as on a machine
without Intel's library, which rounds them differently.
"""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import skimage.filters


def _gaussian(image: Any, sigma: Any = 1, multichannel: bool = False, **options: Any) -> Any:
    return skimage.filters.gaussian(image, sigma=sigma, channel_axis=-1 if multichannel else None, **options)


@lru_cache(maxsize=1)
def package() -> Any:
    """The imported reference package."""
    folder = Path(importlib.util.find_spec("imagecorruptions").origin).parent  # type: ignore[union-attr, arg-type]
    stand_in = types.ModuleType("pkg_resources")
    stand_in.resource_filename = lambda module, name: str(folder / name)  # type: ignore[attr-defined]
    if not hasattr(np, "float_"):
        np.float_ = np.float64  # type: ignore[attr-defined]
    before = sys.modules.get("pkg_resources")
    sys.modules["pkg_resources"] = before or stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import imagecorruptions
        from imagecorruptions import corruptions
    if before is None:  # it was for that import only; others, pytest among them, look for the real one
        del sys.modules["pkg_resources"]
    corruptions.gaussian = _gaussian
    return imagecorruptions


def corrupt(image: np.ndarray, name: str, severity: int, *, seed: int = 0) -> np.ndarray:
    """The reference's image, with NumPy's global generator seeded."""
    reference = package()
    np.random.seed(seed)
    random_noise = reference.corruptions.sk.util.random_noise
    # scikit-image draws salt and pepper from a generator of its own; give it the seed too.
    reference.corruptions.sk.util.random_noise = partial(random_noise, rng=seed)
    used = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(used and name != "spatter")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(reference.corrupt(image, severity=severity, corruption_name=name))
    finally:
        cv2.ipp.setUseIPP(used)
        reference.corruptions.sk.util.random_noise = random_noise
