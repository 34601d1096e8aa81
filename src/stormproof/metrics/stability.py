"""Stability over clips: objects that flicker, fragmented tracks, jittering boxes.

An object is found if a detection of its class overlaps it by IoU 0.5 or more and reaches the score threshold
that is best on the clean images (`metrics.lrp`). A track is an object in consecutive frames in which it
counts. The measures are those of Zhang & Wang 2016 ("On the stability of video detection and tracking",
arXiv:1611.06467), except that flicker is their fragment error pooled over pairs of frames instead of averaged
over tracks, and jitter is their centre error from frame to frame instead of about the track's mean.

A pair of frames has the weight of the later frame, a track that of its last frame. The frames of a clip share
one weight, so intervals are over clips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.randomness import Frame
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import Calibrated, Measure, Scored, Weights, metric, ratio, weighted_ratios

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Objects

_CALIBRATED: dict[str, Calibrated] = {
    "flicker": ((1, 50),),
    "fragments": ((80, 50),),
    "jitter": ((8, 50),),
    "centre error": ((8, 300),),
    "found": ((8, 50), (80, 300)),
}


def steps(frames: Sequence[Frame | None]) -> tuple[Ints, Ints]:
    """The number of each image's clip, −1 for none, and the image's place in the clip, by time.

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
    """A row for each object in each frame of a clip, sorted by track, then by time.

    `image` is the number of the frame; `found` says whether the object was found in it. `error` compares the
    detected box with the true one: offsets of the centre in widths and heights of the true box, √ of the
    ratio of areas, and ratio of the aspect ratios. `follows` says whether the row before is the same object
    one frame earlier.
    """

    image: Ints
    found: Bools
    error: Floats
    follows: Bools
    images: int

    @classmethod
    def of(cls, objects: Objects) -> Tracks:
        truth, located = objects.truth, objects.located
        counting = np.flatnonzero(~truth.excused)
        clip, step = truth.clip[truth.image[counting]], truth.step[truth.image[counting]]
        track = truth.track[counting]
        followed = np.flatnonzero((clip >= 0) & (track >= 0))
        order = followed[np.lexsort((step[followed], track[followed], clip[followed]))]
        same = (np.diff(clip[order]) == 0) & (np.diff(track[order]) == 0) & (np.diff(step[order]) == 1)
        is_found = located.found_at >= objects.tuning.located.thresholds(len(truth.ids))[located.truth_label]
        return cls(
            truth.image[counting][order],
            is_found[order],
            _relative(located.found_box[order], truth.boxes[counting][order]),
            np.concatenate([[False], same])[: len(order)],
            len(truth.ids),
        )

    def per_image(self, rows: Bools, values: Floats | None = None) -> Ints | Floats:
        """The number of the given rows in each image, or the sum of their values."""
        added = None if values is None else values[rows]
        return np.bincount(self.image[rows], added, minlength=self.images)

    @property
    def last(self) -> Bools:
        """The last row of every track of two frames or more."""
        last: Bools = self.follows & ~np.concatenate([self.follows[1:], [False]])
        return last

    def spread(self, column: int) -> Floats:
        """For each row, the standard deviation of an error over the frames in which its track was found; NaN
        if these are fewer than two."""
        track = np.cumsum(~self.follows) - 1
        count = np.bincount(track, self.found)
        values = np.where(self.found, self.error[:, column], 0.0)
        mean = ratio(np.bincount(track, values), count)
        squares = np.where(self.found, (values - mean[track]) ** 2, 0.0)
        variance = ratio(np.bincount(track, squares), count)
        return np.where(count[track] > 1, np.sqrt(variance[track]), np.nan)


def _relative(boxes: Floats, truth: Floats) -> Floats:
    """Boxes relative to the true ones, as in `Tracks.error`."""
    sides, true_sides = boxes[:, 2:] - boxes[:, :2], np.maximum(truth[:, 2:] - truth[:, :2], 1e-9)
    apart = ((boxes[:, 2:] + boxes[:, :2]) - (truth[:, 2:] + truth[:, :2])) / 2
    wide, tall = (sides / true_sides).T
    scale, aspect = np.sqrt(wide * tall), wide / np.maximum(tall, 1e-9)
    return np.concatenate([apart / true_sides, scale[:, None], aspect[:, None]], axis=1)


@metric(
    "clips",
    Measure(
        "flicker",
        "changes between found and missed, per object and pair of frames",
        "clips",
        False,
        share=True,
    ),
    Measure("fragments", "interruptions of a found object, per track", "clips", False, False),
    Measure("jitter", "shift of a box against its object, in box sides per frame", "clips", False),
    Measure("centre error", "deviation of a track's centres, in box sides", "clips", False),
    Measure("shape error", "deviation of a track's scale and aspect ratio", "clips", False),
    Measure("found", "share of objects found, at the clean threshold", "clips", share=True),
    calibrated=_CALIBRATED,
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
    """Rows in which an object is found again: missed in the frame before, but found earlier in its track."""
    missed_before = np.concatenate([[False], ~tracks.found[:-1]])
    times: Ints = np.cumsum(tracks.found) - tracks.found  # rows found before this one, in all tracks
    start = np.maximum.accumulate(np.where(tracks.follows, 0, times))  # the same where the track starts
    again: Bools = tracks.found & tracks.follows & missed_before & (times > start)
    return again
