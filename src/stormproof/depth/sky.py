"""Finding the sky in an image: bright, smooth, not reddish, and connected to the upper edge."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from stormproof.core.sample import Bools, Floats, Image, Sample
from stormproof.datasets.depthmaps import DOUBT, DepthEstimate, Map
from stormproof.depth.holes import steepness

_BRIGHT = 100  # grey levels of the brightest channel
_SMOOTH = 7.0  # largest gradient of a cloud's rim, in grey levels per pixel
_NARROW = 0.035  # fraction of the height; narrower parts of one image are not sky
_MINOR = 0.1  # of the largest region of sky in one image; a smaller one is more likely a pane or a wall
_STRAY = 0.005  # fraction of the sky that may have measured depth: wires, leaves, birds
_DISTANT = 1.5  # px of parallax; clouds are matched too, and have less than this
_SEEN = 0.1  # fraction of a region that must be distant, unless it may be a wall
_AROUND, _SHARE = 9, 0.3  # px: size of a neighbourhood, and the fraction of it that decides
_SPECK, _PANEL = 0.003, 0.03  # fractions of the image: too small to judge, and small enough for a panel
_TEXTURE, _TELLING = 1.0, 0.15  # grey levels per pixel that count as texture; the fraction of it that decides
_REDDER, _GLOW = 12, 70  # grey levels by which red may exceed blue: in clouds, in evening light
_BLUER, _PAINT = 5, 0.35  # grey levels between red, green and blue in a blue sky; paint has less red
_BARRIER = np.array((255, 0, 255), np.uint8)  # a colour that the sky never has
_BINS = 32  # bins per colour channel
_ROUNDS = 3  # of growing the sky over similar neighbours
_CROWN, _BESIDE = 61, 0.02  # px: size of a neighbourhood, and the fraction of it that must be sky
_WITHIN, _OFF = 1.5, 6.0  # standard deviations and grey levels around the colour of the sky nearby
_ALIKE = 0.8  # fraction of a region that must have the sky's colours
_FITTED, _RIDGE = 4000, 1e-4  # pixels that the sky's colour is fitted to, and how flat it is without evidence
_SAME, _SIMILAR, _AGREE = 2.0, 4.0, 0.6  # tolerances for regions, and the fraction of one that must agree
_MATCHED = 0.8  # fraction of a region with a parallax; a surface has more, a sky only what its rim lends it
_UNSEEN = 0.1  # worth of a region without distant matches as the surest sky
_TINY = 0.0005  # fraction of the image; smaller regions are not judged by their colour
_FEW = 0.05  # pixels of a colour, after smoothing over colours, that count as none

MOST_UNVEILED = 0.05  # fraction of an image that looks like sky and has a doubtful depth; more is reported

Parts = npt.NDArray[np.int32]


def find_sky(
    image: Image, measured: Bools | None = None, parallax: Map | None = None, moved: Bools | None = None
) -> Bools:
    """The pixels that look like sky. It assumes daylight; check it on your images.

    A region with measured depths (`measured`, by a laser for example) is a wall, however bright. If the
    `parallax` of a stereo pair is given (NaN is unknown), pixels among near ones are excluded, and distant
    pixels may have any colour. Regions end where something has `moved` between the two views: a pale truck
    that merges with a pale sky does not do so in both. Pixels that moved are sky if they continue it.
    """
    grey = image.ndim == 2 or image.shape[2] == 1
    rgb = np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2RGB) if grey else image, np.uint8)
    soft: Image = cv2.GaussianBlur(rgb, (0, 0), 1.0).astype(np.uint8, copy=False)
    value = soft.max(axis=2)
    slopes = [cv2.Sobel(value, cv2.CV_32F, *axis, ksize=3, scale=1 / 8) for axis in ((1, 0), (0, 1))]
    smooth = np.hypot(*slopes) < _SMOOTH
    red, green, blue = (soft[..., channel].astype(np.int16) for channel in range(3))
    # A purple wall has too little green. Pixels that do not move between views may glow as at dusk.
    redder = np.int16(_REDDER) if moved is None else np.where(moved, _REDDER, _GLOW).astype(np.int16)
    likely = smooth & (value > _BRIGHT) & (red <= np.minimum(green, blue) + redder)
    if parallax is None:
        parts, count = _regions(_wide(likely))
        hit = np.zeros(count) if measured is None else _share(parts, measured, count)
        sky = _from_above(parts, hit <= _STRAY)
        size = np.bincount(parts[sky], minlength=count)
        sky &= (size >= _MINOR * size.max())[parts]
    else:
        distant = _mostly(parallax <= _DISTANT)
        # In an even sky the matcher copies values from beside it; only matches with some texture count.
        textured = np.abs(slopes[0]) > _TEXTURE
        solid = _mostly((parallax > _DISTANT) & textured, _TELLING) & ~distant
        likely = (likely | (smooth & distant)) & ~solid
        still = likely if moved is None else likely & ~moved
        azure = (blue > green + _BLUER) & (green > red + _BLUER) & (red > _PAINT * blue)
        sky, walls = _judge_regions(still, distant, azure)
        sky, walls = _of_one_colour(rgb, still, sky, walls, distant)
        # A white post may be as bright as a blue sky: moved pixels end at edges in any channel.
        likely &= still | (steepness(rgb) < _SMOOTH)
        sky = _flood(soft, sky, walls, likely)
        for _ in range(_ROUNDS if sky.any() else 0):
            sky = _of_its_colour(rgb, sky, likely)
        looks = find_sky(rgb)
        stays = moved is None or (moved & looks).sum() < looks.sum() / 2
        if stays and sky.sum() < looks.sum() / 2:
            sky |= _blue_and_unmatched(looks & ~sky, azure, ~np.isnan(parallax))
    # The rim was excluded by its gradient: grow back over it, but only onto pixels as bright as the sky.
    grown = cv2.dilate(sky.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    whole: Bools = sky | (grown & (value > _local_level(value, sky)))
    return whole


def sky_of(sample: Sample) -> Bools:
    """The sky in a sample's image, where no depth was measured."""
    given = sample.context.depth
    return find_sky(sample.image, None if given is None else np.isfinite(given))


