"""Object masks from annotation files: polygons, run lengths and maps of instance ids.

hotcoco fills polygons, pixel for pixel as pycocotools does (docs/adr/0016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hotcoco import mask as coco

from stormproof.core.errors import InvalidTruth
from stormproof.core.sample import RLE, Floats

# hotcoco steps along a polygon's edges with 32-bit numbers, and keeps every step.
FARTHEST = 100_000  # pixels from the image's corner
LONGEST = 4_000_000  # pixels of outline


def segmentation_mask(segmentation: object, height: int, width: int) -> RLE:
    """The mask of a COCO `segmentation`: a list of polygons, or run lengths, compressed or not."""
    if isinstance(segmentation, Mapping):
        size = segmentation.get("size")
        if not isinstance(size, Sequence) or [*size] != [height, width]:
            raise InvalidTruth(f"RLE size {size} is not the image's {[height, width]} (height, width).")
        counts = segmentation.get("counts")
        if isinstance(counts, str | bytes):
            return RLE((height, width), decompress(counts))
        return RLE((height, width), _runs(counts))
    if isinstance(segmentation, list) and segmentation:
        return polygon_mask(segmentation, height, width)
    raise InvalidTruth(f"segmentation is {segmentation!r:.80}; it must be a list of polygons or an RLE.")


def polygon_mask(polygons: Sequence[Any], height: int, width: int) -> RLE:
    """The union of polygons, each x1 y1 x2 y2 … in pixels."""
    rings = [polygon_ring(polygon) for polygon in polygons]
    merged = coco.merge(coco.frPyObjects([ring.tolist() for ring in rings], height, width))
    return RLE((height, width), decompress(merged["counts"]))


def polygon_ring(polygon: object) -> Floats:
    """The coordinates x1 y1 x2 y2 … of one polygon, checked."""
    try:
        ring = np.asarray(polygon, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidTruth(f"polygon {polygon!r:.80} is not a list of numbers.") from None
    # hotcoco, like pycocotools, would read four numbers as a box.
    if ring.ndim != 1 or ring.size < 6 or ring.size % 2:
        raise InvalidTruth(f"polygon {polygon!r:.80} must have at least 3 points, as x1, y1, x2, y2, ….")
    farthest = np.abs(ring).max()
    if farthest <= FARTHEST and ring.size * farthest <= LONGEST:  # at once, as a dataset has a million
        return ring
    if not np.isfinite(ring).all():
        raise InvalidTruth(f"polygon {polygon!r:.80} contains a number that is not finite.")
    if farthest > FARTHEST:
        raise InvalidTruth(f"polygon {polygon!r:.80} reaches beyond ±{FARTHEST:,} pixels.")
    steps = np.abs(np.diff(ring.reshape(-1, 2), axis=0, append=ring[None, :2])).max(axis=1)
    if steps.sum() > LONGEST:
        raise InvalidTruth(f"polygon {polygon!r:.80} is {steps.sum():,.0f} pixels long; at most {LONGEST:,}.")
    return ring


def _runs(counts: object) -> npt.NDArray[np.uint32]:
    try:
        runs = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        runs = np.array(np.nan)
    sound = np.isfinite(runs) & (runs >= 0) & (runs < 1 << 32) & (runs == np.floor(runs))
    if runs.ndim != 1 or not sound.all():
        raise InvalidTruth(
            f"RLE counts {counts!r:.80} must be run lengths from 0 to 2³² − 1 or a compressed string."
        )
    return runs.astype(np.uint32)


def decompress(text: str | bytes) -> npt.NDArray[np.uint32]:
    """Run lengths from COCO's compressed string.

    Every run is a signed number in base 32, least digit first, one character per digit (48 + digit, + 32 if
    more digits follow); from the fourth on, runs are stored as the difference to the run before the last.

    >>> decompress("52203").tolist()
    [5, 2, 2, 2, 5]
    """
    try:
        characters = text if isinstance(text, bytes) else text.encode("ascii")
    except UnicodeEncodeError:
        raise InvalidTruth(f"compressed RLE {text!r:.80} contains characters that no RLE has.") from None
    digits = np.frombuffer(characters, np.uint8).astype(np.int64) - 48
    if digits.size == 0 or (digits < 0).any() or (digits > 63).any() or digits[-1] & 32:
        raise InvalidTruth(
            f"compressed RLE {text!r:.80} is truncated or contains characters that no RLE has."
        )
    ends = np.flatnonzero((digits & 32) == 0)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > 12:  # 60 bits, the most an int64 can shift
        raise InvalidTruth(f"compressed RLE {text!r:.80} contains a run longer than any image.")
    place = 5 * (np.arange(digits.size) - np.repeat(starts, lengths))
    runs = np.add.reduceat((digits & 31) << place, starts)
    runs -= np.where(digits[ends] & 16, np.int64(1) << (5 * lengths), 0)
    runs[1::2] = np.cumsum(runs[1::2])
    runs[2::2] = np.cumsum(runs[2::2])
    if (runs < 0).any() or (runs >= 1 << 32).any():
        raise InvalidTruth(f"compressed RLE {text!r:.80} decodes to a run that is negative or too long.")
    return runs.astype(np.uint32)


def compress(runs: Sequence[int], size: Sequence[int]) -> str:
    """COCO's compressed string of run lengths; `size` is the mask's height and width.

    >>> compress([5, 2, 2, 2, 5], (4, 4))
    '52203'
    """
    packed = coco.frPyObjects({"size": [*size], "counts": [*runs]}, *size)
    return str(packed["counts"], "ascii")


def masks_by_id(numbers: npt.NDArray[np.integer[Any]]) -> dict[int, RLE]:
    """The mask of every id in a map of instance ids, in one pass over the map."""
    height, width = numbers.shape
    flat = np.ravel(numbers, order="F")
    starts = np.concatenate(([0], np.flatnonzero(flat[1:] != flat[:-1]) + 1))
    ends = np.concatenate((starts[1:], [flat.size]))
    owners = flat[starts]
    masks = {}
    for number in np.unique(owners):
        mine = owners == number
        edges = np.stack([starts[mine], ends[mine]], axis=1).ravel()
        counts = np.diff(np.concatenate(([0], edges, [flat.size])))
        counts = counts[:-1] if counts[-1] == 0 else counts
        masks[int(number)] = RLE((height, width), counts.astype(np.uint32))
    return masks


def mask_box(mask: RLE) -> tuple[float, float, float, float]:
    """The smallest box x1 y1 x2 y2 around a mask; x2 and y2 are the far edges of its last pixels.

    >>> mask_box(RLE.from_mask(np.array([[0, 0, 0], [0, 1, 1]])))
    (1.0, 1.0, 3.0, 2.0)
    """
    ends = np.cumsum(mask.counts.astype(np.int64))[1::2]
    lengths = mask.counts[1::2].astype(np.int64)
    starts, ends = (ends - lengths)[lengths > 0], ends[lengths > 0]
    if not starts.size:
        return 0.0, 0.0, 0.0, 0.0
    height = mask.size[0]
    left, right = starts // height, (ends - 1) // height
    # A run that continues into the next column touches both the bottom and the top row.
    whole = bool((left != right).any())
    top = 0 if whole else int((starts % height).min())
    bottom = height if whole else int(((ends - 1) % height).max()) + 1
    return float(left.min()), float(top), float(right.max() + 1), float(bottom)


def mask_boxes(masks: Sequence[RLE]) -> Floats:
    """The boxes of masks, n×4."""
    return np.array([mask_box(mask) for mask in masks], np.float64).reshape(-1, 4)
