"""Details: what is known about each condition besides numbers, as named plain data.

`scores.details` maps a name (`reliability`, `roc`, `lost`, `quality`, or one of a plugin) to plain data by
condition. Metrics declare what they tell (`metrics.metric.detail`); everything is saved and loaded alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stormproof.metrics.inputs import MetricInput
from stormproof.metrics.metric import DETAILS, Weights
from stormproof.results.interval import draws, interval_around

_INFINITE = {"Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no such numbers


def make_details(cell: MetricInput, weights: Weights, units: int) -> dict[str, Any]:
    """What the metrics of an input tell about one condition, by name; `units` are the independent ones."""
    kinds = cell.kinds
    told = ((one.name, one.function(cell, weights)) for one in DETAILS.values() if one.given in kinds)
    return {name: _plain(value, units) for name, value in told if value is not None}


def _plain(value: Any, units: int) -> Any:
    """Lists instead of arrays; replicates × anything becomes its first row, and its interval."""
    if isinstance(value, dict):
        entries: dict[str, Any] = {}
        for key, entry in value.items():
            entries[key] = _plain(entry, units)
            if isinstance(entry, np.ndarray) and entry.ndim == 2:
                drawn = entry.T if len(entry) > 1 else ()
                sure = [interval_around(float(each[0]), draws(each), images=units) for each in drawn]
                entries |= {"low": [each.low for each in sure], "high": [each.high for each in sure]}
        return entries
    if isinstance(value, np.ndarray):
        return (value[0] if value.ndim == 2 else value).tolist()
    return [_plain(entry, units) for entry in value] if isinstance(value, list | tuple) else value


def to_json(value: Any) -> Any:
    """Plain data as JSON can hold it: null for NaN, a word for what is infinite."""
    if isinstance(value, dict):
        return {key: to_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def from_json(value: Any) -> Any:
    """The plain data that `to_json` was given.

    >>> from_json(to_json({"fppi": [0.5, math.inf, math.nan], "id": "a"}))
    {'fppi': [0.5, inf, nan], 'id': 'a'}
    """
    if isinstance(value, dict):
        return {key: from_json(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [from_json(entry) for entry in value]
    return math.nan if value is None else _INFINITE.get(value, value) if isinstance(value, str) else value
