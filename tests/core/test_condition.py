"""The canonical string of a condition parses back to itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormproof.core.condition import CLEAN, Condition, Suite, grid
from stormproof.core.errors import InvalidCondition, StormproofError, UnknownName

names = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True).filter(lambda name: name != "clean")
values = st.one_of(
    st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=12)
)


@given(names, st.one_of(st.none(), st.integers(1, 5)), st.dictionaries(names, values, min_size=1, max_size=4))
def test_text_round_trips(name: str, severity: int | None, params: dict[str, int | float | str]) -> None:
    condition = Condition.of(name, severity, params)
    again = Condition.parse(str(condition))
    assert again == condition
    assert str(again) == str(condition)
    assert hash(again) == hash(condition)


singles = st.builds(
    Condition.of, names, st.one_of(st.none(), st.integers(1, 5)),
    st.dictionaries(names, values, min_size=1, max_size=2),
)  # fmt: skip


@given(st.lists(singles, min_size=2, max_size=4))
def test_composed_text_round_trips(parts: list[Condition]) -> None:
    chain = Condition.composed(parts)
    assert Condition.parse(str(chain)) == chain
    assert chain.parts == tuple(parts)
    assert (chain.severity, chain.params, chain.is_clean) == (None, (), False)
    assert Condition.composed([Condition.composed(parts[:2]), *parts[2:]]) == chain  # no brackets


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("clean", "clean"),
        (" fog@3 ", "fog@3"),
        ("gaussian_noise[sigma=0.10]", "gaussian_noise[sigma=0.1]"),
        ("gaussian_blur[sigma=1.0]", "gaussian_blur[sigma=1]"),
        ("noise[b=2, a=1e-1]", "noise[a=0.1,b=2]"),
        ("frost@3[textures=my/folder]", "frost@3[textures=my/folder]"),
        ('frost@3[textures="a, b]"]', 'frost@3[textures="a, b]"]'),
        ('x[p="1"]', 'x[p="1"]'),
        ("x[p=-3]", "x[p=-3]"),
    ],
)
def test_spellings_of_a_condition_have_one_canonical_text(written: str, canonical: str) -> None:
    assert str(Condition.parse(written)) == canonical
    assert Condition.parse(canonical) == Condition.parse(written)


@pytest.mark.parametrize(
    "text",
    ["", "fog", "fog@0", "fog@6", "fog@3.0", "fog@x", "Fog@3", "fog@3[", "fog[]", "fog[a]", "fog[a=]",
     "fog[a=1,a=2]", "fog[a=nan]", "fog[a=inf]", "fog[a=b c]", 'fog[a="x]', 'fog[a="x"y]', "clean@3",
     "clean[a=1]", "3fog@1", "fog@3]"],
)  # fmt: skip
def test_refuses_nonsense_and_quotes_it(text: str) -> None:
    with pytest.raises(InvalidCondition) as error:
        Condition.parse(text)
    assert len(str(error.value)) > 20


@pytest.mark.parametrize("severity", [0, 6, -1, "3", 3.0, True])
def test_only_integers_from_one_to_five_are_severities(severity: object) -> None:
    with pytest.raises(InvalidCondition, match="1 to 5"):
        Condition.of("fog", severity)  # type: ignore[arg-type]


def test_parameters_must_be_finite_numbers_or_texts() -> None:
    for value in (math.nan, math.inf, None, [1], True):
        with pytest.raises(InvalidCondition):
            Condition.of("fog", 3, {"amount": value})  # type: ignore[dict-item]


def test_only_the_clean_condition_is_clean() -> None:
    assert Condition.parse("clean") == CLEAN
    assert CLEAN.is_clean
    assert not Condition.parse("fog@1").is_clean


def test_a_grid_is_every_corruption_at_every_severity() -> None:
    suite = Suite("s", "doc", grid(("fog", "snow"), (1, 2)))
    assert [str(c) for c in suite] == ["fog@1", "fog@2", "snow@1", "snow@2"]
    assert suite.corruptions == ("fog", "snow")


def test_errors_are_ordinary_python_errors_too() -> None:
    assert issubclass(InvalidCondition, ValueError)
    assert issubclass(UnknownName, LookupError)
    assert issubclass(InvalidCondition, StormproofError)
    assert "Did you mean 'gaussian_noise'?" in str(
        UnknownName("corruption", "gausian_noise", ["gaussian_noise"])
    )