def unveiled_sky(image: Image, estimate: DepthEstimate) -> float:
    """The fraction of the image that looks like sky, has a finite depth, and whose depth is doubtful."""
    near = np.isfinite(estimate.depth) & (estimate.confidence < DOUBT)
    return float((find_sky(image) & near).mean())


def _wide(kind: Bools) -> Bools:
    """`kind` without its narrow parts: window frames, pipes, gaps in the texture of a wall."""
    side = max(round(_NARROW * len(kind)), 1)
    core = cv2.erode(kind.astype(np.uint8), np.ones((side, side), np.uint8), borderValue=1)
    grown = cv2.dilate(core, np.ones((side + 2, side + 2), np.uint8)).astype(bool)
    wide: Bools = kind & grown
    return wide


def _judge_regions(still: Bools, distant: Bools, azure: Bools) -> tuple[Bools, Bools]:
    """The regions that are sky, and those that are walls; specks are neither.

    A region without distant matches is a wall if it reaches below the horizon, or if it is no larger than a
    panel. If all regions would be walls, a panel as blue as the sky is the sky between houses.
    """
    parts, count = _regions(still)
    size = np.bincount(parts.ravel(), minlength=count) / parts.size
    large = size >= _SPECK
    large[0] = False
    unseen = _share(parts, distant, count) <= _SEEN
    low = unseen & (_share(parts, ~_upper(still.shape), count) > _STRAY)
    wall = low | (unseen & (size < _PANEL))
    sky = _from_above(parts, large & ~wall)
    if not sky.any():
        wall = low | (wall & (_share(parts, azure, count) < 0.5))
        sky = _from_above(parts, large & ~wall)
    return sky, (large & wall)[parts]


