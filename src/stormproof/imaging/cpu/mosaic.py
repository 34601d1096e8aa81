"""The colour filter array: one colour per sensor site, and interpolation of the other two.

The filter is RGGB: even rows are red, green, red …, odd rows green, blue, green …
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image

Raw = npt.NDArray[np.uint8]

_REACH = 2  # sites that edge-aware interpolation looks at in each direction


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
def _mark_row(raw: Any, image: Any, first: Any, second: Any, faults: Any) -> None:
    """Mark the sites of a row, of colours first, second, first, …, that differ from the image."""
    for x in range(raw.shape[0]):
        faults[x] = raw[x] != image[x, second if x % 2 else first]


@kernel
def _near(faults: Any, y: Any, across: Any, out: Any) -> None:
    """Whether a fault lies within reach of each site of row y; `across` is wider by the reach."""
    width = out.shape[0]
    across[:] = 0
    for row in range(max(y - _REACH, 0), min(y + _REACH + 1, faults.shape[0])):
        line = faults[row]
        for x in range(width):
            across[x + _REACH] |= line[x]
    out[:] = 0
    for shift in range(2 * _REACH + 1):
        line = across[shift : shift + width]
        for x in range(width):
            out[x] |= line[x]


@kernel
def _read_row(raw: Any, out: Any) -> None:
    """A row with one mirrored site at either end; mirroring about a site keeps the colour pattern."""
    width = raw.shape[0]
    for x in range(width):
        out[x + 1] = raw[x]
    out[0] = out[2]
    out[width + 1] = out[width - 1]


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
def _demosaic(raw: Any, image: Any, out: Any) -> None:
    """`out` starts as the image."""
    height, width = raw.shape
    faults = np.empty((height, width), np.uint8)
    for y in range(height):
        _mark_row(raw[y], image[y], y % 2, y % 2 + 1, faults[y])
    up, here, down = np.empty((3, width + 2), np.int32)
    across, near = np.empty(width + 2 * _REACH, np.uint8), np.empty(width, np.uint8)
    for y in range(height):
        _near(faults, y, across, near)
        _read_row(raw[y - 1 if y > 0 else 1], up)
        _read_row(raw[y], here)
        _read_row(raw[y + 1 if y + 1 < height else height - 2], down)
        if y % 2 == 0:
            _fill_row(up, here, down, 0, 2, 0, near, out[y])
        else:
            _fill_row(up, here, down, 2, 0, 1, near, out[y])


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
    _demosaic(raw, image, out)
    return out
