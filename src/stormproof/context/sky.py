"""The sky, found in the image itself: bright, smooth, not reddish, and joined to the upper edge."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.context.depthmaps import Map
from stormproof.sample import Bools, Image

_BRIGHT = 100  # grey levels of the brightest channel
_SMOOTH = 7.0  # grey levels per pixel that a cloud's rim may have
_STRAY = 0.005  # share of the sky that measurements may hit: wires, leaves, birds
_DISTANT = 1.5  # px of parallax; clouds are matched, too, and have less than this
_SEEN = 0.1  # share of a region that must be seen to be distant, if it hangs below the horizon
_AROUND, _SHARE = 9, 0.3  # px a side of what is nearby, and the share of it that tells
_PANEL = 0.03  # share of the image up to which a region ringed by near things is a panel of them
_TEXTURE, _TELLING = 1.0, 0.15  # grey levels a pixel across that make texture; the share of it that tells
_CROWN, _ALIKE = 61, 10.0  # px a side within which the sky's colour counts, and grey levels off it
_REDDER, _GLOW = 12, 70  # grey levels by which red may exceed blue: clouds, not brick; an evening, not paint


def find_sky(
    image: Image,
    measured: Bools | None = None,
    parallax: Map | None = None,
    moved: Bools | None = None,
) -> Bools:
    """The pixels that look like sky. A guess by daylight; check it on your images.

    A region in which some depths were measured (by a laser, say) is a wall, however bright. Where the
    `parallax` of a stereo pair is known (NaN is not), pixels among near ones are none of it, and a region
    without distant ones that hangs below the horizon is a wall; so is one that for the most part has `moved`
    from one view to the other. What is distant may have any colour.
    """
    rgb = image if image.ndim == 3 and image.shape[2] == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    soft: Image = cv2.GaussianBlur(rgb, (0, 0), 1.0).astype(np.uint8, copy=False)
    value = soft.max(axis=2)
    slopes = [cv2.Sobel(value, cv2.CV_32F, *axis, ksize=3, scale=1 / 8) for axis in ((1, 0), (0, 1))]
    smooth = np.hypot(*slopes) < _SMOOTH
    red, green, blue = (soft[..., channel].astype(np.int16) for channel in range(3))
    # A purple wall has too little green. What stays in place between two views may glow as an evening does.
    redder = np.int16(_REDDER) if moved is None else np.where(moved, _REDDER, _GLOW).astype(np.int16)
    likely = smooth & (value > _BRIGHT) & (red <= np.minimum(green, blue) + redder)
    distant = np.zeros(likely.shape, np.bool_)
    if parallax is not None:
        distant = _mostly(parallax <= _DISTANT)
        # On an even sky the matcher carries in what is beside it; only matches of some texture tell.
        textured = np.abs(slopes[0]) > _TEXTURE
        solid = _mostly((parallax > _DISTANT) & textured, _TELLING) & ~distant
        likely = (likely | (smooth & distant)) & ~solid
    _, parts = cv2.connectedComponents(likely.astype(np.uint8), connectivity=4)
    sizes = np.bincount(parts.ravel())
    from_above = np.unique(parts[0][likely[0]])
    if measured is not None:
        hits = np.bincount(parts[measured], minlength=len(sizes))
        from_above = from_above[hits[from_above] <= _STRAY * sizes[from_above]]
    if parallax is not None:
        seen = np.bincount(parts[distant], minlength=len(sizes)) > _SEEN * sizes
        low = np.bincount(parts[len(parts) // 2 :].ravel(), minlength=len(sizes)) > _STRAY * sizes
        walled = _ringed(parts, _mostly(parallax > _DISTANT), len(sizes)) & (sizes < _PANEL * parts.size)
        from_above = from_above[seen[from_above] | ~(low | walled)[from_above]]
    if moved is not None:
        shifted = 2 * np.bincount(parts[moved], minlength=len(sizes)) > sizes
        from_above = from_above[~shifted[from_above]]
    sky = np.isin(parts, from_above) & likely
    if parallax is not None:
        sky |= _of_its_colour(soft.astype(np.uint8), sky) & smooth
    # The rim was left out for its slope: grow back over it, but only onto pixels as bright as sky.
    grown = cv2.dilate(sky.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    found: Bools = sky | (grown & (value > _local_level(value, sky)))
    return found


def _of_its_colour(image: Image, sky: Bools) -> Bools:
    """Pixels above the horizon that have the sky's colour close by: between leaves no matcher sees it."""
    weight = cv2.blur(sky.astype(np.float32), (_CROWN, _CROWN))
    alike = np.ones(sky.shape, np.bool_)
    for channel in range(3):
        level = image[..., channel].astype(np.float32)
        mean = cv2.blur(np.where(sky, level, 0).astype(np.float32), (_CROWN, _CROWN))
        alike &= np.abs(level - mean / np.maximum(weight, 1e-6)) < _ALIKE
    alike &= weight > 0.02
    alike[len(alike) // 2 :] = False
    return alike


def _ringed(parts: npt.NDArray[np.int32], near: Bools, count: int) -> Bools:
    """The regions most of whose surroundings are near: panels of something, not the sky beside it."""
    around = cv2.dilate(parts.astype(np.float32), np.ones((_AROUND, _AROUND), np.uint8)).astype(np.int64)
    around[parts > 0] = 0
    ring, hits = np.bincount(around.ravel(), minlength=count), np.bincount(around[near], minlength=count)
    mostly: Bools = 2 * hits > ring
    return mostly


def _mostly(kind: Bools, share: float = _SHARE) -> Bools:
    """Where a good share of the pixels nearby is of a kind."""
    near: Bools = cv2.blur(kind.astype(np.float32), (_AROUND, _AROUND)) > share
    return near


def _local_level(value: Image, sky: Bools) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Nine tenths of the sky's mean brightness nearby; out of reach where there is no sky."""
    weight = cv2.blur(sky.astype(np.float32), (15, 15))
    light = cv2.blur(np.where(sky, value, 0).astype(np.float32), (15, 15))
    return np.where(weight > 0, 0.9 * light / np.maximum(weight, 1e-6), np.inf).astype(np.float32)
