"""Key points and oriented boxes in the rows of COCO files and results.

"keypoints": [x1, y1, v1, x2, …]                COCO's own
"obb" or "rbox": [cx, cy, width, height, angle]  in radians, as hotcoco and Ultralytics write them
"poly": [x1, y1, …, x4, y4]                      the corners, as Ultralytics writes them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.joints import COCO_JOINTS, usual_sigmas
from stormproof.core.oriented import rotated_corners, upright
from stormproof.core.sample import Floats
from stormproof.datasets.annotations import is_number, raise_all

FIELDS = ("keypoints", "obb", "rbox", "poly")  # of rows
_LENGTHS = {"obb": 5, "rbox": 5, "poly": 8}


def point_data(points: Floats, sigmas: Floats | None = None) -> dict[str, Floats]:
    """Key points n×k×3 as truth carries them, with the σ of each; points that an object lacks are NaN."""
    table = np.full(points.shape[:2], np.nan)
    for k, count in enumerate((~np.isnan(points[..., 0])).sum(axis=1).tolist()):
        table[k, :count] = usual_sigmas(count) if sigmas is None else sigmas[:count]
    return {"points": points, "sigmas": table}


def read_data(rows: Sequence[Mapping[str, Any]], path: Path) -> dict[str, Floats]:
    """The arrays of objects that rows hold: `points` (n×k×3) or `corners` (n×4×2), if any row has some.

    A row without points has none labelled. Where rows have fewer points than others, the rest are NaN.
    """
    named = {name: [row for row in rows if row.get(name)] for name in FIELDS}
    raise_all(list(_problems(rows, path)))
    data: dict[str, Floats] = {}
    if named["keypoints"]:
        most = max(len(row["keypoints"]) for row in named["keypoints"]) // 3
        points = np.zeros((len(rows), most, 3))
        for k, row in enumerate(rows):
            given = np.asarray(row.get("keypoints") or np.zeros(3 * most), np.float64).reshape(-1, 3)
            points[k, : len(given)], points[k, len(given) :] = given, np.nan
        data["points"] = points
    for name in ("obb", "rbox", "poly"):
        if named[name]:
            values = np.array([row[name] for row in rows], np.float64)
            data["corners"] = values.reshape(-1, 4, 2) if name == "poly" else rotated_corners(values)
    return data


def _problems(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[DatasetError]:
    present = {name for name in _LENGTHS if any(name in row for row in rows)}
    for i, row in enumerate(rows):
        where = f"annotation {row['id']}" if "id" in row else f"result {i}"
        points = row.get("keypoints")
        if points is not None and not (_numbers(points) and len(points) % 3 == 0):
            yield DatasetError(
                path, f"keypoints {points!r:.60} must be x, y, v of each point, finite.", where
            )
        for name in present:
            values, length = row.get(name), _LENGTHS[name]
            if not (_numbers(values) and len(values) == length):
                said = "has no" if values is None else f"{values!r:.60} is no"
                yield DatasetError(
                    path, f"{said} {name} of {length} finite numbers, but other rows have.", where
                )


def _numbers(value: Any) -> TypeGuard[Sequence[float]]:
    return isinstance(value, list | tuple) and all(map(is_number, value))


def read_sigmas(given: str, points: int) -> Floats:
    """σ of each point, from the text of an option such as [0.1,0.05]."""
    try:
        values = np.array([float(word) for word in given.strip("[]").split(",")])
    except ValueError:
        values = np.zeros(0)
    if len(values) != points or not ((values > 0) & np.isfinite(values)).all():
        raise InvalidOption(f"sigmas={given}: give {points} numbers above 0, one for each key point.")
    return values


def boxes_of(data: Mapping[str, Floats]) -> Floats:
    """The boxes x1 y1 x2 y2 around corners, or around points, for rows that state none."""
    if "corners" in data:
        return upright(data["corners"])
    places = data["points"][..., :2]
    return np.hstack([np.nanmin(places, axis=1), np.nanmax(places, axis=1)])


def row_fields(data: Mapping[str, Floats], k: int) -> dict[str, Any]:
    """What the row of object k holds beside its box."""
    fields: dict[str, Any] = {}
    if "points" in data:
        own = data["points"][k]
        own = own[~np.isnan(own).any(axis=1)]
        fields = {"keypoints": own.ravel().tolist(), "num_keypoints": int((own[:, 2] > 0).sum())}
    if "corners" in data:
        fields["poly"] = data["corners"][k].ravel().tolist()
    return fields


def category_fields(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What categories state about the points of their objects."""
    most = max((len(row.get("keypoints", ())) for row in rows), default=0) // 3
    if not most:
        return {}
    names = COCO_JOINTS if most == len(COCO_JOINTS) else tuple(f"point {k}" for k in range(1, most + 1))
    return {"keypoints": list(names), "skeleton": []}
