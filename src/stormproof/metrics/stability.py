"""How steady detections are over a clip: objects that flicker, tracks in fragments, boxes that jitter.

An object is found if a detection of its class overlaps it by IoU 0.5 or more and scores at least the
threshold that is best on the clean images (`metrics.lrp`). A track is an object over consecutive frames in
which it counts. The measures are those of Zhang & Wang 2016 ("On the stability of video detection and
tracking", arXiv:1611.06467): flicker is their fragment error, pooled over pairs of frames instead of averaged
over tracks, and jitter is their centre error from frame to frame instead of about the track's mean.

A pair of frames counts with the later one's weight, a track with that of its last frame. Frames of a clip
share their weight, so intervals are over clips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.randomness import Frame
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import Measure, Scored, Weights, metric, weighted_ratios

if TYPE_CHECKING:
    from stormproof.metrics.cells import Objects


def steps(frames: Sequence[Frame | None]) -> tuple[Ints, Ints]:
    """The number of each image's clip, −1 if it has none, and its place in the clip by time.

    >>> [column.tolist() for column in steps([Frame("a", "x", 0.2), None, Frame("b", "x", 0.1)])]
    [[0, -1, 0], [1, -1, 0]]
    """
    clip, step = np.full(len(frames), -1), np.full(len(frames), -1)
    members: dict[str, list[int]] = {}
    for place, frame in enumerate(frames):
        if frame is not None:
            members.setdefault(frame.sequence, []).append(place)
    for number, places in enumerate(members.values()):
        ordered = sorted(places, key=lambda place: frames[place].time)  # type: ignore[union-attr]
        clip[ordered], step[ordered] = number, np.arange(len(ordered))
    return clip, step


@dataclass(frozen=True, eq=False)
class Tracks:
    """Objects in the frames of clips, track by track and in order of time.

    `image` is the place of the frame; `found` says whether the object was found there. `error` is how its box
    lies on the true one: offsets of the centre in widths and heights of the true box, √ of the ratio of
    areas, and ratio of the aspect ratios; NaN if it was not found. `follows` says whether the row before is
    the same object one frame earlier.
    """

    image: Ints
    found: Bools
    error: Floats
    follows: Bools
    images: int

    @classmethod
    def of(cls, objects: Objects) -> Tracks:
        truth, located = objects.truth, objects.located
        tuned = located if objects.tuned is None else objects.tuned.located
        counting = np.flatnonzero(~truth.excused)
        clip, step = truth.clip[truth.image[counting]], truth.step[truth.image[counting]]
        track = truth.track[counting]
        followed = np.flatnonzero((clip >= 0) & (track >= 0))
        order = followed[np.lexsort((step[followed], track[followed], clip[followed]))]
        same = (np.diff(clip[order]) == 0) & (np.diff(track[order]) == 0) & (np.diff(step[order]) == 1)
        found = located.found_at >= tuned.thresholds(len(truth.ids))[located.truth_label]
        return cls(
            truth.image[counting][order],
            found[order],
            _relative(located.found_box[order], truth.boxes[counting][order]),
            np.concatenate([[False], same])[: len(order)],
            len(truth.ids),
        )

    def per_image(self, rows: Ints | Bools, values: Floats | None = None) -> Floats:
        """Sums over the rows of each image."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        added = None if values is None else values[chosen]
        return np.bincount(self.image[chosen], added, minlength=self.images).astype(np.float64)

    @property
    def last(self) -> Bools:
        """The last row of every track of two frames or more."""
        last: Bools = self.follows & ~np.concatenate([self.follows[1:], [False]])
        return last

    @property
    def number(self) -> Ints:
        """The track of each row."""
        return np.cumsum(~self.follows) - 1

    def spread(self, column: int) -> Floats:
        """The standard deviation of an error over the frames of a track in which the object was found; NaN
        for tracks found less than twice."""
        number, kept = self.number, self.found
        count = _summed(number, kept.astype(np.float64))
        values = np.where(kept, self.error[:, column], 0.0)
        mean = _over(_summed(number, values), count)
        variance = _over(_summed(number, np.where(kept, (values - mean[number]) ** 2, 0.0)), count)
        return np.where(count[number] > 1, np.sqrt(variance[number]), np.nan)


def _summed(number: Ints, values: Floats) -> Floats:
    """Sums of values by number, in float64."""
    return np.asarray(np.bincount(number, values, minlength=len(number)), np.float64)


def _over(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _relative(boxes: Floats, truth: Floats) -> Floats:
    """Boxes relative to the true ones, as `Tracks.error`."""
    sides, true_sides = boxes[:, 2:] - boxes[:, :2], np.maximum(truth[:, 2:] - truth[:, :2], 1e-9)
    apart = ((boxes[:, 2:] + boxes[:, :2]) - (truth[:, 2:] + truth[:, :2])) / 2
    wide, tall = (sides / true_sides).T
    scale, aspect = np.sqrt(wide * tall), wide / np.maximum(tall, 1e-9)
    return np.concatenate([apart / true_sides, scale[:, None], aspect[:, None]], axis=1)


@metric(
    "clips",
    Measure("flicker", "changes between found and missed, per object and pair of frames", "clips", False),
    Measure("fragments", "interruptions of a found object, per track", "clips", False, False),
    Measure("jitter", "a found box's shift against its object, in box sides per frame", "clips", False),
    Measure("centre error", "deviation of a track's centres, in box sides", "clips", False),
    Measure("shape error", "deviation of a track's scale and aspect ratio", "clips", False),
    Measure("found", "objects found, at the clean threshold", "clips"),
)
def _stability(objects: Objects, weights: Weights) -> Scored:
    tracks = Tracks.of(objects)
    pairs, before = tracks.follows, np.concatenate([[False], tracks.found[:-1]])
    both = pairs & before & tracks.found
    moved = np.diff(tracks.error[:, :2], axis=0, prepend=np.zeros((1, 2)))
    shift = np.where(both, np.hypot(*np.nan_to_num(moved).T), 0.0)
    spreads = [tracks.spread(column) for column in range(4)]
    centre, shape = spreads[0] + spreads[1], spreads[2] + spreads[3]
    steady = tracks.last & np.isfinite(centre)
    columns = {
        "flicker": (tracks.per_image(pairs & (before != tracks.found)), tracks.per_image(pairs)),
        "fragments": (tracks.per_image(_again(tracks)), tracks.per_image(tracks.last)),
        "jitter": (tracks.per_image(both, shift), tracks.per_image(both)),
        "centre error": (tracks.per_image(steady, centre), tracks.per_image(steady)),
        "shape error": (tracks.per_image(steady, shape), tracks.per_image(steady)),
        "found": (tracks.per_image(tracks.found), tracks.per_image(np.ones(len(tracks.found), bool))),
    }
    return Scored(weighted_ratios(weights, columns))


def _again(tracks: Tracks) -> Bools:
    """Rows in which an object is found again: missed the frame before, but found earlier in its track."""
    missed_before = np.concatenate([[False], ~tracks.found[:-1]])
    times: Ints = np.cumsum(tracks.found) - tracks.found  # rows found so far, in all tracks
    start = np.maximum.accumulate(np.where(tracks.follows, 0, times))
    found: Bools = tracks.found & tracks.follows & missed_before & (times > start)
    return found
