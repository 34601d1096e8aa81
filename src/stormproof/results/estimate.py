"""mPC estimated from part of the grid: all clean images, and every other condition on its share of them.

A score on few images is noisy, and average precision on few images is too high. The clean run shows both:
`c`, the clean score on a condition's own share; `E`, the clean score to be expected on shares of that size;
and `P`, the clean score on all images. A condition whose share has the score `a` is taken to have,
on all images,

    a − b · (c − E) − (E − P) · g(a) / g(E)

The first correction is for a share that is easier or harder than others: a condition that keeps half of the
clean score moves half as much with it (b). The second is for the size of shares: how much too high a score
is depends on the score, for the AP of a class at a threshold about as g(x) = √x · (1 − x)^1.25, for the IoU
of a class as √x. These curves are empirical (docs/adr/0029, docs/confidence.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, StoreError
from stormproof.core.sample import Floats, Ints
from stormproof.core.text import json_safe
from stormproof.metrics.inputs import MetricInput
from stormproof.metrics.metric import Measure, Metric, mean_of_known, measures, ratio
from stormproof.results.aggregates import aggregates, mean_of
from stormproof.results.interval import THIS_SET, Interval
from stormproof.results.run import IncompleteRun, Run
from stormproof.results.scores import ScoreOptions
from stormproof.results.scoring import measured_inputs
from stormproof.results.sets import ConditionSet, sets_of
from stormproof.results.store.seal import read_sealed, write_sealed
from stormproof.results.stored import Number, scores_key
from stormproof.results.weights import REPLICATES, poisson_weights, require_replicates

ESTIMATE = "estimate.json"
_Z = 1.959963984540054  # the normal distribution's 97.5 % point
_STEP = 1.15  # the next share is this much larger than the spread so far requires: spread is uncertain
_ORDERS = 10  # random orders of the images, cut into shares to find the expected clean score of a share
_CURVE_SE = 0.12  # relative error of the second correction: 7 % on average over full runs, 11 % at most
_NO_BEND = 0.02  # g below which the clean score says nothing about the curve


class EstimatedCondition(NamedTuple):
    """One condition of a run and the metric of the measure that is estimated."""

    content: MetricInput
    metric: Metric
    measure: Measure

    def parts(self, images: Ints, weights: npt.NDArray[Any]) -> Floats:
        """The values whose mean is the score on some images, by replicate: AP by class and threshold, or IoU
        by class.

        NaN if a replicate has no object of a class; `weights` are replicates × the chosen images.
        """
        scored = self.metric.score(self.content.of_images(images), weights)
        values = scored.parts.get(self.measure.name)
        return scored.numbers[self.measure.name][:, None] if values is None else values


@dataclass(frozen=True, slots=True)
class Estimate:
    """mPC and its parts; `shares` is the mean number of images that a corrupted condition was run on."""

    mpc: Interval
    rpc: Interval
    clean: float
    images: int
    shares: float
    inferences: float  # as a fraction of the full grid's
    by_corruption: Mapping[str, Interval]


def score(condition: EstimatedCondition, images: Ints, weights: npt.NDArray[Any]) -> Floats:
    """The score under a condition on some of its images, by replicate."""
    return mean_of_known(condition.parts(images, weights))


def estimate(
    clean: EstimatedCondition, corrupted: Mapping[str, EstimatedCondition], shares: Mapping[str, Ints], *,
    over: ConditionSet, images: int, weights: npt.NDArray[Any],
) -> Estimate:  # fmt: skip
    """The estimate over a set of conditions, from its conditions on their shares of the `images`.

    The interval is for the value that the full grid would give; its width goes to 0 as the shares become the
    whole set.
    """
    one = np.ones((1, images))  # the first row is the estimate itself
    # Every condition draws anew. Shares are spread evenly over the images, so an image that is hard under all
    # conditions is in as many as any other and moves no estimate; drawn together, it would seem to.
    own = {
        text: np.concatenate([one, np.roll(weights, k, axis=0)])[:, shares[text]]
        for k, text in enumerate(over.covered)
    }
    parts = [corrupted[text].parts(shares[text], own[text]) for text in over.covered]
    a = np.stack([mean_of_known(values) for values in parts])
    c = np.stack([score(clean, shares[text], own[text]) for text in over.covered])
    whole = float(score(clean, np.arange(images), one)[0])
    mean_share = float(np.mean([len(shares[text]) for text in over.covered]))
    expected, bend = _clean_on_shares(clean, images, round(mean_share))
    follows = np.clip(ratio(_levels(over.covered, a[:, 0]), np.array(expected)), 0, 1)
    follows = np.nan_to_num(follows)  # nothing can follow a clean score of 0
    moved = a - follows[:, None] * (c - expected)
    bends = np.stack([_bend(values[0], clean.measure.fading) for values in parts])
    # A clean score of nearly 0 or 1 bends nothing: then a score is as much too high as it follows that one.
    shape = bends / bend if bend > _NO_BEND else follows
    too_high = (expected - whole) * shape
    left = max(0.0, 1 - mean_share / images)  # the part of the finite set that is not seen yet

    def interval(row: Floats) -> Interval:
        seen = round(mean_share * np.count_nonzero(row))
        return _interval(_mean(row, moved), float(_mean(row, too_high)), left, seen)

    mean, by_corruption = _coefficients(clean.measure.name, over)
    mpc = interval(mean)
    base = whole or float("nan")  # nothing is relative to a clean score of 0
    rpc = Interval(mpc.estimate / base, mpc.low / base, mpc.high / base, mpc.se / base)
    done = (1 + len(corrupted) * mean_share / images) / (1 + len(corrupted))
    return Estimate(
        mpc, rpc, whole, images, mean_share, done,
        {name: interval(row) for name, row in by_corruption.items()},
    )  # fmt: skip


def _coefficients(measure: str, over: ConditionSet) -> tuple[Floats, dict[str, Floats]]:
    """The weight of each covered condition in the mean, and in the mean of its corruption.

    They are the aggregates of a grid whose replicates are 1 in one condition and 0 elsewhere.
    """
    units = dict(zip(over.covered, np.eye(len(over.covered)), strict=True))
    totals = aggregates(measure, units, over)
    return mean_of(totals), dict(totals.get("by_corruption") or totals.get("CE") or {})


def estimate_run(run: Run, *, replicates: int = REPLICATES) -> Estimate:
    """The estimate from the cells that a run has, with all clean ones; it is stored in the run folder."""
    run.check()
    over = sets_of(run.conditions, run.record.benchmark)[0]
    place = {index: k for k, index in enumerate(run.readable)}
    shares = {text: np.array(sorted(place[i] for i in run.held[text]), np.int64) for text in over.covered}
    if "clean" in run.missing or any(not len(share) for share in shares.values()):
        raise IncompleteRun(run, "score")
    corrupted = estimated_conditions(run, ("clean", *over.covered))
    clean = corrupted.pop("clean")
    weights = poisson_weights(run.units, replicates=require_replicates(replicates))
    made = estimate(clean, corrupted, shares, over=over, images=len(run.readable), weights=weights)
    content = {
        "key": scores_key(run, ScoreOptions()), "estimate": True, "target": THIS_SET,
        "model": run.record.model.name, "dataset": run.record.dataset.name,
        "measure": clean.measure.name, "mean": over.mean_name, **asdict(made),
    }  # fmt: skip
    write_sealed(run.folder / ESTIMATE, json_safe(content))
    return made


def read_estimate(run: Run) -> dict[str, Any] | None:
    """The estimate that `estimate_run` stored; None if the run is not an estimate.

    An estimate from other predictions, or from another version of a metric, is refused.
    """
    path = run.folder / ESTIMATE
    if run.record.quota is None or not path.exists():
        return None
    again = shlex.join(["stormproof", "score", str(run.folder)])
    content = read_sealed(path, again)
    try:
        _StoredEstimate.model_validate(content)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise StoreError(f"{path} is damaged: {where} is wrong. Make it again with: {again}") from None
    if content["key"] != scores_key(run, ScoreOptions()):
        raise StoreError(f"{path} is out of date: the run has changed since. Make it again with: {again}")
    return content


class _StoredInterval(BaseModel):
    model_config = ConfigDict(extra="forbid")
    estimate: Number
    low: Number
    high: Number
    se: Number
    optimism: Number
    images: int | None
    replicates: int | None
    trials: Number


class _StoredEstimate(BaseModel):
    """What `estimate_run` writes."""

    model_config = ConfigDict(extra="forbid")
    key: str
    estimate: bool
    target: str
    model: str
    dataset: str
    measure: str
    mean: str
    mpc: _StoredInterval
    rpc: _StoredInterval
    clean: Number
    images: int
    shares: float
    inferences: float
    by_corruption: dict[str, _StoredInterval]


def estimated_conditions(run: Run, conditions: Sequence[str]) -> dict[str, EstimatedCondition]:
    """Each condition of a run with the metric of its headline measure, to be scored on any of its images."""
    every: dict[str, EstimatedCondition] = {}
    for text, content, metric, measure in measured_inputs(run, None, conditions):
        every.setdefault(text, EstimatedCondition(content, metric, measures()[measure]))
    if not every:
        raise InvalidOption(f"{run.name}: the run has no {run.record.metric}, so it cannot be estimated.")
    return every


def next_share(estimate: Estimate, precision: float) -> int:
    """How many images of a condition make an interval of ± `precision`; the spread falls as 1/√share."""
    now, n, half = estimate.shares, estimate.images, estimate.mpc.reach
    if n - now < 1 or half <= precision:
        return round(now)
    if np.isnan(half):  # too few images to say anything
        return min(n, 2 * round(now))
    # var ∝ (1 − m/n)/m, solved for m
    wanted = (precision / half) ** 2 * (1 / now - 1 / n) / _STEP
    return min(n, max(round(now) + 2, int(np.ceil(1 / (wanted + 1 / n)))))


@lru_cache(maxsize=1)  # one run is estimated at a time, maybe from many shares of the same size
def _clean_on_shares(clean: EstimatedCondition, images: int, size: int) -> tuple[float, float]:
    """The clean score expected on shares of a size, and its g, both as means over random shares."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(images) for _ in range(_ORDERS if size < images else 1)]
    shares = [np.sort(order[k : k + size]) for order in orders for k in range(0, images - size + 1, size)]
    parts = np.stack([clean.parts(share, np.ones((1, size)))[0] for share in shares])
    scores, bends = mean_of_known(parts), _bend(parts, clean.measure.fading)
    return float(mean_of_known(scores)), float(mean_of_known(bends))


