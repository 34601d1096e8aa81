"""A score over a plane of two quantities, estimated from few points with its uncertainty.

Between the points, a Gaussian process (scikit-learn; Matérn 5/2 kernel, a length for each axis) estimates the
score that these images would have. Its variance is raised by what leaving each point out shows to be missing
(Rasmussen & Williams 2006, 5.4.2). The images themselves are a sample: the estimate is linear in the scores,
so the same estimate from the scores on every random half of the images gives the spread over new images,
with the correlation between points, which were all scored on the same images.

The requirement is met with confidence where the lower bound is on its good side, and missed with confidence
where the upper bound is not. That holds for the whole plane at once: bounds reach as many standard errors as
the largest deviation towards the threshold, anywhere on the plane, exceeds in 5 % of simulated surfaces
(French & Sain 2013).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from stormproof.core.errors import MissingExtra
from stormproof.core.loading import install_extra
from stormproof.core.sample import Floats, Ints
from stormproof.results.interval import LEADING, LEVEL

MET, OPEN, MISSED = 1, 0, -1  # zones of the plane
GRID = 41  # estimates along each axis
_COARSE = 21  # of them when the reach of bounds is simulated
_LENGTHS = (0.15, 2.0)  # of the kernel, in shares of an axis
_NOISE = (1e-6, 0.2)  # variance of a score that neighbours do not explain, as a share of all variance
_JITTER = 1e-10
_SURFACES = 2000  # simulated to find how far bounds reach
_APART = 0.02  # of an axis; points closer than this say nothing new
_ENOUGH = 0.25  # of the images' standard error: interpolation that adds less than this is precise enough
_SEED = 7


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Scores at some places of the plane, whose axes run from 0 to 1.

    `halves` has a column for each random half of the images. `optimism` is how much too high each score is,
    `unseen` what its standard error lacks because rare images were not seen. `units` counts images or clips.
    """

    places: Floats  # points × 2
    scores: Floats
    halves: Floats  # points × halves
    optimism: Floats
    unseen: Floats
    units: int

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True, eq=False)
class SurfaceEstimate:
    """The surface at some places.

    With a chance of 95 %, no place whose `low` is above the threshold is truly below it, and none whose
    `high` is below it is truly above.
    """

    score: Floats
    low: Floats
    high: Floats
    threshold: float

    @property
    def zones(self) -> Ints:
        """MET, MISSED or OPEN at each place; higher is better."""
        met, missed = self.low >= self.threshold, self.high < self.threshold
        return np.where(met, MET, np.where(missed, MISSED, OPEN))


