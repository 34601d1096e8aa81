"""Benchmarks and suites: which cells their means cover."""

from __future__ import annotations

import pytest

from stormproof.core.condition import CLEAN, Condition
from stormproof.corruptions import find_suite
from stormproof.corruptions.groups import KAMANN
from stormproof.corruptions.presets import PRESETS, covered

KAMANN_BENCHMARKS = [name for name, preset in PRESETS.items() if preset.cite == "kamann2020"]
OTHERS = [name for name in PRESETS if name not in KAMANN_BENCHMARKS]


@pytest.mark.parametrize("name", KAMANN_BENCHMARKS)
@pytest.mark.parametrize("named", [True, False])
def test_means_of_kamann_cover_noise_of_severities_1_to_3(name: str, *, named: bool) -> None:
    conditions = PRESETS[name].conditions()
    kept = covered(conditions, benchmark=name if named else None)
    left_out = {*conditions} - {*kept} - {CLEAN}
    assert left_out == {Condition.of(noise, severity) for noise in KAMANN["noise"] for severity in (4, 5)}
    assert kept == tuple(c for c in conditions if c in kept)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("named", [True, False])
def test_other_means_cover_every_condition(name: str, *, named: bool) -> None:
    conditions = PRESETS[name].conditions()
    assert covered(conditions, benchmark=name if named else None) == conditions[1:]


def test_the_suite_kamann_is_the_benchmark_cityscapes_seg_c() -> None:
    suite = find_suite("kamann")
    assert (CLEAN, *suite) == PRESETS["cityscapes-seg-c"].conditions()
    assert len(suite.corruptions) == 19
    assert [c.severity for c in suite if c.corruption == "psf_blur"] == [1, 2, 3]
    assert len(covered(suite, suite="kamann")) == len(covered((CLEAN, *suite))) == 93 - 10


def test_one_more_condition_makes_it_another_mean() -> None:
    more = (*find_suite("kamann"), Condition.of("zoom_blur", 1))
    assert covered(more) == more
    assert len(covered(more, suite="kamann")) == len(more) - 10
    noise = find_suite("noise").conditions
    assert covered(noise) == noise


def test_noise_with_parameters_of_its_own_always_counts() -> None:
    given = (Condition.parse("gaussian_noise[sigma=0.5]"), Condition.parse("shot_noise@4.5"))
    assert covered(given, suite="kamann") == given
