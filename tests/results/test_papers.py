"""The papers' own rules: which cells a mean covers, CD by category, groups and changes of CE."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stormproof.corruptions import find_suite
from stormproof.corruptions.presets import PRESETS
from stormproof.corruptions.suites import KAMANN, LIU, SUITES
from stormproof.metrics.corruption_error import corruption_matters, cross_scenario
from stormproof.metrics.grid import Grid
from stormproof.report.tables import group_tables
from stormproof.results.aggregates import against, aggregates, flatten
from stormproof.results.scores import Scores
from stormproof.results.sets import sets_of

NOISY = {"clean": 0.8, **{f"gaussian_noise@{s}": v for s, v in enumerate((0.6, 0.5, 0.4, 0.1, 0.0), 1)},
         **{f"fog@{s}": 0.5 for s in range(1, 6)}}  # fmt: skip


@pytest.mark.parametrize(
    ("benchmark", "noise", "cells"),
    [("voc2012-seg-c", 0.5, 8), ("camvid-seg-c", 0.5, 8), ("coco-c", 0.32, 10), (None, 0.32, 10)],
)
def test_kamanns_benchmarks_average_noise_over_three_severities(
    benchmark: str | None, noise: float, cells: int
) -> None:
    over = sets_of(tuple(NOISY), benchmark)[0]
    found = aggregates("mIoU", NOISY, over)
    assert found["by_corruption"]["gaussian_noise"] == pytest.approx(noise)
    covered = [value for text, value in NOISY.items() if text in over.covered]
    assert found["mean"] == pytest.approx(np.mean(covered))  # part of a benchmark has no mPC
    assert len(covered) == cells
    assert over.mean_name == f"mean over {cells} conditions"


def _kamann(clean: float, **scores: float) -> dict[str, float]:
    texts = [str(condition) for condition in find_suite("kamann")]
    return {"clean": clean, **{text: scores.get(text.partition("@")[0], 0.5) for text in texts}}


@pytest.mark.parametrize("benchmark", [None, "camvid-seg-c", "cityscapes-seg-c"])
def test_mpc_of_kamann_leaves_strong_noise_out_of_every_number(benchmark: str | None) -> None:
    cells = _kamann(0.9) | {f"{name}@{s}": 0.1 for name in KAMANN["noise"] for s in (4, 5)}
    over = sets_of(tuple(cells), benchmark)[0]
    assert (len(over.conditions), len(over.covered), over.whole) == (93, 83, True)
    found = aggregates("mIoU", cells, over)
    assert found["mPC"] == pytest.approx(0.5)
    assert found["by_corruption"] == pytest.approx(dict.fromkeys(found["by_corruption"], 0.5))
    assert found["rPC"] == pytest.approx(0.5 / 0.9)
    assert found["by_severity"][4] == found["by_severity"][5] == pytest.approx(0.5)


def test_mean_cd_leaves_psf_blur_out_and_categories_have_a_spread() -> None:
    # By hand: D is 0.5 for both but for fog, 0.7 against 0.5, and psf_blur, 1 against 0.5.
    mine, theirs = _kamann(0.8, fog=0.3, psf_blur=0.0), _kamann(0.9)
    over = sets_of(tuple(mine))[0]
    found = against("mIoU", mine, theirs, over)
    assert found["CD"]["fog"] == pytest.approx(1.4)
    assert found["CD"]["psf_blur"] == pytest.approx(2.0)
    assert found["mCD"] == pytest.approx((17 + 1.4) / 18)
    weather = found["CD_by_category"]["weather"]
    assert weather["mean"] == pytest.approx(1.1)
    assert weather["std"] == pytest.approx(math.sqrt(3 * 0.1**2 + 0.3**2) / 2)
    blur = found["CD_by_category"]["blur"]  # only the mean over all leaves PSF blur out (Figs. 10 and 12)
    assert blur == pytest.approx({"mean": 1.2, "std": 0.4, "count": 5})
    # rCD: a loss of 0.3 against one of 0.4, of fog 0.5 against 0.4.
    assert found["rCD"]["snow"] == pytest.approx(0.75)
    assert found["rCD"]["fog"] == pytest.approx(1.25)
    # The same of replicates, entry by entry.
    both = ({text: np.array([v, 0.5, v]) for text, v in side.items()} for side in (mine, theirs))
    drawn = flatten(against("mIoU", *both, over))
    for name, value in flatten(found).items():
        assert np.ravel(drawn[name])[[0, -1]] == pytest.approx([value, value]), name


def _errors(clean: float, corrupted: float, **others: float) -> dict[str, float]:
    return {"clean": clean, **{str(c): others.get(str(c.corruption), corrupted) for c in SUITES["camera"]}}


def _grid(cells: dict[str, float]) -> Grid:
    return Grid.of(cells, conditions=SUITES["camera"].conditions)


def test_the_change_of_ce_between_two_runs_by_hand() -> None:
    plain, enhanced = _errors(0.5, 0.6), _errors(0.55, 0.6, camera_fog=0.45)
    found = against("E", enhanced, plain, sets_of(tuple(plain), "coco-camera")[0])
    assert found["delta_CE"]["camera_fog"] == pytest.approx(-0.15)
    assert found["delta_CE"]["memory_exception"] == 0
    assert found["delta_mCE"] == pytest.approx(-0.15 / 16)
    assert found["delta_E"] == pytest.approx(0.05)
    assert found["delta_CE_by_group_liu"]["optics"] == pytest.approx(-0.05)
    conditions = ("clean", *map(str, PRESETS["coco-camera"].conditions()))
    scores = Scores("a", "set", 9, {"E": enhanced}, conditions, "E", "coco-camera")
    tables = group_tables(scores)
    assert [[row[0] for row in table.rows] for table in tables] == [
        ["optics", "sensor", "processor", "board"]
    ]
    assert tables[0].columns == ("group", "CE")


def test_the_groups_of_liu_are_the_sixteen_faults() -> None:
    assert {name for members in LIU.values() for name in members} == {c.corruption for c in SUITES["camera"]}


def test_the_t_test_over_detectors_finds_a_clear_increase() -> None:
    # Welch or not, two clean errors of 0.4 and 0.5 against 0.6 and 0.7, sixteen times each.
    found = corruption_matters([_grid(_errors(0.4, 0.6)), _grid(_errors(0.5, 0.7))])
    assert found.increase == pytest.approx(0.2)
    assert found.p < 0.001
    assert found.t > 3
    assert math.isnan(corruption_matters([_grid(_errors(0.4, 0.6))]).t)


def test_rows_of_scenarios_need_every_column() -> None:
    grids = {("coco", "coco"): _grid(_errors(0.4, 0.6)), ("coco", "street"): _grid(_errors(0.5, 0.55))}
    assert cross_scenario(grids) == pytest.approx({("coco", "coco"): 0.2, ("coco", "street"): 0.05})