@dataclass(frozen=True, eq=False)
class Surface:
    """A Gaussian process through points; `signal` is its kernel, `noise` the variance of a score itself."""

    points: Points
    signal: Any
    noise: float
    center: float
    scale: float

    @cached_property
    def _factor(self) -> Any:
        count = len(self.points)
        return cho_factor(self.signal(self.points.places) + (self.noise + _JITTER) * np.eye(count))

    def _weights(self, places: Floats) -> Floats:
        """How much each score counts at each place, beside their mean."""
        weights: Floats = cho_solve(self._factor, self.signal(self.points.places, places)).T
        return weights

    def _smooth(self, values: Floats, weights: Floats) -> Floats:
        """The estimate from other values at the same points; a column for each column of values."""
        middle = values.mean(axis=0)
        smooth: Floats = middle + weights @ (values - middle)
        return smooth

    @cached_property
    def _left_out(self) -> float:
        """How much larger than expected errors at points left out are, as a factor of variance; 1 or more."""
        inverse = cho_solve(self._factor, np.eye(len(self.points)))
        errors = inverse @ ((self.points.scores - self.center) / self.scale)
        return max(1.0, float(np.mean(errors**2 / np.diag(inverse))))

    def mean(self, places: Floats) -> Floats:
        """The estimate at some places."""
        return self._smooth(self.points.scores, self._weights(places))

    def between(self, places: Floats) -> Floats:
        """The standard error of interpolation."""
        across = self.signal(self.points.places, places)
        left = self.signal.diag(places) - np.sum(across * cho_solve(self._factor, across), axis=0)
        spread: Floats = self.scale * np.sqrt(self._left_out * np.maximum(left, 0.0))
        return spread

    def _covariance(self, places: Floats) -> Floats:
        across = self.signal(self.points.places, places)
        left_over: Floats = self.signal(places) - across.T @ cho_solve(self._factor, across)
        return self.scale**2 * self._left_out * left_over

    def _deviations(self, weights: Floats) -> Floats:
        """How the estimate from every half deviates from their mean: places × halves."""
        made = self._smooth(self.points.halves, weights)
        deviations: Floats = made - made.mean(axis=1, keepdims=True)
        return deviations

    def reach(self, threshold: float) -> float:
        """How many standard errors bounds reach, so that they hold for the whole plane at once."""
        places = grid_places(_COARSE)
        towards = np.where(self.mean(places) >= threshold, -1.0, 1.0)
        weights, covariance = self._weights(places), self._covariance(places)
        deviations, unseen = self._deviations(weights), self._unseen(weights)
        total = _total(np.sqrt(np.maximum(np.diag(covariance), 0.0)), deviations, unseen)
        halves, rng = deviations.shape[1], np.random.default_rng(_SEED)
        freedom = min(self.points.units, halves) - 1
        drawn = deviations @ rng.standard_normal((halves, _SURFACES)) / np.sqrt(halves - 1)
        drawn += unseen[:, None] * rng.standard_normal(_SURFACES)
        drawn *= np.sqrt(freedom / rng.chisquare(freedom, _SURFACES))  # Student's t: the spread is estimated
        drawn += _normal(covariance, rng)
        largest = (drawn * (towards / total)[:, None]).max(axis=0)
        return float(np.quantile(largest, LEVEL))

    def _unseen(self, weights: Floats) -> Floats:
        """What standard errors lack: rare images would move all points the same way."""
        return np.abs(self._smooth(self.points.unseen, weights))

    def estimate(self, places: Floats, threshold: float) -> SurfaceEstimate:
        """The surface at some places, with bounds for a threshold that hold for the whole plane."""
        weights = self._weights(places)
        score = self._smooth(self.points.scores, weights)
        optimism = self._smooth(self.points.optimism, weights)
        total = _total(self.between(places), self._deviations(weights), self._unseen(weights))
        reach = self.reach(threshold) * total
        low = score - reach - np.maximum(optimism, 0.0)
        high = score + reach + np.maximum(-optimism, 0.0)
        return SurfaceEstimate(score, low, high, threshold)

    def following(self, candidates: Floats, threshold: float, count: int) -> Floats:
        """The places to score next: where the estimate is uncertain and close to the threshold (the straddle
        heuristic of Bryan et al. 2005), each as if those before it had been scored as estimated.

        None if more places would not narrow the band: then only more images would.
        """
        chosen: list[Floats] = []
        surface = self
        for _ in range(count):
            weights = surface._weights(candidates)
            score = surface._smooth(surface.points.scores, weights)
            between = surface.between(candidates)
            images = surface._deviations(weights).std(axis=1, ddof=1)
            near = np.abs(score - threshold) <= 2 * np.hypot(between, images)
            gaps = np.abs(candidates[:, None] - surface.points.places[None]).max(axis=2).min(axis=1)
            useful = near & (between > _ENOUGH * images) & (gaps >= _APART)
            if not useful.any():
                break
            urgency = np.where(useful, 2 * between - np.abs(score - threshold), -np.inf)
            best = int(np.argmax(urgency))
            chosen.append(candidates[best])
            surface = surface._as_if_scored(candidates[best], weights[best])
        return np.array(chosen).reshape(-1, 2)

    def _as_if_scored(self, place: Floats, weights: Floats) -> Surface:
        """With one more point, whose scores are as estimated."""
        p = self.points

        def grown(values: Floats) -> Floats:
            return np.concatenate([values, self._smooth(values, weights[None])])

        points = replace(
            p, places=np.vstack([p.places, place]), scores=grown(p.scores), halves=grown(p.halves),
            optimism=grown(p.optimism), unseen=grown(p.unseen),
        )  # fmt: skip
        return Surface(points, self.signal, self.noise, self.center, self.scale)


def _total(between: Floats, deviations: Floats, unseen: Floats) -> Floats:
    """The standard error from interpolation and images together."""
    total: Floats = np.sqrt(between**2 + deviations.var(axis=1, ddof=1) + unseen**2)
    return np.maximum(total, 1e-9)


def _normal(covariance: Floats, rng: np.random.Generator) -> Floats:
    """Draws from a normal distribution around 0: places × surfaces."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > values.max() * 1e-9
    spread = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
    drawn: Floats = spread @ rng.standard_normal((int(kept.sum()), _SURFACES))
    return drawn


def fit_surface(points: Points) -> Surface:
    """The Gaussian process whose lengths and variances make the scores most likely."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    except ImportError:
        raise MissingExtra("scikit-learn", install_extra("map")) from None
    center, scale = float(points.scores.mean()), float(points.scores.std()) or 1e-3
    kernel = ConstantKernel(1.0, (0.1, 30.0)) * Matern([0.5, 0.5], [_LENGTHS, _LENGTHS], nu=2.5)
    fitted = GaussianProcessRegressor(
        kernel + WhiteKernel(1e-3, _NOISE), alpha=_JITTER, n_restarts_optimizer=4, random_state=_SEED
    )
    with warnings.catch_warnings():  # a length at its bound is an answer
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(points.places, (points.scores - center) / scale)
    return Surface(points, fitted.kernel_.k1, float(fitted.kernel_.k2.noise_level), center, scale)


def grid_places(count: int = GRID) -> Floats:
    """The places of a square grid, the first axis varying fastest."""
    along = np.linspace(0, 1, count)
    x, y = np.meshgrid(along, along)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def first_places(columns_only: bool) -> Floats:
    """The places to begin with: three by three, or three columns."""
    ends = (0.0, 0.5, 1.0)
    return np.array([[x, y] for y in ((0.5,) if columns_only else ends) for x in ends])


def halves_of(drawn: Sequence[Floats]) -> Floats:
    """The halves of every point's draws (`results.interval.draws`), as a table; unknown ones are the mean."""
    table = np.stack([each[LEADING:] for each in drawn])
    means = np.nanmean(np.where(np.isfinite(table), table, np.nan), axis=1, keepdims=True)
    return np.where(np.isfinite(table), table, means)