def _blue_and_unmatched(looks: Bools, azure: Bools, matched: Bools) -> Bools:
    """Of the regions that look like sky, large blue ones that are matched in part.

    In a plain blue sky, the matcher copies the parallax of trees and lamps, and exposure may differ between
    the cameras, so that the other tests fail.
    """
    parts, count = _regions(looks)
    size = np.bincount(parts.ravel(), minlength=count) / parts.size
    chosen = (size >= _PANEL) & (_share(parts, azure, count) > 0.5)
    chosen &= _share(parts, matched, count) < _MATCHED
    chosen[0] = False
    blue: Bools = chosen[parts]
    return blue


def _of_one_colour(
    image: Image, still: Bools, sky: Bools, walls: Bools, distant: Bools
) -> tuple[Bools, Bools]:
    """The regions that are sky and those that are walls, judged again by the colour of the surest sky.

    Its colour changes slowly over the image. Sky in quite another colour is a distant tower or the roof of a
    bus; a wall in the same colour at the upper edge is sky that is too small or too plain to match.
    """
    parts, count = _regions(still)
    size = np.bincount(parts[sky], minlength=count)
    if not size.any():
        return sky, walls
    seen = _share(parts, distant, count) > _SEEN
    surest = int(np.argmax(size * np.where(seen, 1.0, _UNSEEN)))
    off = _off_model(image, parts == surest)
    same, similar = (_share(parts, off < times, count) > _AGREE for times in (_SAME, _SIMILAR))
    large = np.bincount(parts.ravel(), minlength=count) > _TINY * parts.size
    low = _share(parts, ~_upper(still.shape), count) > _STRAY
    chosen = np.where(size > 0, similar, same & large & ~low & np.isin(np.arange(count), parts[0]))
    chosen[[0, surest]] = False, True
    ours: Bools = chosen[parts]
    return ours, (walls | sky) & ~ours


