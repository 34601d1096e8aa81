"""Conditions as people name them: one grammar for every command and for Python."""

from __future__ import annotations

import pytest

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, StormproofError, UnknownName
from stormproof.corruptions import CORRUPTIONS, SUITES
from stormproof.corruptions.grammar import read_condition, read_conditions


def texts(*given: str | Condition) -> list[str]:
    return [str(condition) for condition in read_conditions(given)]


def test_a_name_stands_for_all_its_severities() -> None:
    assert texts("fog, snow@2") == [*(f"fog@{s}" for s in range(1, 6)), "snow@2"]
    assert len(texts("noise")) == 15
    assert texts("psf_blur") == ["psf_blur@1", "psf_blur@2", "psf_blur@3"]
    assert texts("gaussian_noise[sigma=0.1],fog[amount=1,decay=2]") == [
        "gaussian_noise[sigma=0.1]", "fog[amount=1,decay=2]"
    ]  # fmt: skip


def test_ranges_of_corruptions_and_suites() -> None:
    assert texts("fog@1-3") == ["fog@1", "fog@2", "fog@3"]
    assert texts("fog@2-3[on=person]") == ["fog@2[on=person]", "fog@3[on=person]"]
    assert texts("weather@3") == ["snow@3", "frost@3", "fog@3", "brightness@3"]
    assert len(texts("imagenet-c@3")) == 15
    assert len(texts("imagenet-c@1-2")) == 30


def test_lists_of_strings_and_conditions_drop_repeats() -> None:
    assert texts("clean", "fog@3,clean", Condition.of("fog", 3), "fog@3-4") == ["clean", "fog@3", "fog@4"]
    assert str(read_condition("fog@3")) == "fog@3"
    with pytest.raises(InvalidCondition, match="names 5 conditions"):
        read_condition("fog")


def test_a_suites_conditions_take_parameters() -> None:
    assert [str(c) for c in read_conditions("weather@3[on=person]")][:2] == [
        str(c) + "[on=person]" for c in read_conditions("weather@3")
    ][:2]
    painted = read_conditions("object-centric[styles=looks-50]")
    assert len(painted) == 60
    assert all(dict(c.params)["styles"] == "looks-50" for c in painted)


def test_no_name_is_both_a_suite_and_a_corruption() -> None:
    assert not {*SUITES} & {*CORRUPTIONS}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fogg", "Unknown suite or corruption 'fogg'. Did you mean 'fog'?"),
        ("fogg@3", "Did you mean 'fog'?"),
        ("imagnet-c", "Did you mean 'imagenet-c'?"),
        ("imagnet-c@3", "Did you mean 'imagenet-c'?"),
        ("fog@3,rotate", "Unknown suite or corruption 'rotate'"),
        ("fog@3-1", "ranges ascend, as in 1-3"),
        ("fog@0-3", "from 1 to 5"),
        ("fog@6", "from 1 to 5"),
        ("psf_blur@1-5", "psf_blur"),
        ("weather@3[sigma=2]", "sigma"),
        ("mutators@3", "no condition of the suite has that severity"),
        ("alpha_blend", "no severities"),
        ("gaussian_noise[sigma=-1]", "sigma must lie in"),
        ("fog@3,,snow", "Cannot read the condition ''"),
    ],
)
def test_refuses_conditions_that_mean_nothing(text: str, words: str) -> None:
    with pytest.raises(StormproofError) as error:
        read_conditions(text)
    assert words in str(error.value)
    assert isinstance(error.value, InvalidCondition | UnknownName)


def test_a_composed_name_of_too_many_conditions_is_refused_before_they_are_made() -> None:
    assert len(read_conditions("imagenet-c+imagenet-c")) == 75**2
    with pytest.raises(InvalidCondition, match="names 31,640,625 conditions; 10,000 is the most"):
        read_conditions("imagenet-c+imagenet-c+imagenet-c+imagenet-c")
