"""Detection rates by distance, size and occlusion: counted by hand, and where objects are lost."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.distances import near_ones, scenes
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.sample import RLE, Instances
from stormproof.datasets.attributes import with_distances
from stormproof.engine.api import run as run_it
from stormproof.results.breaking import Answer
from stormproof.results.detection_rate import SCALES, FoundObjects, make_bins
from stormproof.results.interval import unseen_share
from stormproof.results.run import Run


@pytest.fixture(scope="module", params=[False, True], ids=["stated", "in depth maps"])
def street(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, data = tmp_path_factory.mktemp("street") / "run", scenes(in_depth=request.param)
    run_it(model=near_ones, data=data, conditions="brightness[amount=0.1]", out=folder, engine="local")
    return Run(folder, data=data)


def test_rates_by_distance_are_counted(street: Run) -> None:
    found = street.detection_rates("distance", replicates=60)
    names = [each.name for each in found.bins]
    assert names[:2] == ["below 10 m", "10–20 m"]
    assert names[-2:] == ["60–80 m", "80 m on"], "four objects at 100 m join the bin before"
    assert [each.objects for each in found.bins] == [36, 40, 40, 40, 40, 40, 80, 84]
    for k, each in enumerate(found.bins):
        inside = [m for m in range(1, 101) if each.low <= m < each.high]
        expected = np.mean([m < 40 for m in inside])
        assert found.rate("clean")[k] == pytest.approx(expected)
        assert each.middle == np.median(inside)
    lenient = street.detection_rates("distance", min_score=0.2, replicates=60)
    assert lenient.rate("clean") == [1.0] * 6 + [0.0] * 2


def test_an_object_found_with_exactly_the_least_score_is_found(street: Run) -> None:
    """Those nearer than 40 m are found with a score of 0.9, those nearer than 60 m with 0.3."""
    usual = street.detection_rates("distance", replicates=50)
    for score in (0.9, 0.3):
        found = street.detection_rates("distance", min_score=score, replicates=50)
        expected = usual.rate("clean") if score == 0.9 else [1.0] * 6 + [0.0] * 2
        assert found.rate("clean") == expected
    assert street.detection_rates("distance", min_score=0.91, replicates=50).rate("clean") == [0.0] * 8


def test_an_object_on_the_edge_of_a_bin_belongs_to_the_farther_bin() -> None:
    values = np.array([9.0] * 30 + [10.0] * 10 + [14.0] * 20)
    hit = values == 10.0
    image = np.zeros(60, np.int64)
    bins = make_bins(SCALES["distance"], values, image, np.ones(60, bool))
    assert [(each.name, each.objects) for each in bins] == [("below 10 m", 30), ("10 m on", 30)]
    objects = FoundObjects(hit, image, {"distance": values}, np.zeros(1, np.int64), np.ones((1, 1)))
    shares = [objects.share(objects.within("distance", each.low, each.high)).values[0] for each in bins]
    assert shares == [0.0, pytest.approx(1 / 3)]


def test_thirty_objects_make_a_bin_which_lies_at_their_median() -> None:
    values = np.array([2.0] * 20 + [4.5] * 10 + [6.0] * 29 + [12.0] * 30)
    bins = make_bins(SCALES["distance"], values, np.arange(89), np.ones(89, bool))
    # 29 objects from 5 to 10 m are one too few; they join those up to 15 m.
    assert [(each.name, each.objects, each.middle) for each in bins] == [
        ("below 5 m", 30, 2.0),
        ("5 m on", 59, 12.0),
    ]


def test_finds_the_distance_at_which_objects_are_lost(street: Run) -> None:
    found = street.detection_rates("distance", min_score=0.2, replicates=100)
    clean, hazy = (found.lost_from(text) for text in found.drawn)
    # All found up to 59 m, none from 60 m on: half way between the middles of the bins either side.
    assert clean.answer is Answer.BREAKS
    assert clean.strength == pytest.approx((found.bins[5].middle + found.bins[6].middle) / 2)
    assert clean.low <= clean.strength <= clean.high
    assert hazy.strength is not None
    assert hazy.strength < clean.strength, "brighter images look farther to this model"


def test_intervals_hold_the_rate(street: Run) -> None:
    found = street.detection_rates("distance", replicates=100)
    hazy = "brightness[amount=0.1]"
    at = next(k for k, rate in enumerate(found.rate(hazy)) if 0 < rate < 1)
    sure = found.interval(hazy, at)
    assert 0 < sure.se < 0.3
    assert sure.low < sure.estimate < sure.high
    assert sure.images == found.bins[at].units == 10
    all_found = found.interval("clean", 0)
    assert all_found.estimate == 1.0
    assert (all_found.low, all_found.high) == (pytest.approx(1 - unseen_share(found.bins[0].units)), 1.0)
    none = found.interval("clean", len(found.bins) - 1)
    assert (none.low, none.high) == (0.0, pytest.approx(unseen_share(found.bins[-1].units)))


def test_rates_by_size_and_occlusion_are_counted(street: Run) -> None:
    hidden = street.detection_rates("occlusion", replicates=50)
    assert [each.name for each in hidden.bins] == ["visible", "largely"]
    odd, even = (np.mean([m < 40 for m in range(start, 101, 2)]) for start in (1, 2))
    assert hidden.rate("clean") == pytest.approx([odd, even])
    sizes = street.detection_rates("size", replicates=50)
    assert [(each.name, each.objects) for each in sizes.bins] == [("small", 400)]


def test_refuses_unknown_scales_and_classes(street: Run) -> None:
    with pytest.raises(UnknownName, match="distance"):
        street.detection_rates("distence")
    with pytest.raises(UnknownName, match="person"):
        street.detection_rates("size", classes="persn")
    with pytest.raises(InvalidOption, match="distance needs depth"):
        make_bins(SCALES["distance"], np.array([math.nan]), np.array([0]), np.array([True]))


def test_the_command_prints_rates_by_distance(
    street: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormproof.results import run as runs

    monkeypatch.setattr(runs, "_reopen", lambda record, data: street.dataset)
    asked = ["score", str(street.folder), "--by", "distance", "--classes", "person", "--replicates", "50"]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert "Detection rate of person by distance" in shown.output
    content = json.loads(CliRunner().invoke(app, [*asked, "--json", "--min-score", "0.2"]).stdout)
    assert content["bins"][0]["objects"] == 36
    assert content["lost_from"]["clean"]["at"] == pytest.approx(
        street.detection_rates("distance", min_score=0.2, replicates=50).lost_from("clean").strength
    )


def test_the_median_depth_of_mask_or_box() -> None:
    depth = np.full((10, 10), np.inf, np.float32)
    depth[4:, :] = 20
    depth[4, 4] = 3
    mask = np.zeros((10, 10), bool)
    mask[3:6, 4] = True
    objects = Instances([[0, 0, 10, 10], [3, 3, 6, 6], [0, 0, 4, 3]], [0, 0, 0])
    assert with_distances(objects, depth).distance[:2].tolist() == [20, 20]
    assert math.isnan(with_distances(objects, depth).distance[2]), "sky alone has no distance"
    masked = Instances([[4, 3, 5, 6]], [0], (RLE.from_mask(mask),))
    assert with_distances(masked, depth).distance.tolist() == [11.5]
    stated = Instances([[0, 0, 10, 10]], [0], distance=[7.0])
    assert with_distances(stated, depth).distance.tolist() == [7.0]
