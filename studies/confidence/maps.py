"""Maps and domains: how often the true line leaves the band, how far off a map is from a dense grid, and how
often any cell of a domain passes wrongly.

    python studies/confidence/maps.py bands --sets 100 --images 80 --conditions 25
    python studies/confidence/maps.py cells --sets 400
    python studies/confidence/maps.py grid runs/dense --x 'haze[visibility=30..1000]' \
        --y 'night[lux=1..1000]' --require 'AP50>=0.4' --along 20

`bands` samples surfaces whose truth is known, as a map does: every image is lost at an offset of its own,
scores have a noise that no neighbour explains, and the true line is that of 4,000 images. `cells` judges
domains of twelve cells whose true rates are at the threshold, so that any verdict but inconclusive is wrong.
`grid` needs a run of all conditions of a grid: it lets a map choose among them, and compares the line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from stormproof.core.sample import Floats
from stormproof.results import maps
from stormproof.results.breaking import parse_requirement
from stormproof.results.detection_rate import FoundObjects
from stormproof.results.domain import DomainRequirement
from stormproof.results.domain_verdicts import CornerScore, Coverage, DomainVerdict, judge_rows
from stormproof.results.interval import WRONG
from stormproof.results.maps import Plane, draw_map, level_segments, parse_map_axis
from stormproof.results.run import Run
from stormproof.results.surface import (
    GRID,
    MET,
    MISSED,
    OPEN,
    Points,
    Surface,
    first_places,
    fit_surface,
    grid_places,
)
from stormproof.results.verdicts import Outcome

EVERYONE, HALVES, NOISE = 4000, 200, 0.05
Scores = Callable[[Floats, Floats], Floats]


def make_world(rng: np.random.Generator) -> tuple[Scores, Callable[[int], Floats]]:
    """The scores of images at places, and how images are drawn: their offset and their best score."""
    best, slopes, both = rng.uniform(0.5, 0.95), rng.uniform(0.5, 5, 2), rng.uniform(0, 3)
    middle, width = rng.uniform(0.3, 0.8) * (slopes.sum() + both), rng.uniform(0.3, 1.2)
    spread, bend = rng.uniform(0.3, 1.5), rng.uniform(0.7, 2)

    def scores(places: Floats, images: Floats) -> Floats:
        x, y = places[:, 0], places[:, 1]
        strength = slopes[0] * x**bend + slopes[1] * y + both * x * y
        return np.asarray(images[1] / (1 + np.exp((strength[:, None] - middle - images[0]) / width)))

    def draw(count: int) -> Floats:
        return np.stack([rng.normal(0, spread, count), rng.beta(4 * best, 4 * (1 - best), count)])

    return scores, draw


def sample_world(seed: int, count: int, conditions: int) -> dict[str, float]:
    """One map of a known surface: whether its zones are wrong anywhere, and how much it decides."""
    rng = np.random.default_rng(seed)
    scores, draw = make_world(rng)
    grid = grid_places()
    true = scores(grid, draw(EVERYONE)).mean(axis=1)
    threshold = rng.uniform(*np.quantile(true, [0.2, 0.8]))
    images = draw(count)
    halves = rng.integers(0, 2, (HALVES, count)).astype(np.float64)

    def observe(places: Floats) -> Floats:
        return scores(places, images) + rng.normal(0, NOISE, (len(places), count))

    def fit(places: Floats, table: Floats) -> Surface:
        none = np.zeros(len(places))
        drawn = table @ halves.T / halves.sum(axis=1)
        return fit_surface(Points(places, table.mean(axis=1), drawn, none, none, count))

    places = first_places(columns_only=False)
    table = observe(places)
    surface = fit(places, table)
    while len(places) < conditions:
        following = surface.following(grid, threshold, min(4, conditions - len(places)))
        if not len(following):
            break
        places, table = np.vstack([places, following]), np.vstack([table, observe(following)])
        surface = fit(places, table)
    estimate = surface.estimate(grid, threshold)
    zones, here = estimate.zones, scores(grid, images).mean(axis=1)
    other = (estimate.score >= threshold) != (here >= threshold)
    wrong = ((zones == MET) & (true < threshold)) | ((zones == MISSED) & (true >= threshold))
    return {
        "line leaves the band": float(wrong.any()), "plane not decided": float(np.mean(zones == OPEN)),
        "plane on the wrong side, of these images": float(np.mean(other)),
        "conditions": float(len(places)),
    }  # fmt: skip


def bands(sets: int, images: int, conditions: int) -> None:
    found = [sample_world(1000 + k, images, conditions) for k in range(sets)]
    print(f"{sets} surfaces, {images} images, at most {conditions} conditions")
    for name in found[0]:
        print(f"  {name}: {np.mean([each[name] for each in found]):.4g}")


def make_cells(rng: np.random.Generator, images: int, cells: int, rate: float) -> list[DomainVerdict]:
    """Cells whose objects are found at a rate, alike within an image, as are those of other cells of it."""
    halves = np.concatenate([np.ones((1, images)), rng.integers(0, 2, (HALVES, images))]).astype(np.uint8)
    chance = rng.beta(3 * rate, 3 * (1 - rate), images)
    requirement = DomainRequirement("R1", "found", "person", "at_least", rate)
    made = []
    for _ in range(cells):
        image = np.repeat(np.arange(images), rng.poisson(1.5, images))
        hit = rng.random(len(image)) < chance[image]
        share = FoundObjects(hit, image, {}, np.arange(images), halves).share(np.ones(len(image), np.bool_))
        probe = CornerScore(
            "clean", share.interval(), share.interval(WRONG / cells), share.units, share.objects
        )
        made.append(DomainVerdict(requirement, (), Coverage.COVERED, Outcome.INCONCLUSIVE, (probe,), ()))
    return made


def cells(sets: int, images: list[int]) -> None:
    print("images  rate  any wrong pass  any wrong failure  without correction")
    for count in images:
        for rate in (0.6, 0.9, 0.97):
            rng = np.random.default_rng([count, round(100 * rate)])
            counts = np.zeros(3)
            for _ in range(sets):
                made = make_cells(rng, count, 12, rate)
                judged = {each.outcome for each in judge_rows(made, WRONG)}
                alone = [judge_rows([replace(each)], WRONG)[0].outcome for each in made]
                counts += [Outcome.PASS in judged, Outcome.FAIL in judged, Outcome.PASS in alone]
            shares = [f"{100 * share:.2g} %" for share in counts / sets]
            print(f"{count:6d}  {rate:4.2f}  {shares[0]:>14s}  {shares[1]:>17s}  {shares[2]:>18s}")


def line_points(segments: Floats) -> Floats:
    """The middles of a line's segments."""
    return np.stack([segments[:, [0, 2]].mean(axis=1), segments[:, [1, 3]].mean(axis=1)], axis=1)


