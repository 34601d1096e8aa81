"""No library moves a pixel unnoticed: every recipe gives the pixels stored for its version."""

from __future__ import annotations

import json

import pytest

from golden.pixels import FILE, complaint, recipes

STORED = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", recipes())
def test_pixels_equal_those_stored_for_the_version(name: str) -> None:
    assert complaint(name, STORED) is None


def test_nothing_is_stored_for_recipes_that_are_gone() -> None:
    assert STORED.keys() == {*recipes()}


def test_moved_pixels_ask_for_a_new_version() -> None:
    name = recipes()[0]
    other = {name: {"version": STORED[name]["version"], "pixels": dict.fromkeys(STORED[name]["pixels"], "0")}}
    assert "raise the recipe's version" in str(complaint(name, other))
    assert "make golden" in str(complaint(name, {name: {**STORED[name], "version": 99}}))
    assert "has no golden pixels" in str(complaint(name, {}))