def _off_model(image: Image, sky: Bools) -> npt.NDArray[np.float32]:
    """How far each pixel is from the sky's colour there, as a multiple of what the sky itself varies by.

    The colour is a quadratic in x and y, fitted to the sky so that clouds count less.
    """
    height, width = sky.shape
    y, x = np.indices(sky.shape, np.float32)
    y, x = y / height - 0.5, x / width - 0.5
    basis = np.stack((np.ones_like(x), x, y, x * y, x * x, y * y), axis=-1)
    level = image.astype(np.float32)
    step = max(int(sky.sum()) // _FITTED, 1)
    design, values = basis[sky][::step].astype(np.float64), level[sky][::step].astype(np.float64)
    ridge = _RIDGE * len(design) * np.diag((0.0, 1, 1, 4, 4, 4))
    weight: Floats = np.ones(len(design))
    fit: Floats = np.zeros((basis.shape[-1], 3))
    for _ in range(_ROUNDS):
        weighted = design * weight[:, None]
        fit = np.asarray(np.linalg.solve(weighted.T @ design + ridge, weighted.T @ values), np.float64)
        residual = np.abs(values - design @ fit).max(axis=1)
        weight = 1 / (1 + (residual / max(float(np.median(residual)), 2.0)) ** 2)
    spread = 1.5 * np.median(np.abs(values - design @ fit), axis=0)
    off = np.abs(level - basis @ fit.astype(np.float32)) / (_OFF + _WITHIN * spread)
    return np.asarray(off.max(axis=2), np.float32)


def _regions(kind: Bools) -> tuple[Parts, int]:
    count, parts = cv2.connectedComponents(kind.astype(np.uint8), connectivity=4)
    return np.asarray(parts, np.int32), count


def _share(parts: Parts, kind: Bools, count: int) -> npt.NDArray[np.float64]:
    """The fraction of each region's pixels for which `kind` is true."""
    share: npt.NDArray[np.float64] = np.bincount(parts[kind], minlength=count) / np.maximum(
        np.bincount(parts.ravel(), minlength=count), 1
    )
    return share


def _from_above(parts: Parts, chosen: Bools) -> Bools:
    """The chosen regions that reach the upper edge."""
    above = np.unique(parts[0])
    return np.isin(parts, above[(above > 0) & chosen[above]])


def _flood(image: Image, sky: Bools, walls: Bools, likely: Bools) -> Bools:
    """The sky, with the likely pixels that connect to it more smoothly than to a wall (watershed)."""
    painted = np.where(likely[..., None], image, _BARRIER).astype(np.uint8)  # flooded last, and removed below
    markers = cv2.watershed(painted, np.where(sky, 1, np.where(walls, 2, 0)).astype(np.int32))
    parts, count = _regions(sky | (likely & (markers == 1)))
    joined = _share(parts, sky, count) > 0
    joined[0] = False
    flooded: Bools = joined[parts]
    return flooded


def _of_its_colour(image: Image, sky: Bools, likely: Bools) -> Bools:
    """The sky, with pixels beside it (as between leaves) and regions at the upper edge that have its colours.

    A colour is the sky's if it is more frequent in the sky than elsewhere above the horizon.
    """
    bins = (image // (256 // _BINS)).astype(np.int32)
    colour = (bins[..., 0] * _BINS + bins[..., 1]) * _BINS + bins[..., 2]
    upper = _upper(sky.shape)
    ours, others = (_how_many(colour, kind) for kind in (sky, upper & ~sky))
    alike = upper & (ours > np.maximum(others, _FEW))
    parts, count = _regions(likely & ~sky)
    return sky | (alike & _as_beside(image, sky)) | _from_above(parts, _share(parts, alike, count) > _ALIKE)


def _as_beside(image: Image, sky: Bools) -> Bools:
    """Pixels beside the sky that differ little from the sky there; a pale post differs from a blue sky."""
    weight = _mean_around(sky.astype(np.float32))
    level, kept = image.astype(np.float32), sky[..., None].astype(np.float32)
    share = np.maximum(weight, 1e-6)[..., None]
    mean = _mean_around(level * kept) / share
    deviation = np.sqrt(np.maximum(_mean_around(level**2 * kept) / share - mean**2, 0))
    close: Bools = (np.abs(level - mean) < _OFF + _WITHIN * deviation).all(axis=2) & (weight > _BESIDE)
    return close


def _mean_around(field: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The mean over a neighbourhood as large as the crown of a tree."""
    return np.asarray(cv2.blur(field, (_CROWN, _CROWN)), np.float32)


def _upper(shape: tuple[int, ...]) -> Bools:
    """The upper half of an image, which is above the horizon of a level camera."""
    return np.broadcast_to((np.arange(shape[0]) < shape[0] // 2)[:, None], shape)


def _how_many(colour: npt.NDArray[np.int32], kind: Bools) -> npt.NDArray[np.float32]:
    """For each pixel, the approximate number of pixels with its colour for which `kind` is true."""
    counts = np.bincount(colour[kind], minlength=_BINS**3).reshape(_BINS, _BINS, _BINS)
    smoothed: npt.NDArray[np.float32] = gaussian_filter(counts.astype(np.float32), 1.0)
    return smoothed.ravel()[colour]


def _mostly(kind: Bools, share: float = _SHARE) -> Bools:
    """Where `kind` is true for a sufficient fraction of the pixels nearby."""
    near: Bools = cv2.blur(kind.astype(np.float32), (_AROUND, _AROUND)) > share
    return near


def _local_level(value: Image, sky: Bools) -> Map:
    """Nine tenths of the mean brightness of the sky nearby; infinite where there is none."""
    weight = cv2.blur(sky.astype(np.float32), (15, 15))
    light = cv2.blur(np.where(sky, value, 0).astype(np.float32), (15, 15))
    return np.where(weight > 0, 0.9 * light / np.maximum(weight, 1e-6), np.inf).astype(np.float32)
