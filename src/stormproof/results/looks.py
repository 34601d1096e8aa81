"""Looks: how often a growing run was judged, and how strict each verdict must be.

Whoever checks a run at 50 images, again at 100, and so on, passes a model that is just not good enough in up
to 10 % of the cases instead of 2.5 %: every look is another chance. So the chance of a wrong verdict is spent
as the images come in (Lan & DeMets 1983): while a run has the share t of its dataset's images, t² of it (Kim
& DeMets 1987), and all of it at the end. A single look at the whole dataset is judged as if there were no
others to come. The level of a look follows from the looks before it, since its images include theirs.
Whoever means to judge fewer images than the dataset has plans their number: t is then the share of those.

Looks are stored in the run folder, by the digest of the requirements: other requirements spend anew.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from stormproof.core.errors import StoreError
from stormproof.core.files import sweep
from stormproof.core.sample import Floats
from stormproof.results.interval import WRONG
from stormproof.results.requirements import Requirement
from stormproof.results.store.lock import held_lock
from stormproof.results.store.seal import json_digest, read_sealed, write_sealed

LOOKS = "looks.json"
_LOCK = ".looks.lock"
_LEAST_LEVEL = 1e-9  # of a look at next to nothing: no interval is infinite
_STEPS = 4  # of the grid in a standard deviation of what one look adds to the one before
_FEWEST_POINTS, _MOST_POINTS = 400, 1200  # of the grid
_FAR = 6.0  # standard deviations below 0 that the grid reaches
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class Look(BaseModel):
    """A verdict on a run: how many images it had, and the digest of the requirements."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    images: Annotated[int, Field(ge=1, le=1 << 24)]
    requirements: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class _StoredLooks(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    looks: list[Look]


@dataclass(frozen=True, slots=True)
class Spent:
    """A look and the level that it is judged at; `before` are the images of the looks before it, `of` those
    of the dataset, `planned` those that the requirements plan."""

    images: int
    of: int
    before: tuple[int, ...] = ()
    level: float = WRONG
    planned: int | None = None

    @property
    def number(self) -> int:
        return len(self.before) + 1

    @property
    def full(self) -> int:
        """How many images may spend the whole chance of a wrong verdict: the dataset's, or as planned."""
        return _full(self.of, self.planned)

    @property
    def words(self) -> str:
        """What was planned and looked at before, and what that costs; empty for a single look at the whole
        dataset."""
        if not self.before and self.images >= self.of and self.full >= self.of:
            return ""
        plan = "" if self.full >= self.of else f", {self.full} planned"
        if not self.before and self.images >= self.full:
            return f"First look at these requirements: {self.images} of {self.of} images{plan}."
        earlier = f", after looks at {', '.join(map(str, self.before))}" if self.before else ""
        ordinal = _ordinal(self.number).capitalize()
        looked = f"{ordinal} look at these requirements: {self.images} of {self.of} images"
        if self.before and self.before[-1] >= self.full:
            return (
                f"{looked}{plan}{earlier}. All planned images were judged before, so the verdict on those "
                "stands and this look decides next to nothing."
            )
        return (
            f"{looked}{plan}{earlier}. It decides at {100 * self.level:.2g} % instead of {100 * WRONG:g} %, "
            f"and its intervals are wider, so that all looks together are wrong in at most {100 * WRONG:g} %."
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "number": self.number, "images": self.images, "of": self.of, "level": self.level,
            "planned": self.planned,
        }  # fmt: skip


def _ordinal(number: int) -> str:
    """The number as a word or, above ten, with its ending.

    >>> [_ordinal(number) for number in (3, 11, 21, 112, 122)]
    ['third', '11th', '21st', '112th', '122nd']
    """
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def digest_of(requirements: Sequence[Requirement], baseline: str | None, planned: int | None = None) -> str:
    """The digest of requirements, of the baseline they name and of the planned number of images; ids and
    order do not matter."""
    rows = sorted(
        [r.metric, r.of or "", r.condition or "", r.suite or "", r.bound, r.threshold] for r in requirements
    )
    compares = any(r.bound == "at_most_drop" for r in requirements)
    plan = [] if planned is None else [planned]
    return json_digest([rows, baseline if compares else None, *plan])


def _full(of: int, planned: int | None) -> int:
    return of if planned is None else min(planned, of)


def spent_at(look: Look, looks: Sequence[Look], of: int, planned: int | None = None) -> Spent:
    """The level of a look at a dataset of `of` images, after those recorded with fewer images.

    If a number of images is planned, it counts instead of the dataset's. More images than that spend no more,
    but looks at fewer have less in common with them.
    """
    same = {each.images for each in looks if each.requirements == look.requirements}
    before = tuple(sorted(images for images in same if images < look.images))
    full = _full(of, planned)
    most = max(full, look.images)
    shares = [images / most for images in (*before, look.images)]
    spent = levels(shares, lambda share: _quadratic(min(1.0, share * most / full)))
    return Spent(look.images, of, before, spent[-1], planned)


def read_looks(run: Path) -> list[Look]:
    """The looks recorded in a run folder, in the order they were taken."""
    path = run / LOOKS
    if not path.exists():
        return []
    fix = f"rm {shlex.quote(str(path))} (looks are then counted anew)"
    try:
        return _StoredLooks.model_validate(read_sealed(path, fix)).looks
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise StoreError(f"{path} is damaged: {where} is wrong. Make it again with: {fix}") from None


def with_look(looks: Sequence[Look], look: Look) -> list[Look]:
    """Some looks and this one, which may be among them."""
    return [*looks] if look in looks else [*looks, look]


def record_look(run: Path, look: Look) -> None:
    """Add a look to those of a run folder, unless it is there: the same images and the same requirements."""
    with held_lock(run / _LOCK, run):
        looks = read_looks(run)
        if look in looks:
            return
        sweep(run / LOOKS)
        write_sealed(run / LOOKS, {"looks": [each.model_dump() for each in (*looks, look)]})


def _quadratic(share: float) -> float:
    """What may be spent while a run has this share of all images."""
    return WRONG * share**2


def levels(shares: Sequence[float], spend: Callable[[float], float] = _quadratic) -> list[float]:
    """The level of each look: the chance that it alone is wrong, if the looks have these rising shares of all
    images.

    The estimates at the looks are those of a Brownian motion. At each look its density, without the paths
    that were beyond an earlier bound, is moved on to the next; the bound leaves what may be spent beyond it.

    >>> [round(level, 4) for level in levels([0.5, 1.0])]
    [0.0063, 0.0218]
    >>> levels([1.0]) == [WRONG]
    True
    """
    made: list[float] = []
    spent, time = 0.0, 0.0
    grid, mass = np.zeros(1), np.ones(1)  # the paths start at 0
    for share in shares:
        may = spend(share) - spent
        spent += may
        points = _points(grid, share, share - time)
        # With next to nothing to spend, or so close to the look before, what a look spends counts in full.
        if may <= _LEAST_LEVEL or points > _MOST_POINTS:
            made.append(max(_LEAST_LEVEL, may))
            continue
        if made:
            bound = _bound(grid, mass, share - time, may)
            made.append(max(_LEAST_LEVEL, float(ndtr(-bound / math.sqrt(share)))))
        else:
            bound = -float(ndtri(may)) * math.sqrt(share)
            made.append(max(_LEAST_LEVEL, may))
        grid, mass = _move(grid, mass, np.linspace(-_FAR * math.sqrt(share), bound, points), share - time)
        time = share
    return made


def _points(grid: Floats, share: float, step: float) -> int:
    """How many points resolve what a look adds."""
    if len(grid) == 1:
        return _FEWEST_POINTS
    return max(_FEWEST_POINTS, math.ceil(_STEPS * 2 * _FAR * math.sqrt(share / step)))


def _bound(grid: Floats, mass: Floats, step: float, may: float) -> float:
    """The bound that paths cross with a chance of `may` after moving on by `step`."""
    deviation = math.sqrt(step)

    def excess(bound: float) -> float:
        return float(mass @ ndtr((grid - bound) / deviation)) - may

    return float(brentq(excess, grid[0], grid[-1] + 2 * _FAR * deviation, xtol=1e-10))


def _move(grid: Floats, mass: Floats, onto: Floats, step: float) -> tuple[Floats, Floats]:
    """The mass of paths at the points of a new grid, after moving on by `step`."""
    density = np.exp(-((onto[:, None] - grid) ** 2) / (2 * step)) @ mass / math.sqrt(2 * math.pi * step)
    width = np.full(len(onto), onto[1] - onto[0])
    width[[0, -1]] /= 2
    return onto, density * width
