"""Imported by the process that commands and workers are forked from: does once what each of them would do.

It starts no thread, since a process with threads cannot be forked safely.
"""

from __future__ import annotations

import os
import sys

from helpers.preloaded import PATH


def warm() -> None:
    # Registries look again for what packages offer where the search path is another one.
    sys.path[:] = os.environ.pop(PATH).split(os.pathsep)

    import numpy as np

    import helpers.forked  # noqa: F401  where commands start; it brings pytest, which takes longer than most
    from stormproof.core import registry
    from stormproof.core.provenance import provenance
    from stormproof.corruptions import corrupt_image

    provenance()  # reads the version of every package
    for each in registry._EVERY:
        len(each)  # imports everything that is declared or offered
    for condition in ("gaussian_noise@3", "shot_noise@3", "impulse_noise@3", "fog@2", "contrast@4"):
        corrupt_image(np.zeros((48, 64, 3), np.uint8), condition)  # loads its kernels


if PATH in os.environ:  # set for that process alone
    warm()
