"""Moving truth with the image: boxes, masks, label maps and depth follow one displacement field.

A field (dy, dx) says where each output pixel is read from: output (y, x) shows input (y + dy, x + dx).
Label maps, masks and depth read the nearest input pixel of the same field. Where the input lies outside the
frame, truth is unknown: label maps hold their ignore value there, maps of segments 0 and depth NaN, and masks
end.

A box becomes the box of its moved mask or, without a mask, the extent of its moved outline within the frame.
Objects that leave the frame entirely are dropped. Areas scale with the mask (or box). Further arrays of
objects, such as key points, move as their form declares (`core.forms`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.forms import FORMS, Motion
from stormproof.core.sample import RLE, Context, Floats, Instances, Sample, Truth
from stormproof.imaging import Field

_SAMPLES = 33  # points along each side of a box
_STEPS = 20  # Newton steps at most; four suffice for a smooth field
_FLAT = 0.05  # a pixel counts as folded if the field scales its area by less
_FOLDED = 0.01  # a field counts as folded if a larger share of its pixels is
_AROUND = 1.5  # px: the deviation of the surroundings of a point in a folded field
_SHOWN = 0.01  # sum of weights below which no pixel shows the point

Index = npt.NDArray[np.int64]


def move_sample(sample: Sample, dy: Field, dx: Field) -> Sample:
    """The sample with truth, depth and disparity moved; image, camera and right image are unchanged."""
    truth, context = sample.truth, sample.context
    known = (truth.instances, context.depth, context.disparity)
    if not truth.maps and all(part is None for part in known):
        return sample
    index = imaging.sources(dy, dx)
    return dataclasses.replace(
        sample, truth=_move_truth(truth, dy, dx, index), context=_move_context(context, index)
    )


def move_truth(truth: Truth, dy: Field, dx: Field) -> Truth:
    """The truth about an image, moved."""
    return _move_truth(truth, dy, dx, imaging.sources(dy, dx))


def _move_truth(truth: Truth, dy: Field, dx: Field, index: Index) -> Truth:
    objects = None if truth.instances is None else move_instances(truth.instances, dy, dx, index)
    moved = truth.change_maps(lambda plane, outside: move_map(plane, index, outside))
    return dataclasses.replace(moved, instances=objects)


def move_map(labels: npt.NDArray[Any], index: Index, outside: float) -> npt.NDArray[Any]:
    """A map with one value per pixel, read at `index`; `outside` where there is no source."""
    return np.append(np.ravel(labels), labels.dtype.type(outside))[index]


def move_instances(objects: Instances, dy: Field, dx: Field, index: Index) -> Instances:
    """The objects moved; those that have left the image are dropped."""
    boxes = move_boxes(objects.boxes, dy, dx)
    masks = None
    before, after = ((each[:, 2:] - each[:, :2]).prod(axis=1) for each in (objects.boxes, boxes))
    if objects.masks is not None:
        moved = [move_map(mask.to_mask(), index, False) for mask in objects.masks]
        masks = tuple(RLE.from_mask(mask) for mask in moved)
        from stormproof.core.masks import mask_boxes  # here: corrupting images does not need hotcoco

        boxes = mask_boxes(masks)
        before = np.array([mask.area for mask in objects.masks], np.float64)
        after = np.array([mask.area for mask in masks], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        area = np.where(before > 0, objects.area * after / before, after)
    sides = boxes[:, 2:] - boxes[:, :2]
    data = _move_data(objects.data, dy, dx)
    moved_objects = dataclasses.replace(objects, boxes=boxes, masks=masks, area=area, sides=sides, data=data)
    return select(moved_objects, np.flatnonzero(after > 0))


def _move_data(data: Mapping[str, Floats], dy: Field, dx: Field) -> dict[str, Floats]:
    def move(points: Floats) -> Floats:
        return move_points(points.reshape(-1, 2), dy, dx).reshape(points.shape)

    motion = Motion((dy.shape[0], dy.shape[1]), move)
    moves = {name: FORMS[name].move for name in data}
    return {
        name: values if (own := moves[name]) is None else own(values, motion) for name, values in data.items()
    }


def select(objects: Instances, keep: npt.NDArray[np.int64]) -> Instances:
    """Some of the objects, in the order given."""
    arrays = {
        item.name: getattr(objects, item.name)[keep]
        for item in dataclasses.fields(objects)
        if item.name not in ("masks", "data")
    }
    masks = None if objects.masks is None else tuple(objects.masks[int(i)] for i in keep)
    data = {name: values[keep] for name, values in objects.data.items()}
    return Instances(masks=masks, data=data, **arrays)


def move_boxes(boxes: Floats, dy: Field, dx: Field) -> Floats:
    """The extent of each box's moved outline, clipped to the frame; where the field folds the image, the
    extent of all pixels that show any of the box."""
    if not len(boxes):
        return boxes.reshape(-1, 4).copy()
    if _folds(dy, dx):
        return _shown_extents(boxes, dy, dx)
    along = np.linspace(0, 1, _SAMPLES)
    ends = np.zeros_like(along), np.ones_like(along)
    u = np.concatenate((along, along, ends[0], ends[1]))
    v = np.concatenate((ends[0], ends[1], along, along))
    x = boxes[:, :1] + u * (boxes[:, 2:3] - boxes[:, :1])
    y = boxes[:, 1:2] + v * (boxes[:, 3:4] - boxes[:, 1:2])
    moved = move_points(np.stack((x, y), axis=-1).reshape(-1, 2), dy, dx).reshape(len(boxes), -1, 2)
    height, width = dy.shape
    extent = np.concatenate((moved.min(axis=1), moved.max(axis=1)), axis=1)
    cut: Floats = np.clip(extent, 0, (width, height, width, height))
    return cut


def move_points(points: Floats, dy: Field, dx: Field) -> Floats:
    """Where points (x, y) of the input, such as a polygon's corners, appear in the output.

    A field says where output pixels come from; the inverse solves p + d(p) = q by Newton's method. Pixel (0,
    0) spans 0 to 1, so its centre is the point (0.5, 0.5).

    Where a field folds the image, as elastic waves do that are about as short as they are high, a point
    appears several times or nowhere. It then moves by the mean displacement of the pixels that show its
    surroundings.
    """
    target = np.asarray(points, np.float64) - 0.5
    return (_mean_places(target, dy, dx) if _folds(dy, dx) else _inverse(target, dy, dx)) + 0.5


def _folds(dy: Field, dx: Field) -> bool:
    """Whether a field turns a part of the image over, or nearly so."""
    if min(dy.shape) < 2:
        return False
    (down_y, across_y), (down_x, across_x) = np.gradient(dy), np.gradient(dx)
    return bool(((1 + across_x) * (1 + down_y) - down_x * across_y < _FLAT).mean() > _FOLDED)


def _mean_places(target: Floats, dy: Field, dx: Field) -> Floats:
    places = target - _displacement(target, dy, dx)  # where no pixel shows a point
    for k, (rows, columns) in enumerate(_windows(np.hstack((target, target)), dy, dx)):
        across, down = dx[rows, columns], dy[rows, columns]
        i, j = np.ogrid[rows, columns]
        away = (j + across - target[k, 0]) ** 2 + (i + down - target[k, 1]) ** 2
        near = away < (3 * _AROUND) ** 2
        weight = np.exp(away[near] / (-2 * _AROUND**2))
        if (total := weight.sum()) > _SHOWN:
            places[k] = target[k] - np.array((weight @ across[near], weight @ down[near])) / total
    return places


def _shown_extents(boxes: Floats, dy: Field, dx: Field) -> Floats:
    extents = np.zeros((len(boxes), 4))
    for k, (rows, columns) in enumerate(_windows(boxes, dy, dx)):
        i, j = np.ogrid[rows, columns]
        x, y = j + dx[rows, columns] + 0.5, i + dy[rows, columns] + 0.5
        x1, y1, x2, y2 = boxes[k]
        down, across = np.nonzero((x > x1) & (x < x2) & (y > y1) & (y < y2))
        if len(down):
            left, top = columns.start, rows.start
            ends = across.max() + 1, down.max() + 1
            extents[k] = np.add((across.min(), down.min(), *ends), (left, top, left, top))
    return extents


def _windows(boxes: Floats, dy: Field, dx: Field) -> Iterator[tuple[slice, slice]]:
    """For each box, the rows and columns of the pixels that may show it or its surroundings."""
    reach = [float(np.abs(field).max()) + 3 * _AROUND for field in (dx, dy)]
    known = np.nan_to_num(boxes)
    first, last = np.floor(known[:, :2] - reach), np.ceil(known[:, 2:] + reach) + 1
    for corners in np.clip(np.hstack((first, last)), 0, (*dy.shape[::-1],) * 2).astype(int).tolist():
        left, top, right, bottom = corners
        yield slice(top, bottom), slice(left, right)


def _inverse(target: Floats, dy: Field, dx: Field) -> Floats:
    place = target.copy()
    for _ in range(_STEPS):
        error = target - place - _displacement(place, dy, dx)
        if not len(error) or np.abs(error).max() < 1e-3:
            return place
        place += _newton(place, error, dy, dx)
    lost = np.abs(error).max(axis=1) > 0.05  # in one of few folds
    place[lost] = _mean_places(target[lost], dy, dx)
    return place


def _newton(place: Floats, error: Floats, dy: Field, dx: Field) -> Floats:
    """The step that would remove the error if the field were linear."""
    step = np.array([0.5, 0.0])
    across = _displacement(place + step, dy, dx) - _displacement(place - step, dy, dx)
    down = _displacement(place + step[::-1], dy, dx) - _displacement(place - step[::-1], dy, dx)
    a, b, c, d = 1 + across[:, 0], down[:, 0], across[:, 1], 1 + down[:, 1]
    determinant = np.maximum(a * d - b * c, _FLAT)
    x = (d * error[:, 0] - b * error[:, 1]) / determinant
    y = (a * error[:, 1] - c * error[:, 0]) / determinant
    return np.stack((x, y), axis=-1)


def _displacement(place: Floats, dy: Field, dx: Field) -> Floats:
    """(dx, dy) at points between pixel centres, bilinear; outside the frame as at its edge."""
    height, width = dy.shape
    x, y = np.clip(place[:, 0], 0, width - 1), np.clip(place[:, 1], 0, height - 1)
    j = np.minimum(x.astype(np.int64), max(width - 2, 0))
    i = np.minimum(y.astype(np.int64), max(height - 2, 0))
    g, f = x - j, y - i
    j1, i1 = np.minimum(j + 1, width - 1), np.minimum(i + 1, height - 1)
    weights = ((1 - f) * (1 - g), (1 - f) * g, f * (1 - g), f * g)
    corners = ((i, j), (i, j1), (i1, j), (i1, j1))
    parts = [sum(w * field[at] for w, at in zip(weights, corners, strict=True)) for field in (dx, dy)]
    return np.stack(parts, axis=-1)


def _move_context(context: Context, index: Index) -> Context:
    depth, disparity = (
        None if values is None else move_map(values, index, np.nan)
        for values in (context.depth, context.disparity)
    )
    return dataclasses.replace(context, depth=depth, disparity=disparity)