def grid(folder: Path, x: str, y: str, require: str, along: int, classes: str, budget: int) -> None:
    """Let a map choose among the conditions of a dense grid that was run, and compare the lines.

    The dense line is that of the scores themselves, straight between the points of the grid.
    """
    measure, threshold = parse_requirement(require)
    names = tuple(classes.split(",")) if classes else None
    plane = Plane(parse_map_axis(x, "--x"), parse_map_axis(y, "--y"), measure, threshold, names)
    run, step = Run(folder), 1 / (along - 1)
    places = np.round(grid_places(along) / step) * step
    if plane.by_objects:
        places = np.array([[k * step, 0.5] for k in range(along)])
    maps.first_places = lambda columns_only: _nearest(first_places(columns_only), places)  # type: ignore[assignment]
    images = run.record.images
    made = draw_map(
        plane, out=folder, run=lambda _: None, images=images, budget=budget * images, candidates=places
    )
    texts = [str(plane.condition(place)) for place in places]
    observed = maps._observe(plane, run, texts, places, 60)
    dense = _dense(plane, observed, along)
    share = made.inferences / (images * len(texts))
    print(made.words)
    print(f"{made.inferences} of {images * len(texts)} inferences ({100 * share:.1f} %)")
    ours = line_points(level_segments(made.estimate.score, plane.sign * threshold))
    theirs = line_points(level_segments(dense, plane.sign * threshold))
    if len(ours) and len(theirs):
        gaps = np.sqrt(((ours[:, None] - theirs[None]) ** 2).sum(axis=2))
        away = np.concatenate([gaps.min(axis=1), gaps.min(axis=0)])
        print(f"line to line: mean {away.mean():.3f}, 95 % within {np.quantile(away, 0.95):.3f} of an axis")
    zones = made.estimate.zones
    good = dense >= plane.sign * threshold
    wrong = ((zones == MET) & ~good) | ((zones == MISSED) & good)
    print(f"plane on the other side: {np.mean((made.estimate.score >= plane.sign * threshold) != good):.3f}")
    print(f"dense scores that leave the band: {wrong.mean():.4f} of the plane")


def _nearest(wanted: Floats, places: Floats) -> Floats:
    gaps = ((wanted[:, None] - places[None]) ** 2).sum(axis=2)
    return places[gaps.argmin(axis=1)]


def _dense(plane: Plane, points: list[maps.MapPoint], along: int) -> Floats:
    """The observed scores on the map's grid: straight lines between points."""
    from scipy.interpolate import griddata

    at = np.array([point.place for point in points])
    values = plane.sign * np.array([point.interval.estimate for point in points])
    target = grid_places(GRID)
    inner = griddata(at, values, target, method="linear")
    return np.where(np.isnan(inner), griddata(at, values, target, method="nearest"), inner)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("bands")
    one.add_argument("--sets", type=int, default=100)
    one.add_argument("--images", type=int, default=80)
    one.add_argument("--conditions", type=int, default=25)
    three = verbs.add_parser("cells")
    three.add_argument("--sets", type=int, default=400)
    three.add_argument("--images", type=int, nargs="+", default=[70, 120, 300])
    two = verbs.add_parser("grid")
    two.add_argument("folder", type=Path)
    for name in ("--x", "--y", "--require"):
        two.add_argument(name, required=True)
    two.add_argument("--along", type=int, default=20)
    two.add_argument("--classes", default="")
    two.add_argument("--budget", type=int, default=30, help="conditions that the map may choose")
    given = vars(parser.parse_args())
    {"bands": bands, "cells": cells, "grid": grid}[given.pop("verb")](**given)


if __name__ == "__main__":
    main()