def _bend(parts: Floats, fading: float) -> Floats:
    """The mean of g over the values that a score averages."""
    return mean_of_known(np.sqrt(parts) * (1 - parts) ** fading)


def _levels(conditions: tuple[str, ...], scores: Floats) -> Floats:
    """Each score predicted from the means of its corruption and severity, without its own noise."""
    parsed = [Condition.parse(text) for text in conditions]

    def means(keys: list[Any]) -> Floats:
        return np.array([mean_of_known(scores[[key == other for other in keys]]) for key in keys])

    corruption, severity = means([one.corruption for one in parsed]), means([one.severity for one in parsed])
    levels: Floats = np.nan_to_num(ratio(corruption * severity, mean_of_known(scores)))
    return levels


def _mean(row: Floats, values: Floats) -> Floats:
    """The mean over conditions weighted by `row`; conditions without a value in a replicate are skipped."""
    known = ~np.isnan(values)
    mean: Floats = ratio(row @ np.where(known, values, 0.0), row @ known)
    return mean


def _interval(values: Floats, too_high: float, left: float, seen: int) -> Interval:
    """The interval of the first value minus `too_high`; the other values are its replicates.

    `seen` is the number of images seen, summed over conditions: where they are all alike, or nearly all are 0
    or 1, those of the part `left` that was not seen may still differ.
    """
    theta, replicates = float(values[0]) - too_high, values[1:]
    finite = replicates[np.isfinite(replicates)]
    spread = finite.var(ddof=1) if len(finite) > 1 else np.nan
    se = float(np.sqrt(spread * left + (_CURVE_SE * too_high) ** 2))
    drawn = float(np.sqrt(spread))
    unseen = Interval(theta, theta - _Z * drawn, theta + _Z * drawn, drawn, images=seen).of_fraction()
    below, above = (max(_Z * se, left * far) for far in (theta - unseen.low, unseen.high - theta))
    return Interval(theta, theta - below, theta + above, se)
