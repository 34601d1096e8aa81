"""Key points as a form of truth and predictions: n×k×3 of x, y and visibility or confidence, and their σ.

In truth, the third number is COCO's flag: 0 not labelled, 1 labelled but hidden, 2 visible. In a prediction,
it is a confidence. `sigmas` (n×k) belong to truth: how far annotators disagree about each joint. A point that
an object lacks, where others have more, is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.errors import InvalidOption
from stormproof.core.forms import CocoFields, Form, Motion, YoloLines, form
from stormproof.core.joints import COCO_JOINTS, usual_sigmas
from stormproof.datasets.object_data import are_numbers

if TYPE_CHECKING:
    from stormproof.core.sample import Bools, Floats
    from stormproof.datasets.annotation_checks import Finding, Inspected
    from stormproof.metrics.keypoints import Posed

# The bones between COCO's joints, as chains of joints.
_CHAINS = ((15, 13, 11, 12, 14, 16), (11, 5, 6, 12), (9, 7, 5), (6, 8, 10), (3, 1, 0, 2, 4))
_LEAST = 0.3  # confidence of a predicted joint that is drawn
_BODY = 0.53  # of its box: the area that Ultralytics' validation assumes for a person


def _move(points: Floats, motion: Motion) -> Floats:
    """Points go with the pixels; one that leaves the image is no longer labelled."""
    moved = points.copy()
    known = points[..., 2] > 0
    moved[known, :2] = motion.points(points[known, :2])
    height, width = motion.size
    inside = ((moved[..., :2] >= 0) & (moved[..., :2] <= (width, height))).all(axis=-1)
    moved[known & ~inside] = 0
    return moved


def _lines(points: Floats) -> Iterator[Floats]:
    """A skeleton for COCO's joints, crosses for other points; points that are not labelled are left out."""
    drawn = points[:, 2] >= _LEAST
    if len(points) == len(COCO_JOINTS):
        for chain in _CHAINS:
            for first, second in pairwise(chain):
                if drawn[first] and drawn[second]:
                    yield points[[first, second], :2]
        return
    for x, y, _ in points[drawn]:
        yield np.array([[x - 2, y], [x + 2, y]])
        yield np.array([[x, y - 2], [x, y + 2]])


def _collect(reader: Any) -> Iterator[tuple[str, Posed]]:
    from stormproof.metrics.keypoints import Posed  # late: a run needs no input of metrics

    for text, truth, found in reader.objects(forms=("points", "sigmas")):
        yield text, Posed(truth, found, reader.rule)


def _boxes(points: Floats) -> Floats:
    places = points[..., :2]
    return np.hstack([np.nanmin(places, axis=1), np.nanmax(places, axis=1)])


def with_confidence(points: Floats) -> Floats:
    """n×k×3 of x, y and confidence; points without one (n×k×2) are certain."""
    if points.ndim == 3 and points.shape[2] == 2:
        return np.concatenate([points, np.ones_like(points[..., :1])], axis=2)
    return points


def _with_sigmas(points: Floats, options: Mapping[str, Any]) -> dict[str, Floats]:
    """σ of each point: those that a reader was given, as the text [0.1,0.05], or the usual ones."""
    own = _read_sigmas(options["sigmas"], points.shape[1]) if "sigmas" in options else None
    table = np.full(points.shape[:2], np.nan)
    for k, count in enumerate((~np.isnan(points[..., 0])).sum(axis=1).tolist()):
        table[k, :count] = usual_sigmas(count) if own is None else own[:count]
    return {"sigmas": table}


def _read_sigmas(given: str, points: int) -> Floats:
    try:
        values = np.array([float(word) for word in given.strip("[]").split(",")])
    except ValueError:
        values = np.zeros(0)
    if len(values) != points or not ((values > 0) & np.isfinite(values)).all():
        raise InvalidOption(f"sigmas={given}: give {points} numbers above 0, one for each key point.")
    return values


def _row_problem(row: Mapping[str, Any], present: Sequence[str]) -> str:
    points = row.get("keypoints")
    if points is None or (are_numbers(points) and len(points) % 3 == 0):
        return ""
    return f"keypoints {points!r:.60} must be x, y, v of each point, finite."


def _read_rows(rows: Sequence[Mapping[str, Any]]) -> Floats:
    """The points of all rows. A row without any has none labelled."""
    most = _most_points(rows)
    points = np.zeros((len(rows), most, 3))
    for k, row in enumerate(rows):
        given = np.asarray(row.get("keypoints") or np.zeros(3 * most), np.float64).reshape(-1, 3)
        points[k, : len(given)], points[k, len(given) :] = given, np.nan
    return points


