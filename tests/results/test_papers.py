"""The papers' own rules: which cells a mean covers, CD by category, groups and changes of CE."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from stormproof.corruptions.groups import KAMANN, LIU
from stormproof.corruptions.pipeline import CAMERA
from stormproof.metrics.corruption_error import corruption_matters, cross_scenario
from stormproof.metrics.grid import Grid
from stormproof.results.aggregates import against, aggregates
from stormproof.results.papers import averaged_grid, group_tables


def _record(benchmark: str | None, conditions: list[str]) -> SimpleNamespace:
    return SimpleNamespace(benchmark=benchmark, conditions=tuple(conditions))


NOISY = {"clean": 0.8, **{f"gaussian_noise@{s}": v for s, v in enumerate((0.6, 0.5, 0.4, 0.1, 0.0), 1)},
         **{f"fog@{s}": 0.5 for s in range(1, 6)}}  # fmt: skip


@pytest.mark.parametrize(
    ("benchmark", "noise"), [("voc2012-seg-c", 0.5), ("camvid-seg-c", 0.5), (None, 0.32)]
)
def test_noise_counts_with_three_severities_under_kamanns_presets(benchmark, noise):
    found = aggregates("mIoU", averaged_grid(NOISY, tuple(NOISY), _record(benchmark, list(NOISY))))
    assert found["by_corruption"]["gaussian_noise"] == pytest.approx(noise)
    assert found["mPC"] == pytest.approx((noise + 0.5) / 2)


def _kamann(clean: float, **scores: float) -> Grid:
    names = [name for members in KAMANN.values() for name in members]
    cells = {f"{n}@{s}": scores.get(n, 0.5) for n in names for s in range(1, 4 if n == "psf_blur" else 6)}
    return Grid.of({"clean": clean, **cells})


def test_mean_cd_leaves_psf_blur_out_and_categories_have_a_spread():
    # By hand: D is 0.5 for both but for fog, 0.7 against 0.5, and psf_blur, which must not show.
    found = against("mIoU", _kamann(0.8, fog=0.3, psf_blur=0.0), _kamann(0.9))
    assert found["CD"]["fog"] == pytest.approx(1.4)
    assert found["CD"]["psf_blur"] == pytest.approx(2.0)
    assert found["mCD"] == pytest.approx((17 + 1.4) / 18)
    weather = found["CD_by_category"]["weather"]
    assert weather["mean"] == pytest.approx(1.1)
    assert weather["std"] == pytest.approx(math.sqrt(3 * 0.1**2 + 0.3**2) / 2)
    assert found["CD_by_category"]["blur"] == {"mean": 1.0, "std": 0.0, "count": 4}
    # rCD: a loss of 0.3 against one of 0.4, of fog 0.5 against 0.4.
    assert found["rCD"]["snow"] == pytest.approx(0.75)
    assert found["rCD"]["fog"] == pytest.approx(1.25)


def _errors(clean: float, corrupted: float, **others: float) -> Grid:
    cells = {str(c): others.get(str(c.corruption), corrupted) for c in CAMERA}
    return Grid.of({"clean": clean, **cells})


def test_change_of_ce_between_two_runs():
    plain, enhanced = _errors(0.5, 0.6), _errors(0.55, 0.6, camera_fog=0.45)
    found = against("E", enhanced, plain)
    assert found["delta_CE"]["camera_fog"] == pytest.approx(-0.15)
    assert found["delta_CE"]["memory_exception"] == 0
    assert found["delta_mCE"] == pytest.approx(-0.15 / 16)
    assert found["delta_E"] == pytest.approx(0.05)
    assert found["delta_CE_by_group_liu"]["optics"] == pytest.approx(-0.05)
    record = _record("coco-camera", [])
    table = group_tables("E", aggregates("E", enhanced) | found, record)
    assert [list(t.columns[0].cells) for t in table] == [["optics", "sensor", "processor", "board"]]


def test_the_groups_of_liu_are_the_sixteen_faults():
    assert {name for members in LIU.values() for name in members} == {c.corruption for c in CAMERA}


def test_the_t_test_over_detectors():
    # Welch or not, two clean errors of 0.4 and 0.5 against 0.6 and 0.7, sixteen times each.
    found = corruption_matters([_errors(0.4, 0.6), _errors(0.5, 0.7)])
    assert found.increase == pytest.approx(0.2)
    assert found.p < 0.001
    assert found.t > 3
    assert math.isnan(corruption_matters([_errors(0.4, 0.6)]).t)


def test_rows_of_scenarios_need_every_column():
    grids = {("coco", "coco"): _errors(0.4, 0.6), ("coco", "street"): _errors(0.5, 0.55)}
    assert cross_scenario(grids) == pytest.approx({("coco", "coco"): 0.2, ("coco", "street"): 0.05})
