"""The sky, found in the image itself: bright, smooth, not reddish, and joined to the upper edge."""

from __future__ import annotations

import cv2
import numpy as np

from stormproof.sample import Bools, Image

_BRIGHT = 100  # grey levels of the brightest channel
_SMOOTH = 10.0  # grey levels per pixel that a cloud's rim may have
_STRAY = 0.005  # share of the sky that measurements may hit: wires, leaves, birds
_REDDER = 12  # grey levels by which red may exceed blue: evening clouds, not brick


def find_sky(image: Image, measured: Bools | None = None) -> Bools:
    """The pixels that look like sky. A guess by daylight, meant for priors; check it on your images.

    A region in which some depths were measured (by a laser, say) is a wall, however bright.
    """
    rgb = image if image.ndim == 3 and image.shape[2] == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    soft = cv2.GaussianBlur(rgb, (0, 0), 1.0)
    value = soft.max(axis=2)
    slopes = [cv2.Sobel(value, cv2.CV_32F, *axis, ksize=3, scale=1 / 8) for axis in ((1, 0), (0, 1))]
    smooth = np.hypot(*slopes) < _SMOOTH
    cool = soft[..., 0].astype(np.int16) <= soft[..., 2].astype(np.int16) + _REDDER
    likely = smooth & (value > _BRIGHT) & cool
    _, parts = cv2.connectedComponents(likely.astype(np.uint8), connectivity=4)
    from_above = np.unique(parts[0][likely[0]])
    if measured is not None:
        sizes = np.bincount(parts.ravel())
        hits = np.bincount(parts[measured], minlength=len(sizes))
        from_above = from_above[hits[from_above] <= _STRAY * sizes[from_above]]
    sky = np.isin(parts, from_above) & likely
    # The rim was left out for its slope: grow back over it, but only onto pixels as bright as sky.
    grown = cv2.dilate(sky.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    found: Bools = sky | (grown & (value > _local_level(value, sky)))
    return found


def _local_level(value: Image, sky: Bools) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Nine tenths of the sky's mean brightness nearby; out of reach where there is no sky."""
    weight = cv2.blur(sky.astype(np.float32), (15, 15))
    light = cv2.blur(np.where(sky, value, 0).astype(np.float32), (15, 15))
    return np.where(weight > 0, 0.9 * light / np.maximum(weight, 1e-6), np.inf).astype(np.float32)