def _most_points(rows: Sequence[Mapping[str, Any]]) -> int:
    return max(len(row.get("keypoints") or ()) for row in rows) // 3


def _row_fields(points: Floats) -> dict[str, Any]:
    own = points[~np.isnan(points).any(axis=1)]
    return {"keypoints": own.ravel().tolist(), "num_keypoints": int((own[:, 2] > 0).sum())}


def _category_fields(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    most = _most_points(rows)
    names = COCO_JOINTS if most == len(COCO_JOINTS) else tuple(f"point {k}" for k in range(1, most + 1))
    return {"keypoints": list(names), "skeleton": []}


def _shape_problem(stated: Any) -> str:
    """What is wrong with a `kpt_shape`: the number of key points, and of numbers of each, 2 or 3."""
    whole = isinstance(stated, list) and [*map(type, stated)] == [int, int]
    if whole and stated[0] > 0 and stated[1] in (2, 3):
        return ""
    return f"kpt_shape is {stated!r:.60}; it must be a number of key points and 2 or 3, as [17, 3]."


def _are_places(shape: Sequence[int]) -> Bools:
    return np.tile(np.arange(shape[1]) < 2, shape[0])


def _read_line(values: Floats, shape: Sequence[int]) -> Floats:
    """n×k×3 of x, y and visibility; without flags, a point at (0, 0) is not labelled."""
    given = values.reshape(-1, *shape)
    shown = given[..., 2] if shape[1] == 3 else np.where((given[..., :2] > 0).any(axis=-1), 2.0, 0.0)
    return np.concatenate([given[..., :2], shown[..., None]], axis=-1)


def _body_areas(boxes: Floats, points: Floats) -> Floats:
    areas: Floats = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) * _BODY
    return areas


def _of_result(result: Any) -> dict[str, Any]:
    points = getattr(result, "keypoints", None)
    return {} if points is None else {"keypoints": points.data}


def _check_labels(seen: Inspected) -> Iterator[Finding]:
    """Key points outside their image or far from their box, and flags that mean nothing."""
    from stormproof.datasets.annotation_checks import PIXEL, Finding, Gravity, report_marked

    points = seen.data("points")
    if points is None or not points.size:
        return
    flags, places = points[..., 2], points[..., :2]
    labelled = flags > 0
    wrong = ~np.isin(flags, (0, 1, 2)) & ~np.isnan(flags)
    if wrong.any():
        value = f"{flags[wrong][0]:g}"
        what = f"objects have key points with a flag such as {value}, not 0 (unlabelled), 1 (hidden) or 2"
        yield report_marked(seen, np.asarray(wrong.any(axis=1)), f"{what} (visible)")
    if not labelled.any():
        yield Finding(
            Gravity.problem, f"None of {len(points)} objects has a labelled key point: check the flags."
        )
        return
    past = ((places < -PIXEL) | (places > seen.limits[:, None] + PIXEL)).any(axis=-1) & labelled
    low, side = seen.boxes[:, None, :2], (seen.boxes[:, 2:] - seen.boxes[:, :2])[:, None]
    far = ((places < low - side) | (places > low + 2 * side)).any(axis=-1) & labelled & ~past
    unlabelled = (flags == 0) & (places != 0).any(axis=-1)
    for mark, what in (
        (unlabelled, "key points with a place but the flag 0, which do not count"),
        (past, "labelled key points outside their image"),
        (far, "labelled key points far from their box"),
    ):  # fmt: skip
        if mark.any():
            yield report_marked(seen, np.asarray(mark.any(axis=1)), f"objects have {what}")


SIGMAS = form(Form("sigmas", "spreads of key points", shape=(-1,)), __name__)
POINTS = form(
    Form(
        "points", "key points", shape=(-1, 3), move=_move, lines=_lines, boxes=_boxes,
        with_truth=_with_sigmas,
        coco=CocoFields(("keypoints",), _row_problem, _read_rows, _row_fields, _category_fields),
        yolo=YoloLines(
            "kpt_shape", boxed=True, problem=_shape_problem, state=lambda points: [points.shape[1], 3],
            count=prod, places=_are_places, read=_read_line, write=np.nan_to_num, area=_body_areas,
        ),
        # As torchvision and transformers name them; the second stand in the first.
        keys={"keypoints": with_confidence, "keypoints_scores": None},
        of_result=_of_result, check_labels=_check_labels, inputs=("keypoints", "joints"), collect=_collect,
    ),
    __name__,
)  # fmt: skip
