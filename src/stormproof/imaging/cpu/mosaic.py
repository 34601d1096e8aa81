"""The colour filter array: one colour per sensor site, and interpolation of the other two.

The filter is RGGB: even rows are red, green, red …, odd rows green, blue, green …
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.plans import DEMOSAIC_REACH

Raw = npt.NDArray[np.uint8]


def mosaic(image: Image) -> Raw:
    """The colour that each site's filter passes, as H×W; a grey image is its own raw.

    >>> mosaic(np.arange(12, dtype=np.uint8).reshape(2, 2, 3)).tolist()
    [[0, 4], [7, 11]]
    """
    if image.shape[2] == 1:
        return image[..., 0].copy()
    raw = np.empty(image.shape[:2], np.uint8)
    raw[0::2, 0::2] = image[0::2, 0::2, 0]
    raw[0::2, 1::2] = image[0::2, 1::2, 1]
    raw[1::2, 0::2] = image[1::2, 0::2, 1]
    raw[1::2, 1::2] = image[1::2, 1::2, 2]
    return raw


@kernel
def _fill_row(up: Any, here: Any, down: Any, outer: Any, inner: Any, start: Any, near: Any, out: Any) -> None:
    """Sites of colour `outer` at start, start + 2, … with green between; other rows have `inner`."""
    width = out.shape[0]
    for x in range(start, width, 2):  # the red or blue sites of this row
        if near[x]:
            out[x, outer] = here[x + 1]
            out[x, 1] = (here[x] + here[x + 2] + up[x + 1] + down[x + 1] + 2) >> 2
            out[x, inner] = (up[x] + up[x + 2] + down[x] + down[x + 2] + 2) >> 2
    for x in range(1 - start, width, 2):  # its green sites
        if near[x]:
            out[x, outer] = (here[x] + here[x + 2] + 1) >> 1
            out[x, 1] = here[x + 1]
            out[x, inner] = (up[x + 1] + down[x + 1] + 1) >> 1


@kernel
def _demosaic(sites: Any, near: Any, out: Any) -> None:
    """`sites` have one mirrored site on every side; `out` starts as the image."""
    for y in range(out.shape[0]):
        up, here, down = sites[y], sites[y + 1], sites[y + 2]
        if y % 2 == 0:
            _fill_row(up, here, down, 0, 2, 0, near[y], out[y])
        else:
            _fill_row(up, here, down, 2, 0, 1, near[y], out[y])


def demosaic(raw: Raw, image: Image) -> Image:
    """Develop again the raw of an image, some sites of which now read other values.

    A pixel with such a site in the 5×5 around it, which edge-aware interpolation looks at, takes its missing
    colours bilinearly from its neighbours; every other pixel keeps the image's. So the image's own raw gives
    the image, and with a black image the whole raw is interpolated. Both sides must be at least 2: a smaller
    image lacks a colour.

    >>> image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    >>> bool((demosaic(mosaic(image), image) == image).all())
    True
    """
    out = np.array(image, order="C")
    faults = (raw != mosaic(image)).astype(np.uint8)
    near = cv2.dilate(faults, np.ones((2 * DEMOSAIC_REACH + 1,) * 2, np.uint8))
    # Mirroring about a site keeps the colour pattern.
    sites = cv2.copyMakeBorder(raw, 1, 1, 1, 1, cv2.BORDER_REFLECT_101)
    _demosaic(sites.astype(np.int32), near, out)
    return out
